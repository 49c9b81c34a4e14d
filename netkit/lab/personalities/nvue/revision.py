"""Revisions of the configuration: pending ones per user, the applied one and the saved one."""

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

from netkit.lab.personalities.nvue.schema import Issue, NvueSchemaNode, merged
from netkit.lab.personalities.nvue.tree import Tree, difference

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


def shown(store: RevisionStore, form: str, number: str = "") -> str:
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
