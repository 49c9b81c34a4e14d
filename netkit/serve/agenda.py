"""When rounds are due: at whole multiples of the interval by the wall clock, each once or not at all. Pure."""

from dataclasses import dataclass

DAY_S = 86_400.0
NIGHT_S = 3 * 3600 + 17 * 60
"""When a day's backup is due, after midnight UTC."""
JUMP_S = 5.0


@dataclass(frozen=True, slots=True)
class Agenda:
    """Rounds at regular times."""

    every_s: float
    offset_s: float = 0.0

    def slot(self, at_s: float) -> int:
        """Return the number of the round that was due last."""
        return int((at_s - self.offset_s) // self.every_s)

    def begins_s(self, slot: int) -> float:
        """Return when a round is due."""
        return slot * self.every_s + self.offset_s

    def next_s(self, now_s: float) -> float:
        """Return when the next round is due."""
        return self.begins_s(self.slot(now_s) + 1)

    def is_due(self, settled_s: float | None, now_s: float) -> bool:
        """Whether a round is due that is not settled; a clock that went back makes one due, too."""
        return settled_s is None or self.slot(settled_s) != self.slot(now_s)

    def missed(self, settled_s: float | None, now_s: float, *, has_current: bool) -> range:
        """Return the rounds that were due since what is settled; with or without the one that is due now."""
        if settled_s is None:
            return range(0)
        return range(self.slot(settled_s) + 1, self.slot(now_s) + has_current)


def nightly() -> Agenda:
    """Return one round a night."""
    return Agenda(DAY_S, NIGHT_S)


def jump_s(wall_s: float, steady_s: float, offset_s: float) -> float:
    """Return by how much the wall clock was set since its offset to a steady one was taken; 0 for what is no jump."""
    moved_s = wall_s - steady_s - offset_s
    return moved_s if abs(moved_s) > JUMP_S else 0.0
