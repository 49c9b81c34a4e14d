"""What every `nv` command works on: the switch, its revisions, and how one is applied."""

import threading
import time
from dataclasses import dataclass, field, replace

from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.nvue.revision import NvueRevision, RevisionStore, State
from netkit.lab.personalities.nvue.rules import broken
from netkit.lab.personalities.nvue.schema import CumulusSwitch, Issue
from netkit.lab.personalities.nvue.schema import NvueSchemaNode as Known
from netkit.lab.personalities.nvue.state import Made, switch_state
from netkit.lab.personalities.nvue.tree import Tree, child, is_on, known
from netkit.lab.state import SwitchState

LOGIN = "cumulus"
PASSWD, DELETED = "/etc/passwd", "passwd.deleted"


def exists(tree: Tree) -> bool:
    """Whether a configuration keeps the account."""
    return LOGIN in child(tree, "system", "aaa", "user")


def keep(node: Node, tree: Tree) -> None:
    """Make the account of a node what a configuration says; connections that are open stay."""
    file, deleted = node.file(PASSWD), node.saved / DELETED
    if not file.is_file():
        return
    lines = file.read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if line.startswith(f"{LOGIN}:")]
    if own and not exists(tree):
        deleted.write_text("\n".join(own) + "\n", encoding="utf-8")
        file.write_text("\n".join(line for line in lines if line not in own) + "\n", encoding="utf-8")
    elif not own and exists(tree) and deleted.is_file():
        # After root: all accounts of a node are root, which is who `ls` is to name.
        kept = deleted.read_text(encoding="utf-8").splitlines()
        file.write_text("\n".join([*lines[:1], *kept, *lines[1:]]) + "\n", encoding="utf-8")


FRR_FAILED = "Unable to reload-or-restart services (frr): Job for frr.service failed."


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A revision that goes away again unless it is confirmed."""

    number: int
    previous: int
    deadline_s: float
    timer: threading.Timer

    @property
    def left_s(self) -> int:
        """Return the seconds left."""
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
        self._turn = threading.RLock()

    def state(self, tree: Tree) -> SwitchState:
        """Return what a configuration makes of this switch: only ports with a cable exist in the lab."""
        made = switch_state(tree, self.chassis)
        return replace(made, ports=tuple(port for port in made.ports if port.name in self.node.kernel_names))

    def boot(self) -> None:
        """Run what is saved."""
        self.booted_s = time.monotonic()
        self._resume()

    def _resume(self) -> None:
        with self._turn:
            self._become(self.store.tree("applied"))

    def _become(self, tree: Tree) -> None:
        self.node.realise(self.state(tree))
        keep(self.node, tree)

    def apply(self, revision: NvueRevision, message: str, confirm_s: float = 0) -> NvueRevision:
        """Apply a revision and return what became of it."""
        with self._turn:
            tree = self.store.rebased(revision)
            issues = broken(tree, self.chassis)
            if self.confirmation and self.confirmation.number != revision.number:
                reason = f"Revision {self.confirmation.number} waits to be confirmed"
                issues = [Issue("", reason, "confirm_pending")]
            if issues:
                return self._ended(revision, "invalid", tuple(issues))
            self.store.check_room(tree)
            refusal = self._realise(tree)
            if refusal:
                return self._ended(revision, "ignore_fail", (Issue("", refusal, "systemctl"),))
            return self._applied(replace(revision, tree=tree, message=message or "Config update"), confirm_s)

    def _realise(self, tree: Tree) -> str:
        """Make a configuration real; return why not, after going back to the one before."""
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

    def _ended(self, revision: NvueRevision, state: State, issues: tuple[Issue, ...]) -> NvueRevision:
        ended = replace(revision, state=state, issues=issues)
        self.store.put(ended)
        return ended

    def _expire(self, number: int) -> None:
        with self._turn:
            if self.confirmation and self.confirmation.number == number:
                self.node.log(f"revision {number} was not confirmed in time")
                # Go back; nobody is there to tell when that fails, so the log is told.
                try:
                    self.revert()
                except (OSError, ConfigRefusedError, RuntimeError) as error:
                    self.node.log(f"going back failed: {error}")

    def confirm(self) -> NvueRevision | None:
        """Keep the revision that waits, and save it unless told not to; None when none waits."""
        with self._turn:
            waiting = self._end_wait()
            if not waiting:
                return None
            self.store.put(replace(self.store.revisions[waiting.number], state="applied"))
            if is_on(self.store.tree("applied"), "system", "config", "auto-save", default=True):
                self.store.save()
            return self.store.revisions[waiting.number]

    def revert(self) -> NvueRevision | None:
        """Go back to before the revision that waits; None when none waits."""
        with self._turn:
            waiting = self._end_wait()
            if not waiting:
                return None
            self.store.applied = waiting.previous
            self._resume()
            return self._ended(self.store.revisions[waiting.number], "ays_fail", ())

    def _end_wait(self) -> Confirmation | None:
        waiting, self.confirmation = self.confirmation, None
        if waiting:
            waiting.timer.cancel()
        return waiting

    def save(self) -> None:
        """Make what runs what the switch boots with."""
        with self._turn:
            self.store.save()

    def stop(self) -> None:
        """Forget the timer, as a switch that goes down does."""
        with self._turn:
            self._end_wait()


class NvueCommandError(Exception):
    """A command cannot be done; the text is what the switch says."""

    def __init__(self, said: str, exit_code: int = 1) -> None:
        super().__init__(said)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class NvueSystem:
    """One switch."""

    node: Node
    chassis: CumulusSwitch
    known: Known
    store: RevisionStore
    applier: Applier
    _made: Made = field(default_factory=Made)

    @property
    def state(self) -> SwitchState:
        """Return what the configuration the switch runs makes of it."""
        return self._made.of(self.applied, self.chassis)

    @property
    def applied(self) -> Tree:
        """Return the configuration the switch runs."""
        return self.store.tree("applied")

    def open_revision(self, user: str) -> tuple[NvueRevision, bool]:
        """Return the pending revision of a user, and whether it was begun just now."""
        found = self.store.current(user)
        if found:
            return found, False
        fresh = self.store.begin(user)
        self.store.pending[user] = fresh.number
        return fresh, True

    def secrets(self) -> dict[str, str]:
        """Return what each secret's token stands for."""
        trees = [self.store.startup, *(revision.tree for revision in self.store.revisions.values())]
        return dict(known(trees))


def complaint(issues: list[Issue]) -> NvueCommandError:
    """Return the error of changes that are not accepted."""
    return NvueCommandError("".join(f"Error: {_place(issue)}{issue.reason}\n" for issue in issues))


def _place(issue: Issue) -> str:
    return f"at {issue.location}: " if issue.location else ""
