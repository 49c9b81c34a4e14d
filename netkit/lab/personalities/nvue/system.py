"""A switch with NVUE: applying, confirming and reverting revisions."""

import threading
import time
from dataclasses import dataclass, field, replace

from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.nvue.revision import NvueRevision, RevisionStore, State
from netkit.lab.personalities.nvue.rules import broken
from netkit.lab.personalities.nvue.schema import CumulusSwitch, Issue, NvueSchemaNode
from netkit.lab.personalities.nvue.state import StateCache, switch_state
from netkit.lab.personalities.nvue.tree import Tree, child, is_on, known
from netkit.lab.state import SwitchState

LOGIN = "cumulus"
PASSWD, DELETED = "/etc/passwd", "passwd.deleted"


def has_account(tree: Tree) -> bool:
    """Whether the configuration has the default account."""
    return LOGIN in child(tree, "system", "aaa", "user")


def update_account(node: Node, tree: Tree) -> None:
    """Create or delete the account as configured; open connections stay."""
    file, deleted = node.file(PASSWD), node.saved / DELETED
    if not file.is_file():
        return
    lines = file.read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if line.startswith(f"{LOGIN}:")]
    if own and not has_account(tree):
        deleted.write_text("\n".join(own) + "\n", encoding="utf-8")
        file.write_text("\n".join(line for line in lines if line not in own) + "\n", encoding="utf-8")
    elif not own and has_account(tree) and deleted.is_file():
        # After root: all accounts have UID 0, and `ls` prints the first name.
        restored = deleted.read_text(encoding="utf-8").splitlines()
        file.write_text("\n".join([*lines[:1], *restored, *lines[1:]]) + "\n", encoding="utf-8")


