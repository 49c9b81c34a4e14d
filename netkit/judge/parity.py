"""CNP parity: the CNPs sent and received over a rail. The same sums serve checks and the health gate."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from netkit.judge.bound import most
from netkit.judge.delta import Delta

HALF = 0.5
NEEDED = ("cnp_sent", "cnp_handled")
"""Without these two of every NIC, a sum is meaningless."""
DeltaOf = Callable[[str], Delta]
"""Counter → its increase at one NIC over the window."""


class RailSum(NamedTuple):
    """CNPs of all NICs of a rail over a window."""

    sent: int
    handled: int
    ignored: int
    marked: int
    """Packets that arrived with CE."""

    @property
    def heard(self) -> int:
        """How many arrived."""
        return self.handled + self.ignored

    @property
    def loss_percent(self) -> float:
        """The part of what was sent that never arrived; negative if more arrived."""
        return (self.sent - self.heard) / max(self.sent, 1) * 100

    @property
    def astray(self) -> tuple[int, int]:
        """How many were sent and never arrived, or arrived and were never sent, and of how many."""
        return abs(self.sent - self.heard), max(self.sent, self.heard)

    @property
    def is_enough(self) -> bool:
        """Whether there were enough CNPs to notice the loss of half of them."""
        return most(0, max(self.sent, self.heard)) < HALF

    def __str__(self) -> str:
        return self.text()

    def text(self, *, has_ignored: bool = True, has_marks: bool = True) -> str:
        """The sums in words, marking those that not every NIC reports."""
        ignored = str(self.ignored) if has_ignored else "not reported by all"
        marked = str(self.marked) if has_marks else "not reported by all"
        return f"sent {self.sent}, handled {self.handled}, ignored {ignored}, CE {marked}"


def is_read(nic: DeltaOf) -> bool:
    """Whether a NIC reports the CNPs it sent and received."""
    return all(nic(name).is_known for name in NEEDED)


def rail_sum(nics: Iterable[DeltaOf]) -> RailSum:
    """The sums of NICs; ignored CNPs and marks count as 0 where a NIC does not report them."""
    rows = [[nic(name).value for name in ("cnp_sent", "cnp_handled", "cnp_ignored", "ecn_received")] for nic in nics]
    return RailSum(*(sum(column) for column in zip(*rows, strict=True))) if rows else RailSum(0, 0, 0, 0)


def skew_s(windows: Sequence[tuple[float, float]]) -> float:
    """The time in which not all of these windows counted: between their starts, and their ends."""
    begins, ends = [began_s for began_s, _ in windows], [ended_s for _, ended_s in windows]
    return max(begins) - min(begins) + max(ends) - min(ends) if windows else 0.0
