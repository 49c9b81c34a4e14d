"""What a platform must know to compare configurations, and the comparison itself: one for every NOS."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

from netkit.platforms.change import Change, Constraint, RiskTable, Strategy
from netkit.platforms.config import Config, Files, Path, digest
from netkit.platforms.ownership import Ownership
from netkit.platforms.registry import Parts
from netkit.platforms.routing import HostRoutes, RetainedRouting, Router
from netkit.platforms.secrets import has_placeholder, holds_secret, settled, without_placeholders

LONGEST_SORTED = 200  # an int() of thousands of digits is refused; what follows so much text sorts as it came
NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Situation:
    """What a platform sees when it chooses how to make changes."""

    changes: tuple[Change, ...]
    running: Config
    intended: Config
    version: str


@dataclass(frozen=True, slots=True)
class ConfigModel:
    """The configuration of one NOS: how to read it, what of it is netkit's, what changes risk, how to make them."""

    platform: str
    files: tuple[str, ...]
    """What is read and compared, as patterns of names; what netkit renders beside it is for people, or a first boot."""
    read: Callable[[Files], Config]
    """Files → canonical configuration; what it does not know stays intact. ConfigError when it cannot."""
    text: Callable[[Config], dict[str, str]]
    """Configuration → files that parse to it again."""
    ownership: Ownership
    risks: RiskTable
    strategy: Callable[[Situation], Strategy]
    constraints: tuple[Constraint, ...]
    router: Callable[[Config], Router] | None = None
    """Configuration → what it says about routing; None for hosts."""
    host_routes: Callable[[Config], HostRoutes] | None = None
    keeping: Callable[[Files, RetainedRouting], Files] | None = None
    """Intended files, and routing that is to be kept for a while → files that say both."""
    is_apart: Callable[[Path], bool] = lambda _path: False
    """Whether a device may refuse a change and keep all others: nothing depends on it, and its form is not certain."""

    def parse(self, files: Files) -> Config:
        """Return files as a configuration without secrets."""
        entries = self.read(files)
        return without_placeholders(entries) if any(map(has_placeholder, files.values())) else entries

    def reads(self, file: str) -> bool:
        """Whether a file is one to compare."""
        return any(fnmatchcase(file, pattern) for pattern in self.files)


@dataclass(frozen=True, slots=True)
class ConfigComparison:
    """A running and an intended configuration side by side, as far as they are netkit's."""

    running: Config
    intended: Config
    changes: tuple[Change, ...]
    running_digest: str
    intended_digest: str
    not_read: tuple[str, ...] = ()
    whole: Config = field(default_factory=dict, repr=False)
    """All that runs, netkit's or not."""


def compare(
    model: ConfigModel,
    running: Mapping[str, str | None],
    intended: Files,
    *,
    owner: Files | None = None,
    parse: Callable[[Files], Config] | None = None,
) -> ConfigComparison:
    """Compare what a device runs with what it should.

    A running file of None is not on the device; one that is missing was not read, and is left out of the comparison.
    `owner` is the configuration that says what is netkit's where that depends on the intended one: for the way back,
    the one that was intended on the way there. `parse` reads intended files, for whoever remembers what they say.
    """
    read = parse or model.parse
    not_read = tuple(sorted(name for name in intended if name not in running and model.reads(name)))
    wanted = read({name: text for name, text in intended.items() if name in running and model.reads(name)})
    claims = model.ownership.claims(wanted if owner is None else read(owner))
    found = {name: text for name, text in running.items() if text is not None and model.reads(name)}
    whole = model.parse(found)
    have = model.ownership.restrict(whole, claims)
    wanted = model.ownership.restrict(wanted, claims)
    if have != wanted:
        have, wanted = _settled(have, wanted)
    changes = () if have == wanted else diff(model, have, wanted)
    running_digest = digest(have)
    intended_digest = digest(wanted) if changes else running_digest
    return ConfigComparison(have, wanted, changes, running_digest, intended_digest, not_read, whole)


def diff(model: ConfigModel, running: Config, intended: Config) -> tuple[Change, ...]:
    """Return what has to change, in the order of the paths."""
    paths = {path for path, _ in running.items() ^ intended.items()}
    changes = (Change(path, running.get(path), intended.get(path)) for path in sorted(paths, key=_place))
    return tuple(model.risks.judged(changes, running))


def apply(running: Config, changes: Iterable[Change]) -> dict[Path, str]:
    """Return what a configuration becomes by changes."""
    result = dict(running)
    for change in changes:
        if change.intended is None:
            result.pop(change.path, None)
        else:
            result[change.path] = change.intended
    return result


def natural(path: Path) -> tuple[tuple[tuple[int, str], ...], ...]:
    """Return a sort key by which swp2 stands before swp10."""
    return tuple(map(_natural, path))


@lru_cache(maxsize=100_000)
def _natural(key: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in NUMBER.split(key[:LONGEST_SORTED]))


def _place(path: Path) -> tuple[object, ...]:
    """Return a sort key that keeps the entries of one place together."""
    return natural(path[:-1]), natural(path[-1:]), path


def _settled(running: dict[Path, str], intended: dict[Path, str]) -> tuple[dict[Path, str], dict[Path, str]]:
    """Mask on either side what is a secret on the other; the sides swap on the way back."""
    for one, other in ((running, intended), (intended, running)):
        differing = dict(one.items() - other.items())
        opposite = dict(other.items() - one.items())
        if differing and holds_secret(opposite):
            for path in differing:
                del one[path]
            one.update(settled(differing, opposite))
    return running, intended


MODELS: Mapping[str, ConfigModel] = Parts("model", "MODEL")
"""`linux` are the GPU hosts."""