FRR_FAILED = "Unable to reload-or-restart services (frr): Job for frr.service failed."


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A revision that is reverted unless it is confirmed."""

    number: int
    previous: int
    deadline_s: float
    timer: threading.Timer

    @property
    def left_s(self) -> int:
        return max(0, int(self.deadline_s - time.monotonic()))


class Applier:
    """Applies revisions, one at a time."""

    def __init__(self, node: Node, chassis: CumulusSwitch, store: RevisionStore) -> None:
        self.node = node
        self.chassis = chassis
        self.store = store
        self.confirmation: Confirmation | None = None
        self.fails_quietly = False
        self.booted_s = time.monotonic()
        self._lock = threading.RLock()

    def state(self, tree: Tree) -> SwitchState:
        """The state of a configuration, without ports that have no cable in the lab."""
        state = switch_state(tree, self.chassis)
        return replace(state, ports=tuple(port for port in state.ports if port.name in self.node.kernel_names))

    def boot(self) -> None:
        self.booted_s = time.monotonic()
        self._resume()

    def _resume(self) -> None:
        with self._lock:
            self._become(self.store.tree("applied"))

    def _become(self, tree: Tree) -> None:
        self.node.realise(self.state(tree))
        update_account(self.node, tree)

    def apply(self, revision: NvueRevision, message: str, confirm_s: float = 0) -> NvueRevision:
        """Apply a revision and return it with its new state."""
        with self._lock:
            tree = self.store.rebased(revision)
            issues = broken(tree, self.chassis)
            if self.confirmation and self.confirmation.number != revision.number:
                reason = f"Revision {self.confirmation.number} waits for confirmation"
                issues = [Issue("", reason, "confirm_pending")]
            if issues:
                return self._set_state(revision, "invalid", tuple(issues))
            self.store.check_room(tree)
            failure = self._realise(tree)
            if failure:
                return self._set_state(revision, "ignore_fail", (Issue("", failure, "systemctl"),))
            return self._applied(replace(revision, tree=tree, message=message or "Config update"), confirm_s)

    def _realise(self, tree: Tree) -> str:
        """Apply a configuration; after a failure restore the previous one and return the reason."""
        if self.fails_quietly:
            return FRR_FAILED
        try:
            self._become(tree)
        except (ConfigRefusedError, RuntimeError) as error:
            self._resume()
            return f"{FRR_FAILED} {error}"
        return ""

    def _applied(self, revision: NvueRevision, confirm_s: float) -> NvueRevision:
        previous = self.store.applied
        applied = replace(revision, applies=revision.applies + 1, date=time.strftime("%Y-%m-%d %H:%M:%S"), issues=())
        self.store.pending = {user: held for user, held in self.store.pending.items() if held != revision.number}
        if confirm_s and not self.confirmation:
            timer = threading.Timer(confirm_s, self._expire, (applied.number,))
            timer.daemon = True
            self.confirmation = Confirmation(applied.number, previous, time.monotonic() + confirm_s, timer)
            timer.start()
        self.store.applied = applied.number
        self.store.put(replace(applied, state="ays" if self.confirmation else "applied"))
        if not self.confirmation and is_on(applied.tree, "system", "config", "auto-save", default=True):
            self.store.save()
        return self.store.revisions[applied.number]

    def _set_state(self, revision: NvueRevision, state: State, issues: tuple[Issue, ...]) -> NvueRevision:
        changed = replace(revision, state=state, issues=issues)
        self.store.put(changed)
        return changed

    def _expire(self, number: int) -> None:
        with self._lock:
            if self.confirmation and self.confirmation.number == number:
                self.node.log(f"revision {number} was not confirmed in time")
                try:
                    self.revert()
                except (OSError, ConfigRefusedError, RuntimeError) as error:
                    self.node.log(f"revision {number} could not be reverted: {error}")

    def confirm(self) -> NvueRevision | None:
        """Confirm the pending revision, and save it if auto-save is on; None if none is pending."""
        with self._lock:
            waiting = self._end_wait()
            if not waiting:
                return None
            self.store.put(replace(self.store.revisions[waiting.number], state="applied"))
            if is_on(self.store.tree("applied"), "system", "config", "auto-save", default=True):
                self.store.save()
            return self.store.revisions[waiting.number]

    def revert(self) -> NvueRevision | None:
        """Revert the pending revision; None if none is pending."""
        with self._lock:
            waiting = self._end_wait()
            if not waiting:
                return None
            self.store.applied = waiting.previous
            self._resume()
            return self._set_state(self.store.revisions[waiting.number], "ays_fail", ())

    def _end_wait(self) -> Confirmation | None:
        waiting, self.confirmation = self.confirmation, None
        if waiting:
            waiting.timer.cancel()
        return waiting

    def save(self) -> None:
        with self._lock:
            self.store.save()

    def stop(self) -> None:
        with self._lock:
            self._end_wait()


class NvueCommandError(Exception):
    """A command that failed, with the switch's message."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class NvueSystem:
    """A switch with its configuration."""

    node: Node
    chassis: CumulusSwitch
    known: NvueSchemaNode
    store: RevisionStore
    applier: Applier
    _states: StateCache = field(default_factory=StateCache)

    @property
    def state(self) -> SwitchState:
        return self._states.of(self.applied, self.chassis)

    @property
    def applied(self) -> Tree:
        return self.store.tree("applied")

    def open_revision(self, user: str) -> tuple[NvueRevision, bool]:
        """The pending revision of a user, and whether it is new."""
        found = self.store.current(user)
        if found:
            return found, False
        revision = self.store.begin(user)
        self.store.pending[user] = revision.number
        return revision, True

    def secrets(self) -> dict[str, str]:
        trees = [self.store.startup, *(revision.tree for revision in self.store.revisions.values())]
        return dict(known(trees))


def complaint(issues: list[Issue]) -> NvueCommandError:
    """The error for rejected changes."""
    places = [f"at {issue.location}: " if issue.location else "" for issue in issues]
    lines = (f"Error: {place}{issue.reason}\n" for place, issue in zip(places, issues, strict=True))
    return NvueCommandError("".join(lines))
