"""What belongs to netkit in a device's configuration. A diff never leaves it."""

from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from netkit.platforms.config import Config, Path

NOT_OURS = -1


@dataclass(frozen=True)
class Ownership:
    """Paths netkit owns; each element may be a pattern such as `interface Ethernet*`.

    Everything at and below an `owned` path is netkit's: what is not intended goes away. A `claimed` path is netkit's
    only where the intended configuration has it: an account or a management address that netkit was not asked for
    stays. Of two patterns the longer one holds.
    """

    owned: tuple[Path, ...]
    claimed: tuple[Path, ...] = ()
    _known: dict[Path, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _reach: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reach", max(map(len, (*self.owned, *self.claimed))))

    def standing(self, path: Path) -> int:
        """Return 0 for what is owned, the length of the claim for what is claimed, less for what is not ours."""
        head = path[: self._reach]
        known = self._known.get(head)
        if known is None:
            known = self._known[head] = self._judge(head)
        return known

    def _judge(self, head: Path) -> int:
        claims = [len(pattern) for pattern in self.claimed if _matches(pattern, head)]
        holds = [len(pattern) for pattern in self.owned if _matches(pattern, head)]
        if claims and max(claims) >= max(holds, default=0):
            return max(claims)
        return 0 if holds else NOT_OURS

    def claims(self, intended: Config) -> frozenset[Path]:
        """Return what an intended configuration claims."""
        found = ((path, self.standing(path)) for path in intended)
        return frozenset(path[:length] for path, length in found if length > 0)

    def restrict(self, config: Config, claims: Collection[Path]) -> dict[Path, str]:
        """Return the part of a configuration that is netkit's."""
        standing = self.standing
        return {
            path: value
            for path, value in config.items()
            if (depth := standing(path)) == 0 or (depth > 0 and path[:depth] in claims)
        }


def _matches(pattern: Path, path: Path) -> bool:
    return len(path) >= len(pattern) and all(map(fnmatchcase, path, pattern))
