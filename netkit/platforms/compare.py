"""The configuration model each platform defines, and the comparison of configurations, which is the same for all."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache

from netkit.platforms.change import Change, Constraint, RiskTable, Strategy
from netkit.platforms.config import Config, Files, Path, digest
from netkit.platforms.ownership import LEFT, OWN_RULES, Ownership, unmatched
from netkit.platforms.registry import Parts
from netkit.platforms.routing import HostRoutes, RetainedRouting, Router
from netkit.platforms.secrets import has_placeholder, holds_secret, settled, without_placeholders

LONGEST_SORTED = 200  # int() refuses thousands of digits; anything beyond this length does not affect the order
NUMBER = re.compile(r"(\d+)")
REMEMBERED = 64
"""Configurations, each of which is compared several times in a row."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Input for a platform's choice of strategy."""

    changes: tuple[Change, ...]
    running: Config
    intended: Config
    version: str


def external(path: Path, value: str, asn: int) -> dict[Path, str]:
    """The entry of a BGP neighbor, with any AS number in place of its own."""
    return {path: "external"} if path[-1].endswith("remote-as") and value == str(asn) else {}


@dataclass(frozen=True, slots=True)
class ConfigModel:
    """The configuration of one NOS: how to parse it, what netkit owns, what changes risk, how to apply them."""

    platform: str
    files: tuple[str, ...]
    """Name patterns of the files that are compared; other rendered files are for people, or for the first boot."""
    read: Callable[[Files], Config]
    """Files → canonical configuration; unknown parts stay intact. ConfigError for an unreadable file."""
    text: Callable[[Config], dict[str, str]]
    """Configuration → files; the inverse of `read`."""
    ownership: Ownership
    risks: RiskTable
    strategy: Callable[[Situation], Strategy]
    constraints: tuple[Constraint, ...]
    router: Callable[[Config], Router] | None = None
    """Configuration → routing model; None for hosts."""
    host_routes: Callable[[Config], HostRoutes] | None = None
    keeping: Callable[[Files, RetainedRouting], Files] | None = None
    """Intended files and routing to retain temporarily → files with both."""
    any_as: Callable[[Path, str, int], dict[Path, str]] = external
    """The entry of a neighbour with an AS number → entries that accept any; none for any other entry."""
    list_file: str = ""
    """A file that lists all others: where it was read, what was not found is not there."""
    is_apart: Callable[[Path], bool] = lambda _path: False
    """Whether a device may refuse a change and keep the others: nothing depends on it, and its syntax is uncertain."""

    def parse(self, files: Files) -> Config:
        """Parse files into a configuration with placeholders masked."""
        return _parsed(self.read, tuple(files.items()))

    def reads(self, file: str) -> bool:
        """Whether a file takes part in comparisons."""
        return any(fnmatchcase(file, pattern) for pattern in self.files)


@lru_cache(maxsize=REMEMBERED)
def _parsed(read: Callable[[Files], Config], files: tuple[tuple[str, str], ...]) -> Config:
    entries = read(dict(files))
    return without_placeholders(entries) if any(has_placeholder(text) for _, text in files) else entries


@dataclass(frozen=True)
class ConfigComparison:
    """The parts of a running and an intended configuration that netkit owns, and their differences."""

    running: Config
    intended: Config
    changes: tuple[Change, ...]
    not_read: tuple[str, ...] = ()
    whole: Config = field(default_factory=dict, repr=False)
    """The complete running configuration, owned by netkit or not."""
    left: tuple[Path, ...] = ()
    """What runs and `leave` of the intent keeps."""
    left_rendered: tuple[Path, ...] = ()
    """Paths that `leave` keeps although the intended files contain them."""
    unowned: tuple[Path, ...] = ()
    """What runs and netkit neither owns, nor renders, nor leaves by request."""
    unmatched: tuple[str, ...] = ()
    """Paths of `leave` and `own` that match nothing that runs or is intended."""

    @cached_property
    def running_digest(self) -> str:
        return digest(self.running)

    @cached_property
    def intended_digest(self) -> str:
        return digest(self.intended) if self.changes else self.running_digest

    def removed(self, ownership: Ownership) -> tuple[Path, ...]:
        """What goes, apart from the NOS's own: the highest paths below which nothing stays."""
        gone = {one.path for one in self.changes if one.is_removal and not ownership.is_factory(one.path)}
        stays = (path for side in (self.intended, self.whole) for path in side if path not in gone) if gone else ()
        kept = {path[:length] for path in stays for length in range(1, len(path) + 1)}
        return tuple(dict.fromkeys(_highest(path, gone, kept, ownership.held(path)) for path in sorted(gone)))

    @property
    def held(self) -> tuple[Path, ...]:
        """The changes that would remove what is left, because the NOS replaces the section around it."""
        replaced = (change.path for change in self.changes if None not in (change.running, change.intended))
        around = {path[:length] for path in self.left for length in range(1, len(path))} if self.left else set()
        return tuple(path for path in replaced if path in around)


