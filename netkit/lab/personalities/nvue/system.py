"""A switch with NVUE: revisions, how they are applied, confirmed and reverted, and what `nv show` reads."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.nvue.rules import broken
from netkit.lab.personalities.nvue.schema import BREAK, SVI, CumulusSwitch, Issue, NvueSchemaNode, merged, port_ways
from netkit.lab.personalities.nvue.state import StateCache, switch_state
from netkit.lab.personalities.nvue.tree import Tree, child, difference, is_on, known
from netkit.lab.reading import SwitchPortReading
from netkit.lab.state import PortState, SwitchState

KEPT = 100
State = Literal["pending", "applied", "applied_and_saved", "invalid", "ignore_fail", "ays", "ays_fail"]
"""`ays` waits for confirmation; `ays_fail` was not confirmed."""


class UnknownRevisionError(Exception):
    """The revision does not exist."""


@dataclass(frozen=True, slots=True)
class NvueRevision:
    """One version of the whole configuration and its state."""

    number: int
    tree: Tree
    base: Tree
    user: str
    kind: str = "CLI"
    state: State = "pending"
    date: str = ""
    message: str = ""
    applies: int = 0
    issues: tuple[Issue, ...] = ()

    @property
    def apply_id(self) -> str:
        return f"rev_{self.number}_apply_{self.applies}" if self.applies else ""


@dataclass
class RevisionStore:
    """All revisions of a switch."""

    folder: Path
    node: NvueSchemaNode
    revisions: dict[int, NvueRevision] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    applied: int = 0
    startup: Tree = field(default_factory=dict)

    def load(self, factory: Tree) -> None:
        """Read the revisions from flash; a new switch starts with the factory configuration."""
        self.pending.clear()
        self.revisions = {}
        for file in (self.folder / "revisions").glob("*.json"):
            found = json.loads(file.read_text(encoding="utf-8"))
            found["issues"] = tuple(Issue(**issue) for issue in found["issues"])
            found["state"] = "ays_fail" if found["state"] == "ays" else found["state"]
            self.revisions[found["number"]] = NvueRevision(**found)
        saved = self.folder / "startup.json"
        if not saved.exists():
            self.revisions = {1: NvueRevision(1, factory, {}, "root", state="applied_and_saved", message="Factory")}
            self.applied, self.startup = 1, factory
            self.save()
            return
        found = json.loads(saved.read_text(encoding="utf-8"))
        self.applied, self.startup = int(found["revision"]), found["tree"]
        if self.applied not in self.revisions or self.revisions[self.applied].tree != self.startup:
            self.applied = self.next_number()
            self.put(NvueRevision(self.applied, self.startup, {}, "root", state="applied_and_saved", message="Startup"))

    def save(self) -> None:
        """Save the applied configuration as the startup configuration."""
        self.startup = self.tree("applied")
        self._write("startup.json", {"revision": self.applied, "tree": self.startup})
        self.put(replace(self.revisions[self.applied], state="applied_and_saved"))

    def provision(self, tree: Tree) -> None:
        """Save a configuration without applying it."""
        self.applied = self.next_number()
        self.revisions[self.applied] = NvueRevision(self.applied, tree, {}, "root", message="Startup")
        self.save()

    def put(self, revision: NvueRevision) -> None:
        """Store a revision, on flash once it has been applied."""
        self.revisions[revision.number] = revision
        if revision.applies or revision.number == self.applied:
            # Not asdict(revision): copying the trees would take most of the time of an apply.
            values = {item.name: getattr(revision, item.name) for item in fields(revision)}
            values["issues"] = [asdict(issue) for issue in revision.issues]
            self._write(f"revisions/{revision.number}.json", values)
        for number in sorted(self.revisions)[:-KEPT]:
            if number != self.applied:
                del self.revisions[number]
                (self.folder / f"revisions/{number}.json").unlink(missing_ok=True)

    def check_room(self, tree: Tree) -> None:
        """Raise OSError if flash has no space for what an apply writes, before anything changes."""
        self._write("next.json", [tree, tree])
        (self.folder / "next.json").unlink()

    def _write(self, name: str, content: object) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        try:
            new.write_text(json.dumps(content), encoding="utf-8")
            new.rename(file)
        except OSError:
            new.unlink(missing_ok=True)
            raise

    def next_number(self) -> int:
        return max(self.revisions, default=0) + 1

    def begin(self, user: str, kind: str = "CLI") -> NvueRevision:
        """Create a pending revision based on the applied one."""
        tree = self.tree("applied")
        revision = NvueRevision(self.next_number(), tree, tree, user, kind)
        self.put(revision)
        return revision

    def current(self, user: str) -> NvueRevision | None:
        return self.revisions.get(self.pending.get(user, 0))

    def find(self, name: str, user: str = "") -> NvueRevision | None:
        """Find a revision by number, or by the names `applied` and `pending`."""
        if name == "applied":
            return self.revisions[self.applied]
        if name == "pending":
            return self.current(user)
        return self.revisions.get(int(name)) if name.isdigit() else None

    def tree(self, name: str, user: str = "") -> Tree:
        """A configuration by number or name; raise UnknownRevisionError."""
        if name in {"startup", "empty"}:
            return self.startup if name == "startup" else {}
        found = self.find(name, user)
        if found is None and name == "pending":
            return self.tree("applied")
        if found is None:
            raise UnknownRevisionError(name)
        return self.rebased(found) if name == "pending" else found.tree

    def change(self, revision: NvueRevision, patch: Tree, *, from_empty: bool = False) -> NvueRevision:
        """Change a revision, which becomes pending again."""
        tree = merged(self.node, {} if from_empty else revision.tree, patch)
        changed = replace(revision, tree=tree, state="pending", issues=())
        self.put(changed)
        return changed

    def rebased(self, revision: NvueRevision) -> Tree:
        """Apply a revision's changes to the applied configuration, which others may have changed since."""
        applied = self.tree("applied")
        if revision.base == applied or revision.state != "pending":
            return revision.tree
        changes = difference(revision.base, revision.tree)
        return merged(self.node, merged(self.node, applied, changes.removed), changes.added)


