"""The NAPALM driver of NVUE, over SSH or REST, which netkit itself uses too."""

import json
from typing import Any

from netkit.errors import DeviceError, Problem
from netkit.platforms.config import Files
from netkit.platforms.driver import Candidate, given_text
from netkit.platforms.nvue import drain, transport
from netkit.platforms.nvue.dialects import dialect
from netkit.platforms.nvue.model import FILE, MODEL
from netkit.platforms.nvue.patch import NvuePatch, Tree, asks_what_runs, documents, entries, filled, users, whole
from netkit.platforms.nvue.reader import MergeRefusedError, NvueReader, ReplaceRefusedError
from netkit.platforms.nvue.shell import ShellTransport
from netkit.platforms.nvue.transport import ConfirmedState
from netkit.platforms.secrets import SecretResolver

# Without these, a whole-tree replace deletes netkit's own account, or the access to it (Cumulus Linux user guide).
LIFELINES = (("system", "aaa", "user"), ("system", "api"), ("system", "ssh-server"), ("interface", "eth0"))
DRAINING, UNDRAINING = "netkit: drain", "netkit: as before, and saved"


class NvueDriver(NvueReader):
    """A driver of one switch that runs NVUE; not thread-safe."""

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
        self._steps: list[NvuePatch] = []
        """The patches of a change that takes several applies."""
        self._users: tuple[str, ...] = ()
        """The configuration of SNMPv3 users, in the forms to try."""
        self._left_out: tuple[str, ...] = ()
        self._revision = ""
        self._previous = ""

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage a change as a patch, or the whole configuration if the method is `replace`."""
        self._left_out = ()
        if candidate.method == "replace":
            self._refuse_cutting_off(candidate.files)
            self._stage(whole(candidate.files), replaces=True)
            self._stage_users(users(candidate.files))
            return
        text = self._text or self._transport.config()
        running = MODEL.parse(transport.as_files(text)) if asks_what_runs(candidate.changes) else {}
        first, *others = documents(candidate.files, candidate.changes, running)
        if others and not isinstance(self._transport, ShellTransport):
            raise DeviceError(
                Problem(f"{self.device}: changing the breakout of a cage takes two applies", "use the transport ssh")
            )
        is_intended = any(change.path == drain.SHUTDOWN for change in candidate.changes)
        if is_intended:
            applied, startup = drain.tree_of(text), drain.tree_of(self._transport.config("startup"))
            if drain.is_own(applied, startup):  # from now on the intent decides whether the drain ends
                first = first.joined(drain.back(startup, applied, drain.AUTO_SAVE))
        self._stage(first)
        self._stage_users(users(candidate.files, candidate.changes))
        has_change = bool(first.items() or self._users)
        may_guard = has_change and not is_intended and not self.confirms_first
        is_guarded = may_guard and drain.is_own(*self._applied_and_startup())
        self._steps = [first, *others] if others or is_guarded else []

    @property
    def confirms_first(self) -> bool:
        """Whether a drain can only end after the confirmation: NVUE accepts no apply while one waits for it.

        Over SSH a drained switch uses netkit's own timer instead, as for a change of several applies.
        """
        return not isinstance(self._transport, ShellTransport)

    def _stage(self, document: NvuePatch, *, replaces: bool = False) -> None:
        self._revision, self._steps = "", []
        if not document.items() and not replaces:
            return
        with self._secrets.hiding():
            with_secrets = NvuePatch(document.unset, self._secrets.tree(document.set))
            self._revision = self._transport.stage(with_secrets, replaces=replaces)

    def _stage_users(self, forms: tuple[str, ...]) -> None:
        """Stage SNMPv3 users last, in the form the switch accepts: which one that is, is not documented."""
        self._users = forms
        if not forms:
            return
        first, second = (filled(form, self._secrets) for form in forms)
        with self._secrets.hiding():
            try:
                if self._revision:
                    self._transport.add(self._revision, first)
                else:
                    self._revision = self._transport.stage_text(first)
            except DeviceError:
                self._stage_users_as_rendered(second)

    def _stage_users_as_rendered(self, text: str) -> None:
        if not self._revision:
            self._revision = self._transport.stage_text(text)
            return
        try:
            with self._secrets.hiding():
                self._transport.add(self._revision, text)
        except DeviceError as error:
            why = error.problems[0].message.removeprefix(f"{self.device}: ")
            self._left_out = (f"everything is applied except SNMPv3 users: the switch {why}",)

    def left_out(self) -> tuple[str, ...]:
        return self._left_out

    def _refuse_cutting_off(self, files: Files) -> None:
        """Refuse a whole configuration without the account or the interfaces that netkit connects with."""
        needed = (*LIFELINES, (*LIFELINES[0], self.username))
        heads = {path[:length] for path in entries(files) for length in range(1, 5)}
        missing = [".".join(path) for path in needed if path not in heads]
        if missing:
            what = f"{self.device}: replacing everything would cut it off: {', '.join(missing)} is not in the intent"
            raise DeviceError(Problem(what, "use a patch, or add them to the templates"))

    def load_merge_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage a file or text on top of the running configuration: YAML, or `nv set` and `nv unset` lines."""
        try:
            self._load_text(given_text(filename, config), replaces=False)
        except DeviceError as error:
            raise MergeRefusedError(error.problems) from None

    def load_replace_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage a file or text in place of the running configuration."""
        text = given_text(filename, config)
        try:
            self._refuse_cutting_off({FILE: text})
            self._load_text(text, replaces=True)
        except DeviceError as error:
            raise ReplaceRefusedError(error.problems) from None

    def _load_text(self, text: str, *, replaces: bool) -> None:
        self._revision, self._steps = "", []
        with self._secrets.hiding():
            self._revision = self._transport.stage_text(filled(text, self._secrets), replaces=replaces)

    def compare_config(self) -> str:
        """The switch's own diff of the staged revision; empty if there is none."""
        if not self._revision:
            return ""
        found = self._transport.difference("applied", self._revision)
        return "" if transport.is_empty_difference(found) else self._secrets.hidden(json.dumps(found, indent=1))

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply; with `revert_in` seconds the switch reverts by itself unless the commit is confirmed in time."""
        if not self._revision:
            raise DeviceError(Problem(f"{self.device}: nothing is staged", "load a candidate first"))
        self._forget()
        with self._secrets.hiding():
            if self._steps:
                self._apply_in_steps(message, revert_in)
            else:
                self._previous = "" if revert_in else self._transport.applied()
                self._apply(message, revert_in)
        self._revision, self._steps = "", []

    def _apply(self, message: str, revert_in: int | None) -> None:
        self._refuse_unless_applied(self._transport.apply(self._revision, message, revert_in))

    def _apply_in_steps(self, message: str, revert_in: int | None) -> None:
        """Apply several patches in a row, under netkit's own revert timer on the switch."""
        steps, self._previous = self._steps, self._transport.applied()
        if not revert_in or not isinstance(self._transport, ShellTransport):
            for step in steps:
                self._stage_step(step, is_last=step is steps[-1])
                self._apply(message, None)
            return
        if not self._previous:
            what = f"{self.device}: no revision equals the applied configuration, so there is nothing to revert to"
            raise DeviceError(Problem(what, "apply any change by hand, then try again"))
        unsaved = drain.unsaved(dialect(self.os_version()))
        self._transport.guard.arm(self._previous, revert_in)
        try:
            for step in steps:
                self._stage_step(step.joined(unsaved), is_last=step is steps[-1])
                self._refuse_unless_applied(self._transport.apply_guarded(self._revision, message))
        except DeviceError:
            if self._transport.is_waiting():
                self._transport.abort()
            raise

    def _stage_step(self, document: NvuePatch, *, is_last: bool) -> None:
        self._stage(document)
        if is_last:
            self._stage_users(self._users)

    def _refuse_unless_applied(self, difference: object) -> None:
        """Refuse a difference to what was staged: an apply can fail and still report success."""
        if not transport.is_empty_difference(difference):
            what = f"{self.device}: the switch reports the change as applied, but does not run it"
            raise DeviceError(Problem(what, "check nv config history and the log of nvued"))

    def has_pending_commit(self) -> bool:
        return self._transport.is_waiting()

    def confirm_commit(self) -> None:
        """Confirm and save; while netkit drains the switch, saving is left to the end of the drain."""
        with self._secrets.hiding():
            kept = self._transport.confirm()
            if kept is ConfirmedState.SAVED:
                return
            applied, startup = self._applied_and_startup()
            if drain.is_own(applied, startup):
                return
            if kept is ConfirmedState.UNSAVED_ON_PURPOSE:
                self._change(drain.back(startup, applied, drain.AUTO_SAVE), UNDRAINING)
            self._transport.save()

    def _applied_and_startup(self) -> tuple[Tree, Tree]:
        return drain.tree_of(self._transport.config()), drain.tree_of(self._transport.config("startup"))

    def discard_config(self) -> None:
        self._transport.discard()
        self._revision, self._steps = "", []

    def rollback(self) -> None:
        """Revert a commit that waits for confirmation, else the last commit of this object."""
        self._forget()
        if self._transport.is_waiting():
            with self._secrets.hiding():
                self._transport.abort()
            if self._transport.is_waiting():
                what = f"{self.device}: still waits for a confirmation after a request to revert"
                raise DeviceError(Problem(what, "it reverts when its timer ends"))
        elif self._previous:
            self._revision, self._previous = self._previous, ""
            with self._secrets.hiding():
                self._apply("netkit: rollback", None)
            self._revision = ""

    def drain(self) -> None:
        """Start a graceful shutdown of BGP, until `undrain` or a reboot."""
        if drain.is_drained(drain.tree_of(self._transport.config())):
            return
        self._change(drain.begun(dialect(self.os_version())), DRAINING)

    def undrain(self) -> None:
        """End netkit's own drain; an intended one stays."""
        applied, startup = self._applied_and_startup()
        if drain.is_own(applied, startup):
            if self._transport.is_waiting():  # nothing is saved before it is confirmed
                self._change(drain.back(startup, applied, drain.SHUTDOWN), UNDRAINING)
                return
            self._change(drain.ended(startup, applied), UNDRAINING)
            self._transport.save()

    def _change(self, document: NvuePatch, message: str) -> None:
        self._stage(document)
        self._forget()
        with self._secrets.hiding():
            if isinstance(self._transport, ShellTransport) and self._transport.is_waiting():
                self._refuse_unless_applied(self._transport.apply_guarded(self._revision, message))
            else:
                self._apply(message, None)
        self._revision = ""


DRIVER = NvueDriver
