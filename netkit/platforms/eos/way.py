"""How changes get onto a switch that runs EOS, and what that costs."""

from collections.abc import Iterator

from netkit.platforms.change import NOTHING, Constraint, Strategy
from netkit.platforms.compare import Situation

# First word or words of a section → what applying it does beside the change itself. Unverified on a switch.
COSTS = {
    "service routing protocols model": "another routing model holds only after a reload",
    "platform trident mmu": "MMU profile: buffers of every port are laid out anew",
}


def way(situation: Situation) -> Strategy:
    """Return how the changes are made: one session, committed with a timer."""
    if not situation.changes:
        return Strategy(NOTHING)
    heads = {change.path[0] for change in situation.changes}
    costs = tuple(cost for begin, cost in COSTS.items() if any(head.startswith(begin) for head in heads))
    return Strategy("session", ("a configuration session, committed with a timer, confirmed",), costs)


def limits() -> Iterator[Constraint]:
    """Yield what changes cost, and what is refused."""
    for section, cost in COSTS.items():
        yield Constraint(section, cost)
    for form in ("no seq N permit", "no maintenance"):
        yield Constraint(form, "a form of patches that no public source shows; try it on one switch first")
