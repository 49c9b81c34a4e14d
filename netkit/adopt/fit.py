"""Choices that no configuration states, such as a NOS release: the one whose rendering differs least from what runs."""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from netkit import design
from netkit.adopt.fabric_values import Values
from netkit.adopt.placement import Placement
from netkit.adopt.proposal import Adoption, FoundIntent, designed, validated
from netkit.adopt.table_rows import Row
from netkit.design import Fabric
from netkit.design.select import Device
from netkit.errors import NetkitError
from netkit.platforms import PLATFORMS, version_key
from netkit.platforms.compare import MODELS, ConfigComparison, compare
from netkit.platforms.config import Files
from netkit.render import Engine, render

Path = tuple[str, ...]
Trial = tuple[int, Values, Mapping[str, list[Row]]]
"""The number of changes, with the values and tables of the intent."""
SAMPLES = 2
"""Devices of each role that are rendered to compare choices."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of the intent with its alternatives; the present one is kept where nothing speaks for another."""

    path: Path
    alternatives: tuple[object, ...]


def fitted(source: Adoption, proposal: FoundIntent, files: Mapping[str, Files], engine: Engine) -> FoundIntent:
    """Return the proposal with the alternatives that differ least from what the devices run."""
    values, fabric, tables = proposal.values, proposal.fabric, proposal.tables
    sample = _sample(fabric, proposal.placement, files)
    known: dict[object, int] = {}

    def distance(fabric: Fabric) -> int:
        """The number of changes of the sample; what is rendered as before is not compared again."""
        total = 0
        for device, intended in rendered(fabric, sample, files, engine):
            key = device.name, *intended.items()
            if key not in known:
                known[key] = len(compare(MODELS[device.platform], files[device.name], intended).changes)
            total += known[key]
        return total

    least = distance(fabric)
    named = _named_versions(source, proposal)
    for choice in _choices(proposal):
        if not named.isdisjoint((choice.path, choice.path[:-1])):
            continue
        if not least:
            break
        tried = {repr(_at(values, choice.path)): (least, values, tables)}
        for alternative in choice.alternatives:
            if repr(alternative) in tried:
                continue
            changed, rows = values, tables
            if choice.path[0] == "tables":
                rows = {**tables, "devices": _with_version(tables, choice.path[1:], alternative)}
            else:
                changed = _with(values, choice.path, alternative)
            is_release = choice.path[0] == "switches"
            with suppress(NetkitError):
                other = _with_release(fabric, changed, choice.path) if is_release else designed(source, changed, rows)
                tried[repr(alternative)] = distance(other), changed, rows
        (least, values, tables), fabric = _best(source, fabric, tried.values())
    guesses = (*proposal.guesses, *_versions(values, tables, named))
    intent = validated(values, tables)
    return replace(proposal, values=values, tables=tables, intent=intent, fabric=fabric, guesses=guesses)


def _best(source: Adoption, fabric: Fabric, tried: Collection[Trial]) -> tuple[Trial, Fabric]:
    """The least different of several choices that the design accepts, with its fabric; the first has the fabric."""
    first = next(iter(tried))
    for one in sorted(tried, key=lambda trial: trial[0]):
        if one is first:
            break
        with suppress(NetkitError):
            return one, designed(source, *one[1:])
    return first, fabric


def _with_release(fabric: Fabric, values: Values, path: Path) -> Fabric:
    """The fabric with another release of a tier, without a design of all cables and numbers, which stay."""
    role, platform, version = path[1], _at(values, (*path[:-1], "platform")), str(_at(values, path))
    return replace(
        fabric,
        switches=tuple(
            replace(one, version=version) if (one.role, one.platform) == (role, platform) else one
            for one in fabric.switches
        ),
    )


def _with_version(tables: Mapping[str, list[Row]], system: Path, version: object) -> list[Row]:
    """The rows of devices with another version of a NOS that only some switches of a tier have."""
    is_of = [(row["role"], row.get("platform")) == system for row in tables["devices"]]
    return [row | ({"version": version} if own else {}) for row, own in zip(tables["devices"], is_of, strict=True)]


def compared(
    fabric: Fabric, names: Iterable[str], files: Mapping[str, Files], engine: Engine
) -> Iterator[tuple[str, ConfigComparison]]:
    """Compare what devices run with what the fabric renders for them."""
    for device, intended in rendered(fabric, names, files, engine):
        yield device.name, compare(MODELS[device.platform], files[device.name], intended)


def rendered(
    fabric: Fabric, names: Iterable[str], files: Mapping[str, Files], engine: Engine
) -> Iterator[tuple[Device, Files]]:
    """Yield the devices that have files, with what the fabric renders for them."""
    devices = {name: device for name in names if name in files and (device := fabric.device(name))}
    for one in render(fabric, devices.values(), engine):
        yield devices[one.device], one.files


def _sample(fabric: Fabric, placement: Placement, files: Mapping[str, Files]) -> list[str]:
    """Return the first and the last devices of each role."""
    found: list[str] = []
    for role in ("leaf", "spine", "core", "host"):
        names = [name for name in placement.of_role(role) if name in files]
        found += dict.fromkeys((*names[:1], *names[-(SAMPLES - 1) :], *_first_of_each_system(fabric, names)))
    return [*found, *(switch.name for switch in fabric.switches if switch.access and switch.slot == 1)]


def _first_of_each_system(fabric: Fabric, names: Iterable[str]) -> Iterable[str]:
    """The first device of each NOS."""
    found: dict[str, str] = {}
    for device in (fabric.device(name) for name in names):
        if device:
            found.setdefault(device.platform, device.name)
    return found.values()


