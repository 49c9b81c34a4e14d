"""The parts of a device's configuration that netkit owns. A diff never leaves them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path as File

import yaml

from netkit.platforms.config import Config, Files, Path

NOT_OURS, LEFT = -1, -2
MOST_REMEMBERED = 50_000
SEPARATOR = " / "
OWN_RULES = "ownership.yaml"
"""The file among the intended ones of a device that holds `leave` and `own` of the intent. It stays off the device."""
OWNS, RENAMED = "owns.yaml", "renamed.yaml"
"""Files in a template folder: the paths its templates own, and former names with their replacements."""


class _Kind(Enum):
    OWNED = 0
    CLAIMED = 1
    LEFT = 2


@dataclass(frozen=True, slots=True)
class _Place:
    """A node of the trie that matches paths against the patterns."""

    precedence: int = NOT_OURS
    """`Ownership.precedence` of a path that ends here."""
    held: int = 0
    """Length of the longest pattern that owns it."""
    claim: int = 0
    """Length of the longest pattern that claims it."""
    open: tuple[tuple[Path, _Kind], ...] = ()
    """Patterns that match so far and are longer."""
    depth: int = 0
    below: "dict[str, _Place]" = field(default_factory=dict, repr=False, compare=False)

    def step(self, element: str) -> "_Place":
        fits = [(pattern, kind) for pattern, kind in self.open if fnmatchcase(element, pattern[self.depth])]
        depth = self.depth + 1
        ended = [kind for pattern, kind in fits if len(pattern) == depth]
        held = depth if _Kind.OWNED in ended else self.held
        claim = depth if _Kind.CLAIMED in ended else self.claim
        precedence = claim if claim and claim >= held else 0 if held else NOT_OURS
        if _Kind.LEFT in ended:
            place = _Place(LEFT, depth=depth)
        else:
            place = _Place(precedence, held, claim, tuple(one for one in fits if len(one[0]) > depth), depth)
        if len(self.below) > MOST_REMEMBERED:
            self.below.clear()
        self.below[element] = place
        return place


@dataclass(frozen=True)
class Ownership:
    """Paths netkit owns; each element may be a pattern such as `interface Ethernet*`.

    netkit owns everything at and below an `owned` path and removes what is not intended. It owns a `claimed` path only
    if the intended configuration has it: an account or a management address that the intent does not name stays. Of
    two matching patterns the longer one wins, except that a `left` path is never touched.
    """

    owned: tuple[Path, ...]
    claimed: tuple[Path, ...] = ()
    left: tuple[Path, ...] = ()
    factory: tuple[Path, ...] = ()
    """Factory configuration of the NOS, whose removal needs no explanation."""
    _root: _Place = field(default_factory=_Place, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kinds = ((_Kind.OWNED, self.owned), (_Kind.CLAIMED, self.claimed), (_Kind.LEFT, self.left))
        patterns = tuple((pattern, kind) for kind, paths in kinds for pattern in paths)
        object.__setattr__(self, "_root", _Place(open=patterns))

    def on(self, intended: Files) -> "Ownership":
        """The ownership on one device, with `leave` and `own` of the intent."""
        return _on(self, intended[OWN_RULES]) if OWN_RULES in intended else self

    def precedence(self, path: Path) -> int:
        """0 for an owned path, the length of the claim for a claimed one, LEFT, or NOT_OURS for any other."""
        place = self._root
        for element in path:
            if not place.open:
                break
            place = place.below.get(element) or place.step(element)
        return place.precedence

    def is_factory(self, path: Path) -> bool:
        """Whether a path is, or is below, one that the NOS has from the factory."""
        return any(_fits(path, pattern) for pattern in self.factory)

    def held(self, path: Path) -> int:
        """The length of the longest owned pattern that a path matches; 0 if there is none."""
        fits = (len(one) for one in self.owned if _fits(path, one))
        return max(fits, default=0)

    def claims(self, intended: Config) -> frozenset[Path]:
        """Find the claimed paths that an intended configuration has."""
        found = ((path, self.precedence(path)) for path in intended)
        return frozenset(path[:length] for path, length in found if length > 0)

    def claim_within(self, written: str) -> str:
        """A claimed path that a written path covers or is part of; empty if there is none."""
        path = tuple(written.split(SEPARATOR))

        def meets(claim: Path) -> bool:
            pairs = zip(path, claim, strict=False)
            return all(fnmatchcase(one, other) or fnmatchcase(other, one) for one, other in pairs)

        return next((SEPARATOR.join(claim) for claim in self.claimed if meets(claim)), "")

    def restrict(self, config: Config, claims: Collection[Path]) -> dict[Path, str]:
        """Drop the entries that netkit does not own."""
        precedence = self.precedence
        return {
            path: value
            for path, value in config.items()
            if (depth := precedence(path)) == 0 or (depth > 0 and path[:depth] in claims)
        }


@lru_cache(maxsize=256)
def _on(ownership: Ownership, rules: str) -> Ownership:
    found = _paths(rules)
    own = (*found["own"], *found["static"])
    claimed = tuple(path for path in ownership.claimed if path not in own)
    return Ownership((*ownership.owned, *own), claimed, found["leave"], ownership.factory)


def unmatched(rules: str, paths: Collection[Path]) -> tuple[str, ...]:
    """The paths of OWN_RULES that match nothing of a configuration."""
    found = _paths(rules)
    patterns = dict.fromkeys((*found["leave"], *found["own"]))
    heads = {length: {path[:length] for path in paths} for length in set(map(len, patterns))}  # many paths share one
    return tuple(SEPARATOR.join(one) for one in patterns if not any(_fits(head, one) for head in heads[len(one)]))


def _fits(path: Path, pattern: Path) -> bool:
    return len(pattern) <= len(path) and all(map(fnmatchcase, path, pattern))


def rules_text(leave: Iterable[str], own: Iterable[str], static: Iterable[str] = ()) -> str:
    """Write OWN_RULES; empty without rules."""
    rules = {key: list(paths) for key, paths in (("leave", leave), ("own", own), ("static", static))}
    rules = {key: paths for key, paths in rules.items() if paths or key != "static"}
    return yaml.dump(rules, Dumper=yaml.CSafeDumper, sort_keys=False, width=4096) if any(rules.values()) else ""


def leaving(files: Files, paths: Iterable[str]) -> Files:
    """Files whose rules leave these paths besides."""
    found = {key: [SEPARATOR.join(path) for path in known] for key, known in _paths(files.get(OWN_RULES, "{}")).items()}
    leave = (*found.get("leave", ()), *paths)
    rules = rules_text(leave, found.get("own", ()), found.get("static", ()))
    return {**files, OWN_RULES: rules} if rules else files


def with_rules(files: Files, owner: Files | None) -> Files:
    """Files with the rules of those that define ownership: a rollback respects `leave` too."""
    return {**files, OWN_RULES: owner[OWN_RULES]} if owner is not None and OWN_RULES in owner else files


def shipped_templates() -> File:
    """Locate netkit's own templates: in the wheel, or at the top of a checkout."""
    package = File(__file__).parent.parent
    inside = package / "shipped" / "templates"
    return inside if inside.is_dir() else package.parent / "templates"


def declared(folder: str) -> Ownership:
    """Load the owns.yaml of a template folder."""
    text = (shipped_templates() / folder / OWNS).read_text(encoding="utf-8")
    paths = _paths(text)
    return Ownership(paths["owned"], paths["claimed"], factory=paths["factory"])


def static_routes(folder: str) -> tuple[str, ...]:
    """The paths of static routes, which are owned if the intent has a list of them."""
    text = (shipped_templates() / folder / OWNS).read_text(encoding="utf-8")
    return tuple(SEPARATOR.join(path) for path in _paths(text)["static"])


def _paths(text: str) -> Mapping[str, tuple[Path, ...]]:
    """Parse lists of paths."""
    lists = yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 (yields only strings, lists and mappings)
    found = {key: tuple(tuple(path.split(SEPARATOR)) for path in paths) for key, paths in lists.items()}
    return defaultdict(tuple, found)
