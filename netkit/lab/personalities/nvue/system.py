"""What every command works on: the switch, its revisions, and the one that applies them."""

from dataclasses import dataclass, field

from netkit.lab.node import Node
from netkit.lab.personalities.nvue.apply import Applier
from netkit.lab.personalities.nvue.revision import NvueRevision, RevisionStore
from netkit.lab.personalities.nvue.schema import CumulusSwitch, Issue
from netkit.lab.personalities.nvue.schema import NvueSchemaNode as Known
from netkit.lab.personalities.nvue.state import Made
from netkit.lab.personalities.nvue.tree import Tree, known
from netkit.lab.state import SwitchState


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
