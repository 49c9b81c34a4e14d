"""The NAPALM driver of community SONiC, over SSH, which netkit itself uses too."""

import json
import time
from typing import Any

from netkit.errors import DeviceError, Problem
from netkit.platforms.driver import Candidate, given_text
from netkit.platforms.secrets import SecretResolver
from netkit.platforms.sonic import procedure, tables
from netkit.platforms.sonic.reader import Intended, SonicReader, SonicState, intended, planned, reason
from netkit.platforms.ssh import Done

BACK_S, QUESTION_S = 900, 30
MOST_NAMED = 5
AS_BEFORE = "the switch runs its earlier configuration"


class SonicDriver(SonicReader):
    """A driver of one switch that runs SONiC; not thread-safe."""

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
        self._validation = ""

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage a change by the plan's method, and have the switch validate it."""
        before = self._before()
        with self._secrets.hiding():
            self._stage(planned(before, candidate, self.os_version(), self._secrets))

    def load_merge_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage tables, in JSON, on top of the running configuration."""
        self._load_text(given_text(filename, config), replaces=False)

    def load_replace_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage tables, in JSON, in place of the running configuration, if the updater accepts the difference."""
        self._load_text(given_text(filename, config), replaces=True)

    def _load_text(self, text: str, *, replaces: bool) -> None:
        before = self._before()
        try:
            loaded = tables.read(text)
        except tables.ShapeError as error:
            raise DeviceError(Problem(f"{self.device}: the configuration {error}", "write tables in JSON")) from None
        with self._secrets.hiding():
            loaded = self._secrets.tree(loaded)
            after = loaded if replaces else tables.merged(before.tables, loaded)
            self._stage(intended(before, SonicState(after, None), "patch"))

    def _before(self) -> SonicState:
        """Read the running state; refuse if a change is in progress."""
        self._staged, self._validation = None, ""
        if self.has_pending_commit():
            what = f"{self.device}: a change waits for confirmation"
            raise DeviceError(Problem(what, "confirm it, revert it, or wait until it reverts by itself"))
        return self._state()

    def _stage(self, change: Intended) -> None:
        """Write a change to the switch, and validate it there."""
        self._staged = change
        if change.is_nothing:
            return
        done = self._shell.run(procedure.staged(_files(change)))
        if done.exit_code != 0:
            self.discard_config()
            raise self._refused("no file can be written", done, "check whether its disk is full")
        done = self._shell.run(procedure.tried(change.procedure), change.procedure.longest_s)
        if done.exit_code != 0:
            self.discard_config()
            raise self._refused("refuses the configuration", done, "nothing was changed")
        self._validation = done.stdout

    def compare_config(self) -> str:
        """The patch, and the output of the dry runs of SONiC and FRR; empty if nothing changes."""
        if self._staged is None or self._staged.is_nothing:
            return ""
        patch = (json.dumps(one.item()) for one in self._staged.operations)
        return self._secrets.hidden("\n".join([*patch, self._validation.strip()]).strip())

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply; with `revert_in` seconds the switch reverts by itself unless the commit is confirmed in time.

        Without, the change is saved at once, as NAPALM requires. SONiC has no place for the message.
        """
        del message
        staged, self._previous = self._staged, None
        if staged is None:
            raise DeviceError(Problem(f"{self.device}: nothing is staged", "load a candidate first"))
        if not staged.is_nothing:
            self._apply(staged, revert_in)
        self._staged = None
        if not revert_in and not staged.is_nothing:
            self.confirm_commit()
            self._previous = staged

    def _apply(self, staged: Intended, revert_s: int | None) -> None:
        script = procedure.added({f"{procedure.STAGED}/make.sh": procedure.making(staged.procedure, revert_s)})
        script += procedure.committed(staged.procedure, revert_s)
        done = self._shell.run(script, staged.procedure.longest_s)
        if done.exit_code in {procedure.NOT_BEGUN, procedure.NOTHING_THERE}:
            self.discard_config()
            raise self._refused("the change could not start", done, AS_BEFORE)
        if done.exit_code != 0:
            raise self._taken_back(self._refused("the change was not applied", done, AS_BEFORE))
        missing = list(staged.undone(self._state()))
        if missing:
            names = ", ".join(missing[:MOST_NAMED])
            if len(missing) > MOST_NAMED:
                names += f" and {len(missing) - MOST_NAMED} more"
            what = f"{self.device}: SONiC reports the change as applied, but does not run it: {names}"
            raise self._taken_back(DeviceError(Problem(what, AS_BEFORE)))

    def _taken_back(self, error: DeviceError) -> DeviceError:
        """Revert a failed change at once; return the error to raise."""
        try:
            self.rollback()
        except DeviceError as second:
            return DeviceError((Problem(error.problems[0].message), *second.problems))
        return error

    def has_pending_commit(self) -> bool:
        """Whether the switch waits for a confirmation, or is reverting."""
        return self._shell.read(procedure.PENDING).strip() == procedure.WAITS

    def confirm_commit(self) -> None:
        """Keep the change and save it to startup, without netkit's own drain."""
        if self._previous is not None:
            return
        done = self._shell.run(procedure.confirmed())
        if done.exit_code == procedure.NOTHING_THERE:
            what = f"{self.device}: no change waits for confirmation"
            raise DeviceError(Problem(what, "it reverted when its timer ended, or the switch has restarted"))
        if done.exit_code == procedure.NOT_BEGUN:
            raise self._refused("the change cannot be saved", done, "it reverts by itself; check for a full disk")
        if done.exit_code != 0:
            raise self._refused("the change runs but is not saved", done, "fix the cause, then run config save")

    def discard_config(self) -> None:
        self._staged, self._validation = None, ""
        self._shell.run(procedure.DISCARD)

    def rollback(self) -> None:
        """Revert a commit that waits for confirmation, else the last commit of this object."""
        if self._previous is not None:
            last, self._previous = self._previous, None
            frr = last.before.frr if last.procedure.has_routing else None
            method = "reload" if last.procedure.reloads_back else "patch"
            self._stage(intended(self._before(), SonicState(last.before.tables, frr), method))
            self.commit_config()
            self._previous = None
            return
        done = self._shell.run(procedure.TAKE_BACK + procedure.AWAIT_BACK, QUESTION_S)
        # In short questions: a switch that hangs is noticed, although reverting may take minutes.
        until_s = time.monotonic() + BACK_S
        while done.stdout.strip() == procedure.WAITS and time.monotonic() < until_s:
            done = self._shell.run(procedure.AWAIT_BACK, QUESTION_S)
        if done.stdout.strip() == procedure.WAITS:
            what = f"{self.device}: still reverts its change after {BACK_S} s"
            raise DeviceError(Problem(what, "check what it runs"))
        if done.exit_code != 0:
            raise self._refused("could not revert", done, "it does not run its previous configuration: check it")

    def drain(self) -> None:
        """Start FRR's graceful shutdown, until `undrain` or a reboot.

        Not SONiC's own TSA: nothing acts on it where frr.conf or frrcfgd configures BGP.
        """
        self._run(procedure.drained(), "cannot be drained")

    def undrain(self) -> None:
        """End netkit's own drain; an intended one stays."""
        self._run(procedure.undrained(), "its drain cannot be ended")

    def _refused(self, what: str, done: Done, remedy: str) -> DeviceError:
        return DeviceError(Problem(f"{self.device}: {what}: {self._secrets.hidden(reason(done))}", remedy))

    def _run(self, script: str, what: str) -> None:
        done = self._shell.run(script)
        if done.exit_code != 0:
            raise self._refused(what, done, "check whether bgpd runs")


def _files(change: Intended) -> dict[str, str]:
    """Build the files that make the change and revert it."""
    files = {f"{procedure.STAGED}/back.sh": procedure.taking_back(change.procedure)}
    if change.procedure.method == "patch":
        patch = json.dumps([one.item() for one in change.operations])
        files[f"{procedure.STAGED}/{procedure.PATCH}"] = patch
    elif change.procedure.method:
        files[f"{procedure.STAGED}/{procedure.TABLES}"] = tables.text(change.after.tables)
    return files | ({} if change.after.frr is None else {procedure.NEXT_CONF: change.after.frr})


DRIVER = SonicDriver
