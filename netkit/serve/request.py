"""The options of `netkit serve`, and the command lines of its child processes."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netkit.errors import Problem, UsageError

EVERY = re.compile(r"(?P<number>[1-9]\d{0,3})(?P<unit>[smhd])")
UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SHORTEST_BOUNDED_S, LONGEST_S = 60, 3600
NETKIT = (sys.executable, "-m", "netkit")


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """The options of one server."""

    folder: Path
    lab: str = ""
    every: str = "15m"
    backup: Path | None = None
    store: str = ""
    listen: str = "127.0.0.1:8400"
    names: tuple[str, ...] = ()
    token_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    window_s: float = 10.0
    profile: str = "full"
    source: str = ""
    is_notifying: bool = False
    allows_silences: bool = False
    """Let anyone with the token add and end silences."""
    snapshot: Path | None = None
    """Judge this in each round instead of devices: for trials of the server itself."""
    more: tuple[Path, ...] = ()
    """The folders of more fabrics to check and show."""
    fleet: Path | None = None
    """The folder of a fleet whose sites read the devices."""
    site: str = ""
    """The site that the stored runs are of."""
    has_mcp: bool = False
    """Serve the tools of `netkit mcp` too."""
    proposer_token_file: Path | None = None
    """The token with which their clients may propose changes of the intent."""

    @property
    def folders(self) -> tuple[Path, ...]:
        return (self.folder, *self.more)

    def of_each(self) -> Iterator["ServeRequest"]:
        """Yield the options for each fabric; with several, each has its own folder of backups."""
        for folder in self.folders:
            backup = self.backup and self.more and self.backup / folder.absolute().name
            yield replace(self, folder=folder, more=(), backup=backup or self.backup)

    @property
    def every_s(self) -> int:
        found = EVERY.fullmatch(self.every)
        if found is None:
            what = f"--every {self.every!r} is not a duration"
            raise UsageError(Problem(what, "use seconds, minutes, hours or days, such as 30s, 15m, 1h or 1d"))
        return int(found["number"]) * UNITS_S[found["unit"]]

    def refuse(self) -> None:
        """Refuse at the start what every round would refuse."""
        if self.proposer_token_file is not None and not self.has_mcp:
            raise UsageError(Problem("--proposer-token-file applies to --mcp", "add --mcp, or drop it"))
        if self.snapshot is not None and self.lab:
            raise UsageError(Problem("facts come either from the lab or from a snapshot", "drop one of the options"))
        if self.fleet is not None and (self.lab or self.snapshot is not None):
            option = "--lab" if self.lab else "--from"
            raise UsageError(Problem(f"{option} does not work with --fleet", f"drop {option}, or --fleet"))
        if self.snapshot is not None and not self.snapshot.exists():
            raise UsageError(Problem(f"there is no snapshot {self.snapshot}", "netkit snapshot writes one"))
        if self.backup is not None and not (self.backup.is_dir() or self.backup.absolute().parent.is_dir()):
            raise UsageError(Problem(f"there is no folder {self.backup.parent} for --backup", "create it first"))

    def check(self, metrics: Path, report: Path) -> list[str]:
        words = [*NETKIT, "check", *self._of_fabric(), *self._by_fleet(), "--store", "--since=last", "--changes"]
        words += [f"--metrics={metrics}", f"--report={report}"]
        words += [f"--window={self.window_s}", f"--profile={self.profile}"]
        if self.source:
            words.append(f"--source={self.source}")
        if self.snapshot is not None:
            words.append(f"--from={self.snapshot}")
        if self.is_notifying:
            words.append("--notify")
        if self.every_s >= SHORTEST_BOUNDED_S:  # end in time for the next check
            words.append(f"--deadline={min(self.every_s * 4 // 5, LONGEST_S)}s")
        return words

    def saving(self) -> list[str]:
        return [*NETKIT, "backup", *self._of_fabric(), *self._by_fleet(), f"--out={self.backup}"]

    def report(self, run: str, out: Path) -> list[str]:
        return [
            *NETKIT,
            "report",
            run,
            *self._of_fabric(),
            *self._at_site(),
            "--store",
            "--format=json",
            f"--out={out}",
        ]

    def silencing(self, words: Sequence[str]) -> list[str]:
        verb, *rest = words
        lab = () if not self.lab or verb == "end" else (f"--lab={self.lab}",)
        site = self._at_site() if verb == "ack" else ()
        return [*NETKIT, "silence", verb, f"--fabric={self.folder}", *lab, *site, *rest]

    def mcp(self) -> list[str]:
        return [*NETKIT, "mcp", *self._of_fabric(), *self._at_site(), "--store"]

    def _by_fleet(self) -> tuple[str, ...]:
        return () if self.fleet is None else (f"--fleet={self.fleet}",)

    def _at_site(self) -> tuple[str, ...]:
        return (f"--site={self.site}",) if self.site else ()

    def _of_fabric(self) -> Iterator[str]:
        yield f"--fabric={self.folder}"
        if self.lab:
            yield f"--lab={self.lab}"