def compare(
    model: ConfigModel,
    running: Mapping[str, str | None],
    intended: Files,
    *,
    owner: Files | None = None,
) -> ConfigComparison:
    """Compare the running files of a device with the intended ones.

    A running file of None does not exist on the device; a missing one was not read and is not compared.
    `owner` is the configuration that determines ownership where that depends on the intended one: for a rollback, the
    one intended by the deploy.
    """
    listed = running.get(model.list_file)
    known = running.keys() | ({name for name in intended if name not in listed.split()} if listed else set())
    ownership = model.ownership.on(intended if owner is None else owner)
    missing = sorted(name for name in intended if name not in known and model.reads(name))
    left_files = [(name,) for name in missing if ownership.left and ownership.precedence((name,)) == LEFT]
    not_read = tuple(name for name in missing if (name,) not in left_files)
    wanted = model.parse({name: text for name, text in intended.items() if name in known and model.reads(name)})
    claims = ownership.claims(wanted if owner is None else model.parse(owner))
    found = {name: text for name, text in running.items() if text is not None and model.reads(name)}
    whole = model.parse(found)
    if owner is not None:  # the deploy to roll back left what netkit does not own
        owned = ownership.restrict(wanted, claims)
        whole = {**{path: value for path, value in wanted.items() if path not in owned}, **whole}
    have = ownership.restrict(whole, claims)
    others = [path for path in whole if path not in have]
    left, left_rendered = (
        tuple(path for path in side if ownership.precedence(path) == LEFT) if ownership.left else ()
        for side in (others, wanted)
    )
    rules = (intended if owner is None else owner).get(OWN_RULES, "")
    strays = unmatched(rules, {*whole, *wanted, *left_files}) if rules else ()
    unowned = tuple(set(others).difference(left, wanted))
    wanted = ownership.restrict(wanted, claims)
    for header in {path[:length] for path in left for length in range(1, len(path))}:
        if header not in wanted:  # a section stays as long as something in it is left
            have.pop(header, None)
    if have != wanted:
        have, wanted = _settled(have, wanted)
    changes = () if have == wanted else diff(model, have, wanted)
    return ConfigComparison(have, wanted, changes, not_read, whole, left, left_rendered, unowned, strays)


def _highest(path: Path, gone: Collection[Path], kept: Collection[Path], held: int) -> Path:
    """The shortest part of a path that goes as a whole, inside what one owned pattern covers."""
    heads = (path[:length] for length in range(1, len(path)))
    return next((head for head in heads if head in gone or (len(head) > held and head not in kept)), path)


def diff(model: ConfigModel, running: Config, intended: Config) -> tuple[Change, ...]:
    """List the changes from running to intended, in the order of their paths."""
    paths = _differing(running, intended).keys() | _differing(intended, running)

    def place(path: Path) -> tuple[object, ...]:
        return natural(path[:-1]), natural(path[-1:]), path  # siblings stay together

    changes = (Change(path, running.get(path), intended.get(path)) for path in sorted(paths, key=place))
    return tuple(model.risks.judged(changes, running))


def _differing(config: Config, other: Config) -> dict[Path, str]:
    """The entries that another configuration has not."""
    return {path: value for path, value in config.items() if other.get(path) != value}


def apply(running: Config, changes: Iterable[Change]) -> dict[Path, str]:
    result = dict(running)
    for change in changes:
        if change.intended is None:
            result.pop(change.path, None)
        else:
            result[change.path] = change.intended
    return result


def natural(path: Path) -> tuple[tuple[tuple[int, str], ...], ...]:
    """Sort key that orders swp2 before swp10."""
    return tuple(map(_natural, path))


@lru_cache(maxsize=100_000)
def _natural(key: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in NUMBER.split(key[:LONGEST_SORTED]))


def _settled(running: dict[Path, str], intended: dict[Path, str]) -> tuple[dict[Path, str], dict[Path, str]]:
    """Mask on each side what is a secret on the other, because a rollback swaps the sides."""
    for one, other in ((running, intended), (intended, running)):
        differing, opposite = _differing(one, other), _differing(other, one)
        if differing and holds_secret(opposite):
            for path in differing:
                del one[path]
            one.update(settled(differing, opposite))
    return running, intended


MODELS: Mapping[str, ConfigModel] = Parts("model", "MODEL")
"""`linux` is the model of GPU hosts."""
