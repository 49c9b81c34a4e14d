"""NAPALM driver for Linux switches with FRR, over SSH, which netkit uses too."""

import time
from collections.abc import Collection
from typing import Any

from netkit.errors import DeviceError, Problem
from netkit.platforms.change import Change
from netkit.platforms.compare import compare
from netkit.platforms.config_lines import missing
from netkit.platforms.driver import Candidate, given_text
from netkit.platforms.frr import procedure, reply
from netkit.platforms.frr.files import FRR_CONF, NETPLAN, PLACES, RELOAD
from netkit.platforms.frr.model import MODEL, PASSWORD
from netkit.platforms.frr.reader import FrrReader
from netkit.platforms.frr.staging import differing, drain_lines, left, merged, undrain_lines
from netkit.platforms.secrets import SECRET, SecretResolver
from netkit.platforms.ssh import Done

NETWORKD_S = 20
UNTIMED_S = 600  # a commit without a timer is confirmed immediately; this reverts it if netkit dies in between


class FrrDriver(FrrReader):
    """One Linux switch with FRR. Not thread-safe."""

    def __init__(
        self,
        hostname: str,
        username: str,
        password: str,
        timeout: float = 60,
        optional_args: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(hostname, username, password, timeout, optional_args)
        self._secrets = SecretResolver((optional_args or {}).get("secrets"))
        self._changes: tuple[Change, ...] = ()
        self._is_staged = self._is_kept = False

    def close(self) -> None:
        """Disconnect; a commit that waits for its confirmation keeps waiting until its timer expires."""
        if self._line.is_alive and (self._is_staged or self._is_kept):
            self.discard_config()
        super().close()

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage the files that differ, merged with the parts on the switch that netkit does not own."""
        self.discard_config()
        if candidate.changes:
            running = self._read()
            self._stage(merged(candidate.changes, running, candidate.files), running, candidate.changes)

    def load_merge_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage lines of frr.conf on top of the running ones."""
        self._load_text(given_text(filename, config), replaces=False)

    def load_replace_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage a complete frr.conf in place of the running one."""
        self._load_text(given_text(filename, config), replaces=True)

    def _load_text(self, text: str, *, replaces: bool) -> None:
        self.discard_config()
        running = self._read()
        whole = text if replaces else f"{running[FRR_CONF]}{text}"
        changes = compare(MODEL, {FRR_CONF: running[FRR_CONF]}, {FRR_CONF: whole}).changes if replaces else ()
        self._stage({FRR_CONF: whole}, running, changes)

    def _stage(self, files: dict[str, str | None], running: dict[str, str], changes: tuple[Change, ...]) -> None:
        changed = frozenset(files)
        texts = {file: self._secrets.text(text) for file, text in files.items() if text is not None}
        self._run(procedure.FRESH, "a change waits for its confirmation", "confirm it, roll it back, or wait")
        for file, text in texts.items():
            self._line.put(f"{procedure.AFTER}/{file}", text, PLACES[file].mode)
        for file in changed - texts.keys():
            self._line.put(f"{procedure.GONE}/{file}", "")
        if NETPLAN in changed:
            before, after = running.get(NETPLAN, ""), texts.get(NETPLAN, "")
            for folder, ports in ((procedure.AFTER, left(before, after)), (procedure.BEFORE, left(after, before))):
                self._line.put(f"{folder}.left", "".join(f"{port}\n" for port in ports))
        self._line.put(procedure.SCRIPT, procedure.script(changed))
        self._run(
            procedure.prepare(changed),
            "the running files cannot be saved for a rollback",
            "check whether its disk is full",
        )
        if FRR_CONF in changed:
            self._line.put(f"{procedure.BEFORE}/{FRR_CONF}", running[FRR_CONF], PLACES[FRR_CONF].mode)
        self._is_staged, self._changes = True, changes
        self._refuse_unreadable(texts.keys())

    def _refuse_unreadable(self, changed: Collection[str]) -> None:
        """Have the switch validate the new files, and those for the rollback, before anything changes."""
        if NETPLAN in changed:
            what = "netplan rejects the file"
            self._run(procedure.LOOK_AT_NETPLAN, what, "check the templates, and the version of netplan")
        if FRR_CONF in changed:
            for folder, name in ((procedure.AFTER, "intended"), (procedure.BEFORE, "running")):
                command = f"vtysh -C -f {folder}/{FRR_CONF}"
                self._run(command, f"FRR rejects the {name} configuration", "check the templates, and FRR's version")

    def _run(self, command: str, what: str, remedy: str, timeout_s: float | None = None) -> Done:
        """Run a command that must succeed."""
        done = self._line.run(command, timeout_s)
        if done.exit_code != 0:
            reason = " ".join(self._masked(done.output).split()[-60:])
            raise DeviceError(Problem(f"{self.device}: {what}{': ' if reason else ''}{reason}", remedy))
        return done

    def _masked(self, text: str) -> str:
        return self._secrets.hidden(PASSWORD.sub(rf"\1 {SECRET}", text))

    def compare_config(self) -> str:
        """Read what frr-reload.py would do, and list the changes of other files; empty if there are none."""
        if not self._is_staged:
            return ""
        found = []
        for change in self._changes:
            if change.path[0] == FRR_CONF:
                continue
            place = " ".join(change.path)
            if change.running is not None:
                found.append(f"-{place} {change.running}".rstrip() + "\n")
            if change.intended is not None:
                found.append(f"+{place} {change.intended}".rstrip() + "\n")
        command = f"[ ! -e {procedure.AFTER}/{FRR_CONF} ] || {RELOAD} --test {procedure.AFTER}/{FRR_CONF}"
        done = self._run(command, "frr-reload.py fails", "check whether FRR runs")
        return self._masked("".join([*found, *reply.differences(done.stdout)])).strip()

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply; with `revert_in`, the switch itself reverts after so many seconds, else it is kept immediately."""
        del message
        if not self._is_staged:
            raise DeviceError(Problem(f"{self.device}: nothing is staged", "load a candidate first"))
        what, remedy = "the change does not take effect", "it reverts by its timer; see journalctl"
        changes = self._changes
        try:
            self._is_staged = False
            self._run(procedure.begin(revert_in or UNTIMED_S, str(time.time_ns())), what, remedy)
            # FRR can skip a line and still report success: compare with what runs now.
            running = {file: text for file, text in self._read().items() if MODEL.reads(file)}
            left = [" / ".join(change.path) for change in missing(changes, MODEL.parse(running))]
            left = left or self._missing_in_kernel(changes)
            if left:
                what = f"{self.device}: reports that the change is applied, but does not run it: {left[0]}"
                raise DeviceError(Problem(what, remedy))
        except DeviceError:
            if revert_in is None:
                self.rollback()
            raise
        if revert_in is None:
            self._keep()
            self._is_kept = True

    def _missing_in_kernel(self, changes: tuple[Change, ...]) -> list[str]:
        """Find changes of addresses and MTUs that interfaces do not show; wait for networkd to apply them."""
        ports = tuple(change for change in changes if change.path[0] == NETPLAN)
        deadline_s = time.monotonic() + NETWORKD_S
        while left := list(differing(ports, self._links("addr"))) if ports else []:
            if time.monotonic() > deadline_s:
                break
            time.sleep(0.5)
        return left

    def has_pending_commit(self) -> bool:
        """Whether a commit waits for its confirmation, or is being reverted."""
        return self._line.run(procedure.IS_PENDING).exit_code == 0

    def confirm_commit(self) -> None:
        """Keep the change: install the files where a reboot finds them."""
        self._keep()
        self._line.run(procedure.CLEAN)

    def _keep(self) -> None:
        what, remedy = "no commit waits for a confirmation", "its timer expired: check what runs, and plan again"
        self._run(procedure.IS_WAITING, what, remedy)
        self._run(
            procedure.KEEP,
            "the change cannot be kept",
            "check whether its disk is full; the change reverts by its timer",
        )

    def discard_config(self) -> None:
        """Discard the staged change."""
        self._line.run(f"{procedure.IS_PENDING} || {procedure.CLEAN}")
        self._is_staged, self._is_kept, self._changes = False, False, ()

    def rollback(self) -> None:
        """Revert a commit that waits for its confirmation, else the last one of this object."""
        if self._is_kept or self.has_pending_commit():
            self._run(procedure.BACK, "the rollback fails", "run frr-reload.py and netplan on it by hand")
            self._line.run(procedure.CLEAN)
        self._is_staged, self._is_kept, self._changes = False, False, ()

    def drain(self) -> None:
        """Signal every neighbour to route around the switch, until `undrain` or a reboot."""
        found = self._read()
        if found.get(reply.OWN_DRAIN):
            return
        lines = drain_lines(found[FRR_CONF])
        if not lines:
            return
        self._line.put(procedure.DRAIN, lines)
        self._load_lines(procedure.DRAIN, "the switch cannot be drained")

    def undrain(self) -> None:
        """End a drain by netkit; an intended one stays."""
        own = self._line.run(f"cat {procedure.DRAIN}")
        if own.exit_code == 0:
            file = f"{procedure.DRAIN}.end"
            waiting = f"{procedure.AFTER}/{FRR_CONF}"  # a change that waits for its confirmation is there
            where = f"{procedure.IS_WAITING} && [ -e {waiting} ] && cat {waiting} || cat {PLACES[FRR_CONF].path}"
            self._line.put(file, undrain_lines(own.stdout, self._printed(where)))
            self._load_lines(file, "the drain does not end")
            self._line.run(f"rm -f {procedure.DRAIN} {file}")

    def _load_lines(self, file: str, what: str) -> None:
        self._run(f"vtysh -f {file}", what, "check whether bgpd runs")


DRIVER = FrrDriver
