"""What belongs to netkit in a device's configuration. A diff never leaves it."""

from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path as File

import yaml

from netkit.platforms.config import Config, Path

NOT_OURS = -1
MOST_REMEMBERED = 50_000
OWNS, RENAMED = "owns.yaml", "renamed.yaml"
"""What the templates of a folder own, and names they once had with what to write instead."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A place on the way down a path: what fits it so far, and what may fit further down."""

    standing: int = NOT_OURS
    """What `Ownership.standing` says of a path that no further pattern fits."""
    held: int = 0
    """Elements of the longest pattern that owns it."""
    claim: int = 0
    """Elements of the longest pattern that claims it."""
    open: tuple[tuple[Path, bool], ...] = ()
    """Patterns that fit so far and have more elements; whether each claims."""
    depth: int = 0
    below: "dict[str, _Place]" = field(default_factory=dict, repr=False, compare=False)

    def step(self, element: str) -> "_Place":
        """Return the place an element leads to."""
        fits = [(pattern, claims) for pattern, claims in self.open if fnmatchcase(element, pattern[self.depth])]
        depth = self.depth + 1
        ended = [claims for pattern, claims in fits if len(pattern) == depth]
        held, claim = depth if False in ended else self.held, depth if True in ended else self.claim
        standing = claim if claim and claim >= held else 0 if held else NOT_OURS
        place = _Place(standing, held, claim, tuple(one for one in fits if len(one[0]) > depth), depth)
        if len(self.below) > MOST_REMEMBERED:
            self.below.clear()
        self.below[element] = place
        return place


@dataclass(frozen=True)
class Ownership:
    """Paths netkit owns; each element may be a pattern such as `interface Ethernet*`.

    Everything at and below an `owned` path is netkit's: what is not intended goes away. A `claimed` path is netkit's
    only where the intended configuration has it: an account or a management address that netkit was not asked for
    stays. Of two patterns the longer one holds.
    """

    owned: tuple[Path, ...]
    claimed: tuple[Path, ...] = ()
    _root: _Place = field(default_factory=_Place, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        patterns = (*((pattern, False) for pattern in self.owned), *((pattern, True) for pattern in self.claimed))
        object.__setattr__(self, "_root", _Place(open=patterns))

    def standing(self, path: Path) -> int:
        """Return 0 for what is owned, the length of the claim for what is claimed, less for what is not ours."""
        place = self._root
        for element in path:
            if not place.open:
                break
            place = place.below.get(element) or place.step(element)
        return place.standing

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


def shipped_templates() -> File:
    """Return the folder of the templates that come with netkit: in the wheel, or at the top of a checkout."""
    package = File(__file__).parent.parent
    inside = package / "shipped" / "templates"
    return inside if inside.is_dir() else package.parent / "templates"


def declared(folder: str) -> Ownership:
    """Return what the templates in a folder own, as their owns.yaml says."""
    text = (shipped_templates() / folder / OWNS).read_text(encoding="utf-8")
    paths = yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 (it makes text, lists and mappings only)
    owned, claimed = (tuple(tuple(path.split(" / ")) for path in paths.get(key, ())) for key in ("owned", "claimed"))
    return Ownership(owned, claimed)