def _choices(proposal: FoundIntent) -> Iterator[Choice]:
    tiers = proposal.values["switches"]
    if isinstance(tiers, dict):
        platforms = {role: str(tier["platform"]) for role, tier in tiers.items()}
        for role, platform in platforms.items():
            yield Choice(("switches", role, "version"), _releases(platform))
    for role, platform in dict.fromkeys((role, platform) for role, platform, _ in _systems(proposal.tables)):
        yield Choice(("tables", role, platform), _releases(platform))
    networks = proposal.values.get("networks")
    for index, network in enumerate(networks if isinstance(networks, list) else ()):
        yield Choice(("networks", str(index), "switches", "version"), _releases(network["switches"]["platform"]))
    shape: Path = ("lossless", "cnp", "shape_percent")
    if _at(proposal.values, shape) is None:  # no switch has one, or no NOS of the fabric can
        yield Choice(shape, (10, None))
    yield Choice(("host_routes",), ("supernet", "per-leaf"))
    yield Choice(("cross_rail",), ("routed", "blocked"))
    yield Choice(("adaptive_routing",), (False, True))


def without_effect(
    source: Adoption,
    proposal: FoundIntent,
    leave: Sequence[Mapping[str, str]],
    files: Mapping[str, Files],
    engine: Engine,
    names: Iterable[str],
) -> Iterator[tuple[str, list[str]]]:
    """Yield each of these numbers of the intent whose lines are all in `leave`, with the roles of such devices."""
    values = proposal.values | {"leave": list(leave)}
    fabric = designed(source, values, proposal.tables)
    sample = [name for name in _sample(fabric, proposal.placement, files) if _leaves_anything(fabric, name)]
    before = {device.name: text for device, text in rendered(fabric, sample, files, engine)}
    known = numbers_of(values)
    for name in names:
        path, number = known[name]
        for other in (number + 1, number - 1, 2 * number):
            try:
                intent = validated(_with(values, path, other), proposal.tables)
                changed = design.with_numbers(fabric, intent, source.catalog, sample)
                after = list(rendered(changed, sample, files, engine))
            except NetkitError:
                continue
            idle = [
                proposal.placement.places[device.name].role
                for device, text in after
                if device.name in proposal.placement.places
                and text != before[device.name]
                and not compare(MODELS[device.platform], files[device.name], text).changes
            ]
            if idle:
                yield name, list(dict.fromkeys(idle))
            break


def _leaves_anything(fabric: Fabric, device: str) -> bool:
    return any(rule.devices is None or device in rule.devices for rule in fabric.leave)


def numbers_of(values: Values) -> dict[str, tuple[Path, int]]:
    """Return the numbers of an intent that change lines of devices, by their names."""
    sections = {key: values.get(key) for key in ("lossless", "routing")}
    return {".".join(map(str, path)): (path, number) for path, number in _numbers(sections)}


def _numbers(values: Mapping[str, object], path: Path = ()) -> Iterator[tuple[Path, int]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _numbers(value, (*path, key))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield (*path, key), value


def _releases(platform: str) -> tuple[str, ...]:
    known = PLATFORMS[platform]
    return tuple(sorted({*known.tested_versions, known.newest_version}, key=version_key, reverse=True))


def _at(values: Mapping[str, object], path: Path) -> object:
    found: object = values
    for key in path:
        found = found[int(key)] if isinstance(found, list) else found.get(key) if isinstance(found, dict) else None
    return found


def _with(values: Values, path: Path, value: object) -> Values:
    changed = copy.deepcopy(values)
    inner: object = changed
    for key in path[:-1]:
        inner = (
            inner[int(key)] if isinstance(inner, list) else inner.setdefault(key, {}) if isinstance(inner, dict) else {}
        )
    if isinstance(inner, dict):
        inner[path[-1]] = value
    return changed


def _named_versions(source: Adoption, proposal: FoundIntent) -> frozenset[Path]:
    """Return the tiers, and the NOSes of some of their switches, whose release is one that a switch names."""
    switches, places = source.survey.switches, proposal.placement.places
    stated = {
        (places[name].role, one.platform, one.existing.version) for name, one in switches.items() if name in places
    }
    tiers = proposal.values["switches"]
    found: set[Path] = set()
    for role, tier in tiers.items() if isinstance(tiers, dict) else ():
        found |= {("switches", role)} if (role, tier["platform"], tier["version"]) in stated else set()
    return frozenset(found | {("tables", *one[:2]) for one in _systems(proposal.tables) if one in stated})


def _systems(tables: Mapping[str, list[Row]]) -> Iterable[tuple[str, str, str]]:
    """Return each NOS that only some switches of a tier have, with the tier and the release."""
    rows = (row for row in tables.get("devices", ()) if row.get("platform"))
    return dict.fromkeys((str(row["role"]), str(row["platform"]), str(row["version"])) for row in rows)


def _versions(values: Values, tables: Mapping[str, list[Row]], named: Collection[Path]) -> Iterator[tuple[str, str]]:
    tiers = values["switches"]
    for role, tier in tiers.items() if isinstance(tiers, dict) else ():
        if ("switches", role) not in named:
            yield "switches", f"{role}: version {tier['version']}, whose rendering differs least"
    for role, platform, version in _systems(tables):
        if ("tables", role, platform) not in named:
            yield "switches", f"{role}: version {version} of {platform}, whose rendering differs least"
