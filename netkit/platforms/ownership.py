"""The parts of a device's configuration that netkit owns. A diff never leaves them."""

from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path as File

import yaml

from netkit.platforms.config import Config, Path

NOT_OURS = -1
MOST_REMEMBERED = 50_000
OWNS, RENAMED = "owns.yaml", "renamed.yaml"
"""Files in a template folder: the paths its templates own, and former names with their replacements."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A node of the trie that matches paths against the patterns."""

    standing: int = NOT_OURS
    """`Ownership.standing` of a path that ends here."""
    held: int = 0
    """Length of the longest pattern that owns it."""
    claim: int = 0
    """Length of the longest pattern that claims it."""
    open: tuple[tuple[Path, bool], ...] = ()
    """Patterns that match so far and are longer, and whether each is a claim."""
    depth: int = 0
    below: "dict[str, _Place]" = field(default_factory=dict, repr=False, compare=False)

    def step(self, element: str) -> "_Place":
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

    netkit owns everything at and below an `owned` path and removes what is not intended. It owns a `claimed` path only
    if the intended configuration has it: an account or a management address that the intent does not name stays. Of
    two matching patterns the longer one wins.
    """

    owned: tuple[Path, ...]
    claimed: tuple[Path, ...] = ()
    _root: _Place = field(default_factory=_Place, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        patterns = (*((pattern, False) for pattern in self.owned), *((pattern, True) for pattern in self.claimed))
        object.__setattr__(self, "_root", _Place(open=patterns))

    def standing(self, path: Path) -> int:
        """Return 0 for an owned path, the length of the claim for a claimed one, NOT_OURS for any other."""
        place = self._root
        for element in path:
            if not place.open:
                break
            place = place.below.get(element) or place.step(element)
        return place.standing

    def claims(self, intended: Config) -> frozenset[Path]:
        """Find the claimed paths that an intended configuration has."""
        found = ((path, self.standing(path)) for path in intended)
        return frozenset(path[:length] for path, length in found if length > 0)

    def restrict(self, config: Config, claims: Collection[Path]) -> dict[Path, str]:
        """Drop the entries that netkit does not own."""
        standing = self.standing
        return {
            path: value
            for path, value in config.items()
            if (depth := standing(path)) == 0 or (depth > 0 and path[:depth] in claims)
        }


def shipped_templates() -> File:
    """Locate netkit's own templates: in the wheel, or at the top of a checkout."""
    package = File(__file__).parent.parent
    inside = package / "shipped" / "templates"
    return inside if inside.is_dir() else package.parent / "templates"


def declared(folder: str) -> Ownership:
    """Load the owns.yaml of a template folder."""
    text = (shipped_templates() / folder / OWNS).read_text(encoding="utf-8")
    paths = yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 (yields only strings, lists and mappings)
    owned, claimed = (tuple(tuple(path.split(" / ")) for path in paths.get(key, ())) for key in ("owned", "claimed"))
    return Ownership(owned, claimed)
