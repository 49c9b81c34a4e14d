"""The NAPALM driver of community SONiC, over SSH. Also what netkit itself drives such a switch by."""

import json
from typing import Any

from netkit.errors import DeviceError, Problem
from netkit.platforms.driver import Candidate, given_text
from netkit.platforms.secrets import SecretResolver
from netkit.platforms.sonic import procedure, tables
from netkit.platforms.sonic.candidate import Intended, SonicState, intended, planned
from netkit.platforms.sonic.reader import SonicReader, reason
from netkit.platforms.ssh import Done

BACK_S = 900
MOST_NAMED = 5
AS_BEFORE = "the switch runs what it ran before"


class SonicDriver(SonicReader):
    """One switch that runs SONiC. Not for several threads at once."""

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
        self._staged: Intended | None = None
        self._previous: Intended | None = None
        self._tried = ""

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage a change by the method the plan chose, and ask the switch whether it takes it."""
        before = self._before()
        with self._secrets.hiding():
            self._stage(planned(before, candidate, self.os_version(), self._secrets))

    def load_merge_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage tables, in JSON, on top of what runs."""
        self._load_text(given_text(filename, config), replaces=False)

    def load_replace_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage tables, in JSON, instead of what runs, as far as the generic updater takes the difference."""
        self._load_text(given_text(filename, config), replaces=True)

    def _load_text(self, text: str, *, replaces: bool) -> None:
        before = self._before()
        try:
            given = tables.read(text)
        except tables.ShapeError as error:
            raise DeviceError(Problem(f"{self.device}: the configuration {error}", "give tables in JSON")) from None
        with self._secrets.hiding():
            given = self._secrets.tree(given)
            after = given if replaces else tables.merged(before.tables, given)
            self._stage(intended(before, SonicState(after, None), "patch"))

    def _before(self) -> SonicState:
        """Return what runs, unless a change is under way."""
        self._staged, self._tried = None, ""
        if self.has_pending_commit():
            what = f"{self.device}: a change waits for its confirmation"
            raise DeviceError(Problem(what, "confirm it, take it back, or wait until it goes back by itself"))
        return self._state()

    def _stage(self, wanted: Intended) -> None:
        """Write what is staged onto the switch, and have it tried."""
        self._staged = wanted
        if wanted.is_nothing:
            return
        how = wanted.procedure
        done = self._shell.run(procedure.staged(_files(wanted)))
        if done.exit_code != 0:
            self.discard_config()
            raise self._refused("no file can be written", done, "see whether its disk is full")
        done = self._shell.run(procedure.tried(how), how.longest_s)
        if done.exit_code != 0:
            self.discard_config()
            raise self._refused("refuses the configuration", done, "nothing was changed")
        self._tried = done.stdout

    def compare_config(self) -> str:
        """Return the patch, and what SONiC and FRR say they would do; empty when it is nothing."""
        if self._staged is None or self._staged.is_nothing:
            return ""
        patch = (json.dumps(one.item()) for one in self._staged.operations)
        return self._secrets.hidden("\n".join([*patch, self._tried.strip()]).strip())

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply; with `revert_in` seconds the switch takes it back by itself unless confirmed in time.

        Without, it is saved at once, as NAPALM has it. SONiC has no place for the message.
        """
        del message
        wanted, self._previous = self._staged, None
        if wanted is None:
            raise DeviceError(Problem(f"{self.device}: nothing is staged", "load a candidate first"))
        if not wanted.is_nothing:
            self._make(wanted, revert_in)
        self._staged = None
        if not revert_in and not wanted.is_nothing:
            self.confirm_commit()
            self._previous = wanted

    def _make(self, wanted: Intended, revert_s: int | None) -> None:
        how = wanted.procedure
        script = procedure.added({f"{procedure.STAGED}/make.sh": procedure.making(how, revert_s)})
        done = self._shell.run(script + procedure.committed(how, revert_s), how.longest_s)
        if done.exit_code in {procedure.NOT_BEGUN, procedure.NOTHING_THERE}:
            self.discard_config()
            raise self._refused("the change could not begin", done, AS_BEFORE)
        if done.exit_code != 0:
            raise self._taken_back(self._refused("the change was not applied", done, AS_BEFORE))
        missing = list(wanted.undone(self._state()))
        if missing:
            what = f"{self.device}: SONiC says the change is applied, but does not run it: {_named(missing)}"
            raise self._taken_back(DeviceError(Problem(what, AS_BEFORE)))

    def _taken_back(self, error: DeviceError) -> DeviceError:
        """Take back at once what failed; return the error to raise."""
        try:
            self.rollback()
        except DeviceError as second:
            return DeviceError((Problem(error.problems[0].message), *second.problems))
        return error

    def has_pending_commit(self) -> bool:
        """Whether the switch waits for a confirmation, or is on its way back."""
        return self._shell.read(procedure.PENDING).strip() == procedure.WAITS

    def confirm_commit(self) -> None:
        """Keep what was applied, and save it to startup; a drain of netkit's is not saved."""
        if self._previous is not None:
            return
        done = self._shell.run(procedure.confirmed())
        if done.exit_code == procedure.NOTHING_THERE:
            what = f"{self.device}: no change waits to be confirmed"
            raise DeviceError(Problem(what, "it went back when its time was up, or the switch has restarted"))
        if done.exit_code == procedure.NOT_BEGUN:
            raise self._refused("the change cannot be saved", done, "it goes back by itself; is its disk full?")
        if done.exit_code != 0:
            raise self._refused("the change runs but is not saved", done, "config save, once it can")

    def discard_config(self) -> None:
        """Forget what is staged."""
        self._staged, self._tried = None, ""
        self._shell.run(procedure.DISCARD)

    def rollback(self) -> None:
        """Take back a commit that waits, at once; else the last one of this object."""
        if self._previous is not None:
            was, self._previous = self._previous, None
            frr = was.before.frr if was.procedure.has_routing else None
            method = "reload" if was.procedure.reloads_back else "patch"
            self._stage(intended(self._before(), SonicState(was.before.tables, frr), method))
            self.commit_config()
            self._previous = None
            return
        done = self._shell.run(procedure.TAKE_BACK, BACK_S)
        if done.exit_code != 0:
            raise self._refused("could not go back", done, "it does not run what it ran before: look at it")

    def drain(self) -> None:
        """Ask every neighbour to send traffic elsewhere, until `undrain` or a reboot.

        By FRR's graceful shutdown: where FRR's file or frrcfgd makes BGP, nothing reads SONiC's own TSA.
        """
        self._told(procedure.drained(), "cannot be drained")

    def undrain(self) -> None:
        """End a drain of netkit's; one that is intended stays."""
        self._told(procedure.undrained(), "its drain cannot be ended")

    def _refused(self, what: str, done: Done, remedy: str) -> DeviceError:
        """Return the error for a change that the switch did not make."""
        return DeviceError(Problem(f"{self.device}: {what}: {self._secrets.hidden(reason(done))}", remedy))

    def _told(self, script: str, what: str) -> None:
        done = self._shell.run(script)
        if done.exit_code != 0:
            raise self._refused(what, done, "see whether bgpd runs")


def _files(wanted: Intended) -> dict[str, str]:
    """Return the files that make the change and take it back."""
    files = {f"{procedure.STAGED}/back.sh": procedure.taking_back(wanted.procedure)}
    if wanted.procedure.method == "patch":
        patch = json.dumps([one.item() for one in wanted.operations])
        files[f"{procedure.STAGED}/{procedure.PATCH}"] = patch
    elif wanted.procedure.method:
        files[f"{procedure.STAGED}/{procedure.TABLES}"] = tables.text(wanted.after.tables)
    return files | ({} if wanted.after.frr is None else {procedure.NEXT_CONF: wanted.after.frr})


def _named(missing: list[str]) -> str:
    rest = len(missing) - MOST_NAMED
    return ", ".join(missing[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


DRIVER = SonicDriver