COLUMNS = ("Rev ID", "State", "Apply ID", "Apply Date", "Type", "User", "Reason", "Message")
JSON_KEYS = ("state", "apply-id", "apply-date", "type", "user", "reason", "message")


def history_text(store: RevisionStore, form: str, number: str = "") -> str:
    """Print all revisions or one."""
    if number and not (number.isdigit() and int(number) in store.revisions):
        raise UnknownRevisionError(number)
    found = [store.revisions[key] for key in sorted(store.revisions) if not number or key == int(number)]
    if form == "json":
        objects = {str(one.number): dict(zip(JSON_KEYS, _row(one)[1:], strict=True)) for one in found}
        return json.dumps(objects, indent=2) + "\n"
    rows = [COLUMNS, *(tuple(map(str, _row(revision))) for revision in found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    rows.insert(1, tuple("-" * width for width in widths))
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def _row(revision: NvueRevision) -> tuple[object, ...]:
    reason = "Config update" if revision.applies else ""
    state, date = revision.state, revision.date
    return (revision.number, state, revision.apply_id, date, revision.kind, revision.user, reason, revision.message)


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


Shown = Mapping[str, object]
MISSING = "Error: The requested item does not exist.\n"


@dataclass(frozen=True)
class NvueShowContext:
    """The state one command reads. Nothing is read before a view needs it."""

    system: NvueSystem
    names: tuple[str, ...] = ()
    view: str = ""
    whole: "NvueShowContext | None" = None
    """The context of all interfaces, whose readings those of one interface share."""

    @cached_property
    def tree(self) -> Tree:
        """The applied configuration."""
        return self.whole.tree if self.whole else self.system.applied

    @cached_property
    def state(self) -> SwitchState:
        """The switch state of the applied configuration."""
        return self.whole.state if self.whole else self.system.state

    @cached_property
    def states(self) -> Mapping[str, PortState]:
        """The state of each configured port."""
        return self.whole.states if self.whole else {port.name: port for port in self.state.ports}

    @cached_property
    def readings(self) -> Mapping[str, SwitchPortReading]:
        """The readings of each port with a cable."""
        return self.whole.readings if self.whole else {port.name: port for port in self.system.node.ports()}

    @cached_property
    def ports(self) -> tuple[str, ...]:
        """Every port of the current breakouts."""
        return self.whole.ports if self.whole else tuple(port_ways(child(self.tree, "interface"), self.system.chassis))

    @cached_property
    def interfaces(self) -> tuple[str, ...]:
        """Every interface: management, loopback, ports, split cages and VLANs."""
        if self.whole:
            return self.whole.interfaces
        configured = child(self.tree, "interface")
        others = [name for name in configured if name not in self.ports and name not in {"eth0", "lo"}]
        return ("eth0", "lo", *self.ports, *sorted(others, key=lambda name: (bool(SVI.fullmatch(name)), name)))

    @property
    def name(self) -> str:
        """The interface in the path."""
        if self.names[0] not in self.interfaces:
            raise NvueCommandError(MISSING)
        return self.names[0]

    @property
    def port(self) -> SwitchPortReading:
        """The readings of the port in the path."""
        found = self.readings.get(self.name)
        if found is None:
            raise NvueCommandError(MISSING)
        return found

    @property
    def port_state(self) -> PortState:
        """The state of the port in the path; an unconfigured one is down."""
        if self.name not in self.ports:
            raise NvueCommandError(MISSING)
        return self.states.get(self.name, PortState(self.name, is_enabled=False))

    def at(self, name: str) -> "NvueShowContext":
        """The context of another interface."""
        return NvueShowContext(self.system, (name,), self.view, self.whole or self)

    def is_since(self, *version: int) -> bool:
        return self.system.chassis.version >= version

    def word(self, *, is_on: bool) -> str:
        """On or off in the release's words."""
        words = ("disabled", "enabled") if self.system.chassis.version >= BREAK else ("off", "on")
        return words[is_on]
