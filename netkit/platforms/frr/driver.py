"""The NAPALM driver of Linux switches with FRR, over SSH. Also what netkit itself drives such a switch by."""

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
UNTIMED_S = 600  # a commit without a timer is confirmed at once; were netkit to end in between, this takes it back


class FrrDriver(FrrReader):
    """One Linux switch with FRR. Not for several threads at once."""

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
        """Hang up; what waits for its confirmation goes on waiting, until its time is up."""
        if self._line.is_alive and (self._is_staged or self._is_kept):
            self.discard_config()
        super().close()

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage a change: the files that differ, with what on the switch is not netkit's."""
        self.discard_config()
        if candidate.changes:
            running = self._read()
            self._stage(merged(candidate.changes, running, candidate.files), running, candidate.changes)

    def load_merge_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage lines of frr.conf on top of what runs."""
        self._load_text(given_text(filename, config), replaces=False)

    def load_replace_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage a whole frr.conf instead of what runs."""
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
        self._run(procedure.FRESH, "a change waits to be confirmed", "confirm it, take it back, or wait")
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
            procedure.prepare(changed), "what runs cannot be kept for the way back", "see whether its disk is full"
        )
        if FRR_CONF in changed:
            self._line.put(f"{procedure.BEFORE}/{FRR_CONF}", running[FRR_CONF], PLACES[FRR_CONF].mode)
        self._is_staged, self._changes = True, changes
        self._refuse_unreadable(texts.keys())

    def _refuse_unreadable(self, changed: Collection[str]) -> None:
        """Have the switch look at the files, and at the way back, before anything is changed."""
        if NETPLAN in changed:
            what = "netplan does not take the file"
            self._run(procedure.LOOK_AT_NETPLAN, what, "see the templates, and the version of netplan")
        if FRR_CONF in changed:
            for folder, whose in ((procedure.AFTER, "the intended"), (procedure.BEFORE, "the running")):
                command = f"vtysh -C -f {folder}/{FRR_CONF}"
                self._run(command, f"FRR does not take {whose} configuration", "see the templates, and FRR's version")

    def _run(self, command: str, what: str, remedy: str, timeout_s: float | None = None) -> Done:
        """Run a command that must succeed."""
        done = self._line.run(command, timeout_s)
        if done.exit_code != 0:
            said = " ".join(self._shown_safely(done.said).split()[-60:])
            raise DeviceError(Problem(f"{self.device}: {what}{': ' if said else ''}{said}", remedy))
        return done

    def _shown_safely(self, text: str) -> str:
        return self._secrets.hidden(PASSWORD.sub(rf"\1 {SECRET}", text))

    def compare_config(self) -> str:
        """Return what frr-reload.py would do, and what differs in other files; empty when it is nothing."""
        if not self._is_staged:
            return ""
        found = [f"{_shown(change)}\n" for change in self._changes if change.path[0] != FRR_CONF]
        command = f"[ ! -e {procedure.AFTER}/{FRR_CONF} ] || {RELOAD} --test {procedure.AFTER}/{FRR_CONF}"
        done = self._run(command, "frr-reload.py fails", "see whether FRR runs")
        return self._shown_safely("".join([*found, *reply.differences(done.stdout)])).strip()

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply; with `revert_in` seconds the switch takes it back by itself, else it is kept at once."""
        del message
        if not self._is_staged:
            raise DeviceError(Problem(f"{self.device}: nothing is staged", "load a candidate first"))
        what, remedy = "the change does not take effect", "it goes back by its timer; see journalctl"
        changes = self._changes
        try:
            self._is_staged = False
            self._run(procedure.begin(revert_in or UNTIMED_S, str(time.time_ns())), what, remedy)
            self._refuse_unless_applied(changes)
        except DeviceError:
            if revert_in is None:
                self.rollback()
            raise
        if revert_in is None:
            self._keep()
            self._is_kept = True

    def _refuse_unless_applied(self, changes: tuple[Change, ...]) -> None:
        """Look at what runs now: FRR can leave out a line and say that all went well."""
        left = [" / ".join(change.path) for change in missing(changes, MODEL.parse(self._model_files()))]
        left = left or self._unlike_the_kernel(changes)
        if left:
            what = f"{self.device}: says the change is applied, but does not run it: {left[0]}"
            raise DeviceError(Problem(what, "it goes back by its timer; see journalctl"))

    def _unlike_the_kernel(self, changes: tuple[Change, ...]) -> list[str]:
        """Return what interfaces do not show of a change, once they have had the time for it."""
        ports = tuple(change for change in changes if change.path[0] == NETPLAN)
        deadline_s = time.monotonic() + NETWORKD_S
        while left := list(differing(ports, self._links("addr"))) if ports else []:
            if time.monotonic() > deadline_s:
                break
            time.sleep(0.5)
        return left

    def _model_files(self) -> dict[str, str]:
        return {file: text for file, text in self._read().items() if MODEL.reads(file)}

    def has_pending_commit(self) -> bool:
        """Whether the switch waits for a confirmation, or is on its way back."""
        return self._line.run(procedure.IS_PENDING).exit_code == 0

    def confirm_commit(self) -> None:
        """Keep what was applied: put the files where a reboot finds them."""
        self._keep()
        self._line.run(procedure.CLEAN)

    def _keep(self) -> None:
        what, remedy = "no commit waits for a confirmation", "its time was up: see what runs, and plan again"
        self._run(f"{procedure.IS_WAITING}", what, remedy)
        self._run(
            procedure.KEEP, "the change cannot be kept", "see whether its disk is full; it goes back by its timer"
        )

    def discard_config(self) -> None:
        """Forget what is staged."""
        self._line.run(f"{procedure.IS_PENDING} || {procedure.CLEAN}")
        self._is_staged, self._is_kept, self._changes = False, False, ()

    def rollback(self) -> None:
        """Take back a commit that waits, at once; else the last one of this object."""
        if self._is_kept or self.has_pending_commit():
            self._run(procedure.BACK, "the way back fails", "see frr-reload.py and netplan on it by hand")
            self._line.run(procedure.CLEAN)
        self._is_staged, self._is_kept, self._changes = False, False, ()

    def drain(self) -> None:
        """Ask every neighbour to send traffic elsewhere, until `undrain` or a reboot."""
        found = self._read()
        if found.get(reply.OWN_DRAIN):
            return
        lines = drain_lines(found[FRR_CONF])
        if not lines:
            return
        self._line.put(procedure.DRAIN, lines)
        self._type(procedure.DRAIN, "the switch cannot be drained")

    def undrain(self) -> None:
        """End a drain of netkit's; one that is intended stays."""
        own = self._line.run(f"cat {procedure.DRAIN}")
        if own.exit_code == 0:
            file = f"{procedure.DRAIN}.end"
            waiting = f"{procedure.AFTER}/{FRR_CONF}"  # what is tried stands there until it is kept
            where = f"{procedure.IS_WAITING} && [ -e {waiting} ] && cat {waiting} || cat {PLACES[FRR_CONF].path}"
            self._line.put(file, undrain_lines(own.stdout, self._printed(where)))
            self._type(file, "the drain does not end")
            self._line.run(f"rm -f {procedure.DRAIN} {file}")

    def _type(self, file: str, what: str) -> None:
        self._run(f"vtysh -f {file}", what, "see whether bgpd runs")


def _shown(change: Change) -> str:
    """Return a change of a file as one line."""
    place = " ".join(change.path)
    sides = (f"-{place} {change.running}" if change.running is not None else "", f"+{place} {change.intended}")
    return "\n".join(side.rstrip() for side in sides[: 1 if change.is_removal else 2] if side)


DRIVER = FrrDriver
