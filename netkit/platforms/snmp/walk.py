"""Walking a table by its columns at once: what to ask next, and where a column ends. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from netkit.platforms.snmp.varbind import Oid, Value, spelled

MOST_VALUES = 200_000
"""No table of a switch is so long; an agent that never ends is stopped."""
VALUES_AT_ONCE = 60
"""They fit into one or two packets, so that little is lost with one of them."""
Answer = Iterable[tuple[Oid, Value | None]]
"""Names and values in the order of the answer; without a value where the agent has none."""


class WalkError(Exception):
    """The agent answers what cannot be an answer."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk under way."""

    root: Oid
    at: Mapping[int, Oid]
    """Column that is not at its end → the last name that was seen of it."""
    found: Mapping[Oid, Value] = field(default_factory=dict)
    """Name below the root → value."""

    @classmethod
    def of(cls, root: Oid, columns: Sequence[int]) -> "Walk":
        """Begin."""
        return cls(root, {column: (*root, column) for column in columns})

    @property
    def is_over(self) -> bool:
        """Whether all columns are at their ends."""
        return not self.at

    @property
    def repetitions(self) -> int:
        """Return how many rows to ask for."""
        return max(1, VALUES_AT_ONCE // max(1, len(self.at)))

    def after(self, answer: Answer) -> "Walk":
        """Return the walk after an answer, whose values go round the columns that were asked for."""
        asked = tuple(self.at)
        at, found, is_empty = dict(self.at), dict(self.found), True
        for position, (name, value) in enumerate(answer):
            is_empty = False
            column = asked[position % len(asked)]
            if column not in at:
                continue
            if value is None or name[: len(self.root) + 1] != (*self.root, column):
                del at[column]
                continue
            if name <= at[column]:
                raise WalkError(f"it goes in circles at {spelled(name)}")
            at[column] = name
            found[name[len(self.root) :]] = value
        if is_empty:
            raise WalkError("it answers without a value")
        if len(found) > MOST_VALUES:
            raise WalkError(f"it has more than {MOST_VALUES} values")
        return Walk(self.root, at, found)
