"""The last runs, readable while a deploy is running: nothing is written, and no lock is taken."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from netkit.deploy.journal import JOURNAL, OUTCOME, PROVENANCE, WAVE, Journal, JournalEntry, known_provenance
from netkit.deploy.lock import is_running
from netkit.deploy.model import DeviceOutcome, Outcome, Phase
from netkit.deploy.provenance import Provenance
from netkit.errors import NetkitError

MOST_NAMED = 20
Mark = tuple[tuple[int, int], ...]
"""Size and time of a run's files: while they are the same, so is the content."""


@dataclass(frozen=True, slots=True)
class RecentRun:
    """The state or the outcome of a run."""

    run: str
    began_s: float = 0.0
    stepped_s: float = 0.0
    """The time of the last step in the journal."""
    provenance: tuple[Provenance, ...] = ()
    outcome: Outcome | None = None
    """None: the run has not finished."""
    is_running: bool | None = False
    """None: it has not finished, and this machine cannot tell whether it is running."""
    wave: int = 0
    waves: int = 0
    """Of an unfinished run, if known."""
    results: Mapping[str, int] = field(default_factory=dict)
    """Result → how many devices."""
    busy: tuple[str, ...] = ()
    """Devices that have started and not ended."""
    damage: str = ""
    """Why it cannot be read."""


@dataclass(slots=True)
class RecentRuns:
    """The last runs on a fabric, each read again only when its files have changed."""

    folder: Path
    fabric: str
    _known: dict[str, tuple[Mark, RecentRun]] = field(default_factory=dict)

    def read(self, most: int) -> tuple[RecentRun, ...]:
        """Return the last runs, newest first."""
        found = dict(self._found(most))
        self._known = found
        return tuple(one for _, one in found.values())

    def _found(self, most: int) -> Iterator[tuple[str, tuple[Mark, RecentRun]]]:
        left = most
        for folder in sorted(self.folder.glob("*/"), reverse=True) if self.folder.is_dir() else ():
            if not left:
                return
            mark = _mark(folder)
            has_begun = any(size for size, _ in mark[:2])
            runs = False if mark[1][0] else is_running(self.folder, self.fabric, folder.name)
            if not has_begun and not runs:
                continue  # it was killed before it began
            left -= 1
            known = self._known.get(folder.name)
            if known is not None and known[0] == mark and known[1].outcome is not None:
                yield folder.name, known
            else:
                yield folder.name, (mark, _read(folder, runs=runs))


def _mark(folder: Path) -> Mark:
    found = []
    for name in (JOURNAL, OUTCOME, PROVENANCE):
        try:
            stat = (folder / name).stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _read(folder: Path, *, runs: bool | None) -> RecentRun:
    journal = Journal(folder)
    try:
        entries, outcome = journal.entries(), journal.outcome()
    except NetkitError as error:
        return RecentRun(folder.name, damage=str(error))
    ended, begun = _progress(entries)
    last = next((one for one in reversed(entries) if one.step == WAVE), None)
    is_open = outcome is None
    devices = tuple(ended.values()) if outcome is None else outcome.devices
    return RecentRun(
        folder.name,
        began_s=entries[0].at_s if entries else 0.0,
        stepped_s=entries[-1].at_s if entries else 0.0,
        provenance=known_provenance(journal),
        outcome=outcome,
        is_running=runs if is_open else False,
        wave=last.wave if is_open and last is not None else 0,
        waves=int(last.note) if is_open and last is not None and last.note.isdecimal() else 0,
        results=Counter(str(one.result) for one in devices),
        busy=begun[:MOST_NAMED] if is_open else (),
    )


def _progress(entries: Sequence[JournalEntry]) -> tuple[dict[str, DeviceOutcome], tuple[str, ...]]:
    """Return the outcomes so far, and the devices that have started and not ended."""
    ended: dict[str, DeviceOutcome] = {}
    begun: dict[str, None] = {}
    for entry in entries:
        if entry.step == WAVE:
            begun[entry.device] = None
            ended.pop(entry.device, None)  # its second stage
        elif entry.step == Phase.END and entry.outcome is not None:
            ended[entry.device] = entry.outcome
            begun.pop(entry.device, None)
    return ended, tuple(begun)
