"""Revisions of the configuration: pending ones by user, the applied one, and the saved one, on flash."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

from netkit.lab.personalities.nvue.schema import Issue, NvueSchemaNode, merged
from netkit.lab.personalities.nvue.tree import Tree, difference

KEPT = 100
State = Literal["pending", "applied", "applied_and_saved", "invalid", "ignore_fail", "ays", "ays_fail"]
"""`ays` waits to be confirmed, `ays_fail` was not."""


class UnknownRevisionError(Exception):
    """There is no such revision."""


@dataclass(frozen=True, slots=True)
class NvueRevision:
    """One version of the whole configuration, and what became of it."""

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
        """Return the name of its last application."""
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
        """Read what is on flash; a new switch has the factory's configuration as its first revision."""
        self.pending.clear()
        self.revisions = {revision.number: revision for revision in self._read()}
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

    def _read(self) -> Iterator[NvueRevision]:
        for file in (self.folder / "revisions").glob("*.json"):
            found = json.loads(file.read_text(encoding="utf-8"))
            found["issues"] = tuple(Issue(**issue) for issue in found["issues"])
            found["state"] = "ays_fail" if found["state"] == "ays" else found["state"]
            yield NvueRevision(**found)

    def save(self) -> None:
        """Make the applied configuration the one the switch boots with."""
        self.startup = self.tree("applied")
        self._write("startup.json", {"revision": self.applied, "tree": self.startup})
        self.put(replace(self.revisions[self.applied], state="applied_and_saved"))

    def provision(self, tree: Tree) -> None:
        """Make a configuration the saved one without applying it."""
        self.applied = self.next_number()
        self.revisions[self.applied] = NvueRevision(self.applied, tree, {}, "root", message="Startup")
        self.save()

    def put(self, revision: NvueRevision) -> None:
        """Keep a revision; one that was applied goes to flash."""
        self.revisions[revision.number] = revision
        if revision.applies or revision.number == self.applied:
            # Its trees are not copied: that would take longer than all else of an apply.
            issues = [asdict(issue) for issue in revision.issues]
            plain = {item.name: getattr(revision, item.name) for item in fields(revision)} | {"issues": issues}
            self._write(f"revisions/{revision.number}.json", plain)
        for number in sorted(self.revisions)[:-KEPT]:
            if number != self.applied:
                del self.revisions[number]
                (self.folder / f"revisions/{number}.json").unlink(missing_ok=True)

    def check_room(self, tree: Tree) -> None:
        """Raise OSError while there is still nothing to undo, when flash cannot take what an apply will write."""
        self._write("next.json", [tree, tree])
        (self.folder / "next.json").unlink()

    def _write(self, name: str, content: object) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        try:
            fresh.write_text(json.dumps(content), encoding="utf-8")
            fresh.rename(file)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise

    def next_number(self) -> int:
        """Return the number of the next revision."""
        return max(self.revisions, default=0) + 1

    def begin(self, user: str, kind: str = "CLI") -> NvueRevision:
        """Return a new pending revision of a user, which starts as what is applied."""
        tree = self.tree("applied")
        revision = NvueRevision(self.next_number(), tree, tree, user, kind)
        self.put(revision)
        return revision

    def current(self, user: str) -> NvueRevision | None:
        """Return the pending revision of a user."""
        return self.revisions.get(self.pending.get(user, 0))

    def find(self, name: str, user: str = "") -> NvueRevision | None:
        """Return a revision by number, or the applied or pending one by name."""
        if name == "applied":
            return self.revisions[self.applied]
        if name == "pending":
            return self.current(user)
        return self.revisions.get(int(name)) if name.isdigit() else None

    def tree(self, name: str, user: str = "") -> Tree:
        """Return a configuration by number or name; raises UnknownRevisionError."""
        if name in {"startup", "empty"}:
            return self.startup if name == "startup" else {}
        found = self.find(name, user)
        if found is None and name == "pending":
            return self.tree("applied")
        if found is None:
            raise UnknownRevisionError(name)
        return self.rebased(found) if name == "pending" else found.tree

    def change(self, revision: NvueRevision, patch: Tree, *, from_empty: bool = False) -> NvueRevision:
        """Return a revision with changes made to it; it is pending again."""
        tree = merged(self.node, {} if from_empty else revision.tree, patch)
        changed = replace(revision, tree=tree, state="pending", issues=())
        self.put(changed)
        return changed

    def rebased(self, revision: NvueRevision) -> Tree:
        """Return what a revision makes of what is applied now, which others may have changed since it began."""
        applied = self.tree("applied")
        if revision.base == applied or revision.state != "pending":
            return revision.tree
        made = difference(revision.base, revision.tree)
        return merged(self.node, merged(self.node, applied, made.removed), made.added)


COLUMNS = ("Rev ID", "State", "Apply ID", "Apply Date", "Type", "User", "Reason", "Message")


def shown(store: RevisionStore, form: str, number: str = "") -> str:
    """Return the revisions, or one."""
    if number and not (number.isdigit() and int(number) in store.revisions):
        raise UnknownRevisionError(number)
    found = [store.revisions[key] for key in sorted(store.revisions) if not number or key == int(number)]
    if form == "json":
        return json.dumps({str(revision.number): _object(revision) for revision in found}, indent=2) + "\n"
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


def _object(revision: NvueRevision) -> dict[str, object]:
    names = ("state", "apply-id", "apply-date", "type", "user", "reason", "message")
    return dict(zip(names, _row(revision)[1:], strict=True))
