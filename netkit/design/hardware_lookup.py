"""Looks up the hardware and platforms an intent names, and checks them against each other."""

import difflib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from netkit.errors import DesignError, HardwareError, Path, Problem
from netkit.hardware import Catalog, HostModel, Media, RailNic, Split, SwitchModel
from netkit.intent.model import CableIntent, CoreTier, Intent, LeafTier, SpineTier, Unit
from netkit.platforms import PLATFORMS, version_key

SWITCH_TIERS = ("leaf", "spine", "core")
TOPOLOGY_TIERS = {"two-tier": ("leaf", "spine"), "three-tier": SWITCH_TIERS, "rail-only": ("leaf",)}


HostPorts = tuple[str, str]
"""The breakout and the media of the leaves of a unit towards hosts; empty where they are those of the fabric."""
USUAL_PORTS: HostPorts = ("", "")
Variant = tuple[str, str, str, HostPorts]
"""Tier, model, NOS, and ports towards hosts."""


@dataclass(frozen=True, slots=True)
class HostHardware:
    """A host model, and its NICs in the order of the rails."""

    model: HostModel
    rail_nics: tuple[RailNic, ...]


@dataclass(frozen=True)
class HardwareLookup:
    """An intent with its hardware looked up."""

    intent: Intent
    models: Mapping[str, SwitchModel]
    hosts: Mapping[str, "HostHardware"]
    """By name of the model: that of `hosts`, and those that units and rows of the table of devices have instead."""
    splits: Mapping[tuple[str, str], Split]
    media: Mapping[str, Media]
    mtu_bytes: int
    variants: Mapping[Variant, "HardwareLookup"] = field(default_factory=dict)
    """The same with another model, NOS or host ports in a tier, for switches that a table or a unit gives them."""
    host_ports: HostPorts = USUAL_PORTS
    written: Path = ()
    """Where the difference is written."""

    def variant(self, role: str, model: str | None, platform: str | None, unit: Unit | None = None) -> "HardwareLookup":
        """The lookup in which a tier has a model and a NOS, and leaves the host ports of their unit."""
        if not self.variants:
            return self
        tier = self.tier(role)
        ports = host_ports(self.intent, unit) if role == "leaf" else USUAL_PORTS
        return self.variants.get((role, model or tier.model, platform or tier.platform, ports), self)

    def key(self, role: str) -> Variant:
        """The key of this lookup among the variants of a tier."""
        return role, self.models[role].name, self.tier(role).platform, self.host_ports

    def host(self, unit_model: str | None, own_model: str | None) -> HostHardware:
        """The hardware of a host, by the model of its unit and the one that a table gives it."""
        return self.hosts[own_model or unit_model or self.intent.hosts.model]

    def tier(self, role: str) -> LeafTier | SpineTier | CoreTier:
        """The intent of a tier that the topology has."""
        tier: LeafTier | SpineTier | CoreTier = getattr(self.intent.switches, role)
        return tier

    def down_split(self, role: str) -> Split:
        """The breakout of the ports towards hosts or the lower tier."""
        return self.splits[(role, "host_breakout" if role == "leaf" else "breakout")]

    def up_split(self, role: str) -> Split | None:
        """The breakout of the ports towards the higher tier; None at the top."""
        return self.splits.get((role, "uplink_breakout"))


def host_ports(intent: Intent, unit: Unit | None) -> HostPorts:
    """What a unit has of its own towards hosts."""
    own = (unit.host_breakout, unit.host_media) if unit else (None, None)
    usual = (intent.switches.leaf.host_breakout, intent.cables.host.media)
    breakout, media = (one if one and one != other else "" for one, other in zip(own, usual, strict=True))
    return breakout, media


def unit_at(intent: Intent, pod: int | None, number: int | None) -> Unit | None:
    """The entry of a unit."""
    return next((one for one in intent.units if (pod or 1) in one.pod and number in one.unit), None)


def look_up(intent: Intent, catalog: Catalog) -> HardwareLookup:
    """Look up all hardware, or raise DesignError with every problem."""
    problems = list(_tiers(intent))
    if problems:
        raise DesignError(problems)
    models: dict[str, SwitchModel] = {}
    splits: dict[tuple[str, str], Split] = {}
    for role in TOPOLOGY_TIERS[intent.topology]:
        problems += _look_up_tier(intent, role, catalog, models, splits)
    media = catalog.media()
    hosts, host_problems = _hosts(intent, catalog)
    problems += _cables(intent, media)
    if problems or intent.hosts.model not in hosts:
        raise DesignError([*problems, *host_problems])
    problems += [*_speeds(intent, splits, hosts[intent.hosts.model].model, media), *_mtu(intent, models)]
    if problems:
        raise DesignError([*host_problems, *problems])
    mtu = min(_max_mtu(intent, role, model) for role, model in models.items())
    found = HardwareLookup(intent, models, hosts, splits, media, mtu)
    of_units, problems = _unit_variants(found, catalog)
    variants, row_problems = _row_variants(found, catalog, of_units)
    variants |= of_units
    speeds = () if problems else _host_speeds(replace(found, variants=variants))
    problems += [*row_problems, *host_problems, *speeds]
    if problems:
        raise DesignError(problems)
    mtu = min([mtu, *(_max_mtu(one.intent, role, one.models[role]) for (role, *_), one in variants.items())])
    variants = {key: replace(one, mtu_bytes=mtu) for key, one in variants.items()}
    return replace(found, mtu_bytes=mtu, variants=variants)


def _unit_variants(base: HardwareLookup, catalog: Catalog) -> tuple[dict[Variant, HardwareLookup], list[Problem]]:
    """Look up the host ports that units have of their own."""
    intent, found, problems = base.intent, dict[Variant, HardwareLookup](), list[Problem]()
    for index, unit in enumerate(intent.units):
        ports = host_ports(intent, unit)
        key = ("leaf", intent.switches.leaf.model, intent.switches.leaf.platform, ports)
        if ports == USUAL_PORTS or key in found:
            continue
        breakout, media = ports
        leaf = intent.switches.leaf.model_copy(update={"host_breakout": breakout} if breakout else {})
        cable = intent.cables.host.model_copy(update={"media": media} if media else {})
        changed = intent.model_copy(
            update={
                "switches": intent.switches.model_copy(update={"leaf": leaf}),
                "cables": intent.cables.model_copy(update={"host": cable}),
            }
        )
        models, splits, path = dict(base.models), dict(base.splits), ("units", index, "host_breakout")
        wrong = list(_look_up_tier(changed, "leaf", catalog, models, splits))
        if not wrong:
            path = ("units", index, "host_media" if media else "host_breakout")
            wrong = list(_of_media(changed, "host", splits[("leaf", "host_breakout")], base.media))
            if not media:
                wrong = [replace(one, remedy=f"set host_media of the unit: {one.remedy}") for one in wrong]
        problems += (replace(problem, path=path) for problem in wrong)
        found[key] = replace(
            base, intent=changed, models=models, splits=splits, host_ports=ports, written=("units", index)
        )
    return found, problems


def _row_variants(
    usual: HardwareLookup, catalog: Catalog, of_units: Mapping[Variant, HardwareLookup]
) -> tuple[dict[Variant, HardwareLookup], list[Problem]]:
    """Look up the models and NOSes that the table of devices gives single switches."""
    found, problems = dict[Variant, HardwareLookup](), list[Problem]()
    for index, entry in enumerate(usual.intent.tables.devices):
        role, row = entry.role, ("tables", "devices", index)
        if role not in usual.models or not (entry.model or entry.platform):
            continue
        unit = unit_at(usual.intent, entry.pod, entry.unit) if role == "leaf" else None
        base = replace(usual, variants=of_units).variant(role, None, None, unit)
        intent, tier = base.intent, base.tier(role)
        key = (role, entry.model or tier.model, entry.platform or tier.platform, base.host_ports)
        if key[2] != tier.platform and not entry.version:
            message = f"{tier.version} is a version of {PLATFORMS[tier.platform].title}, the NOS of the tier"
            problems.append(Problem(message, "give the version too", (*row, "platform")))
        if key[1:3] == (tier.model, tier.platform) or key in found:
            continue
        own: dict[str, object] = {"model": key[1], "platform": key[2]}
        if key[2] != tier.platform:
            own |= {"version": entry.version or PLATFORMS[key[2]].newest_version, "object_names": {}}
        models, splits = dict(base.models), dict(base.splits)
        tiers = intent.switches.model_copy(update={role: tier.model_copy(update=own)})
        changed = intent.model_copy(update={"switches": tiers})
        wrong = [*_look_up_tier(changed, role, catalog, models, splits)]
        wrong += [] if wrong else _mtu(changed, models)
        path = (*row, "model" if entry.model and entry.model != tier.model else "platform")
        for problem in wrong:
            name = str(problem.path[-1]) if problem.path else ""
            given = (*row, name) if name in own and getattr(entry, name) is not None else path
            problems.append(problem if problem.file else replace(problem, path=given))
        if not wrong and (
            models[role].name != key[1] or (models[role].name == base.models[role].name) != (key[1] == tier.model)
        ):
            message = f"the file of {key[1]} describes a model called {models[role].name}"
            problems.append(Problem(message, "give both one name", path))
        found[key] = replace(base, intent=changed, models=models, splits=splits, written=path)
    return found, problems


def _tiers(intent: Intent) -> Iterator[Problem]:
    wanted = TOPOLOGY_TIERS[intent.topology]
    for role in SWITCH_TIERS:
        tier = getattr(intent.switches, role)
        if role in wanted and tier is None:
            yield Problem(
                f"a {intent.topology} fabric needs a {role} tier",
                f"add switches.{role}, or change topology",
                ("switches",),
            )
        if role not in wanted and tier is not None:
            yield Problem(
                f"a {intent.topology} fabric has no {role} tier", "remove it, or change topology", ("switches", role)
            )
    ceiling_of = {"spine": "spines", "core": "cores"}
    for role, key in ceiling_of.items():
        if role in wanted and getattr(intent.ceilings, key) < 1:
            yield Problem(
                f"a {intent.topology} fabric needs to know how many {key} there may ever be",
                f"add {key}",
                ("ceilings",),
            )
    if intent.topology != "three-tier" and intent.ceilings.pods > 1:
        yield Problem(
            f"a {intent.topology} fabric has no pods", "remove pods, or set topology: three-tier", ("ceilings", "pods")
        )
    if intent.topology == "three-tier" and intent.switches.spine and intent.switches.spine.planes > 1:
        yield Problem(
            "spine planes belong to two-tier fabrics", "use switches.core.planes", ("switches", "spine", "planes")
        )
    yield from _needed_keys(intent, wanted)
    yield from _cross_rail(intent)
    if intent.routing.hold_s < 3 * intent.routing.keepalive_s:
        yield Problem(
            f"hold_s {intent.routing.hold_s} leaves no room for three keepalives of {intent.routing.keepalive_s} s",
            f"set hold_s to {3 * intent.routing.keepalive_s} or more, or lower keepalive_s",
            ("routing", "hold_s" if "hold_s" in intent.routing.model_fields_set else "keepalive_s"),
        )


def _needed_keys(intent: Intent, wanted: tuple[str, ...]) -> Iterator[Problem]:
    for lower, upper in itertools.pairwise(wanted):
        if getattr(intent.switches, lower) and getattr(intent.switches, lower).uplink_breakout is None:
            yield Problem(
                f"the breakout of cages of {lower} switches that face the {upper} tier is not given",
                "add uplink_breakout, such as 2x400G",
                ("switches", lower),
            )
        if getattr(intent.cables, upper) is None:
            yield Problem(
                f"no cables are given for the links between {lower} and {upper}",
                f"add {upper} with media and length_m",
                ("cables",),
            )


def _cross_rail(intent: Intent) -> Iterator[Problem]:
    if intent.cross_rail != "routed":
        return
    if intent.topology == "rail-only":
        yield Problem("a rail-only fabric cannot route between rails", "set cross_rail: blocked", ("cross_rail",))
    elif intent.topology == "two-tier" and intent.switches.spine and intent.switches.spine.planes > 1:
        yield Problem(
            "rails in different spine planes cannot reach each other",
            "set cross_rail: blocked or planes: 1",
            ("cross_rail",),
        )


def _look_up_tier(
    intent: Intent, role: str, catalog: Catalog, models: dict[str, SwitchModel], splits: dict[tuple[str, str], Split]
) -> Iterator[Problem]:
    tier, path = getattr(intent.switches, role), ("switches", role)
    try:
        model = models[role] = catalog.switch(tier.model)
    except HardwareError as error:
        yield from (_named_at(problem, (*path, "model")) for problem in error.problems)
        return
    for key in ("host_breakout", "uplink_breakout", "breakout"):
        mode = getattr(tier, key, None)
        if mode is None:
            continue
        split = model.split(mode)
        if split is None:
            offered = ", ".join(split.mode for split in model.splits)
            yield Problem(f"{model.name} has no breakout {mode}", f"use one it has: {offered}", (*path, key))
        else:
            splits[(role, key)] = split
    yield from _platform(intent, role, model)


def _platform(intent: Intent, role: str, model: SwitchModel) -> Iterator[Problem]:
    tier, path = getattr(intent.switches, role), ("switches", role)
    platform = PLATFORMS[tier.platform]
    wrong = list(version_problems(tier.platform, tier.version, tier.routing_mode, path))
    yield from model_problems(tier.platform, tier.version, model, path, is_known=not wrong)
    missing = platform.missing_lossless
    if intent.purpose == "production" and missing:
        yield Problem(
            f"{platform.title} cannot express {', '.join(missing)}, so it cannot carry a lossless production fabric",
            "choose another platform, or set purpose: lab",
            (*path, "platform"),
        )
    yield from wrong


def model_problems(name: str, version: str, model: SwitchModel, path: Path, *, is_known: bool) -> Iterator[Problem]:
    """Yield why a model cannot run a NOS; unknown versions are not judged."""
    platform = PLATFORMS[name]
    if name not in model.platforms and not platform.runs_on_any_model:
        offered = ", ".join(sorted(model.platforms)) or "none"
        remedy = f"use one it runs ({offered}), or another model"
        yield Problem(f"no source documents that {model.name} runs {platform.title}", remedy, (*path, "platform"))
    elif is_known and (unknown := platform.missing_data(model, version)):
        yield Problem(
            f"no source states {', '.join(unknown)} of {model.name} on {platform.title} {version}",
            f"add them in models/switches/{model.name}.yaml beside fabric.yaml",
            (*path, "model"),
        )


def version_problems(platform: str, version: str, routing_mode: str, path: Path) -> Iterator[Problem]:
    key, nos = version_key(version), PLATFORMS[platform]
    family, largest = version_key(nos.version_family), version_key(nos.largest_version)
    if key < version_key(nos.oldest_version) or key[: len(family)] != family or (largest and key > largest):
        remedy = f"use {nos.oldest_version} or later" + (f" within {nos.version_family}.x" if family else "")
        yield Problem(f"{nos.title} {version} is not supported", remedy, (*path, "version"))
        return
    for mode in nos.routing_modes:
        if mode.name == routing_mode and key < version_key(mode.oldest_version):
            yield Problem(
                f"{nos.title} {version} in {mode.name} mode {mode.problem}",
                f"set routing_mode: {nos.routing_modes[0].name}, or use {mode.oldest_version} or later",
                (*path, "routing_mode"),
            )


def _named_at(problem: Problem, path: Path) -> Problem:
    """Give a catalogue problem the path that names the model, unless it lies in a model file."""
    return problem if problem.file else replace(problem, path=path)


def _host_models(intent: Intent) -> Mapping[str, Path]:
    """Every host model that the intent names, and where."""
    found: dict[str, Path] = {intent.hosts.model: ("hosts", "model")}
    for index, unit in enumerate(intent.units):
        if unit.host_model:
            found.setdefault(unit.host_model, ("units", index, "host_model"))
    for index, entry in enumerate(intent.tables.devices):
        if entry.role == "host" and entry.model:
            found.setdefault(entry.model, ("tables", "devices", index, "model"))
    return found


def _hosts(intent: Intent, catalog: Catalog) -> tuple[dict[str, HostHardware], list[Problem]]:
    found, named = dict[str, HostHardware](), _host_models(intent)
    problems = list(_unused(intent, named))
    for name, path in named.items():
        try:
            model = catalog.host(name)
        except HardwareError as error:
            problems += [_named_at(problem, path) for problem in error.problems]
            continue
        nics, wrong = _rail_nics(intent, model, path)
        problems += wrong
        found[name] = HostHardware(model, nics)
    return found, problems


def _unused(intent: Intent, named: Mapping[str, Path]) -> Iterator[Problem]:
    """Yield PCI addresses of models that no host has, or that hosts.pci has."""
    for name in intent.hosts.pci_by_model:
        path: Path = ("hosts", "pci_by_model", name)
        if name == intent.hosts.model:
            yield Problem(f"{name} is hosts.model", "list its NICs as hosts.pci", path)
        elif name not in named:
            close = difflib.get_close_matches(name, named, 1)
            remedy = f"did you mean {close[0]}?" if close else "set it as host_model of a unit, or remove the line"
            yield Problem(f"no host is a {name}", remedy, path)


def _rail_nics(intent: Intent, model: HostModel, path: Path) -> tuple[tuple[RailNic, ...], list[Problem]]:
    is_main = path == ("hosts", "model")
    key: Path = ("hosts", "pci") if is_main else ("hosts", "pci_by_model", model.name)
    given = intent.hosts.pci if is_main else intent.hosts.pci_by_model.get(model.name, ())
    if given:
        if len(given) != intent.rails or len(set(given)) != intent.rails:
            message = f"lists {len(set(given))} different NICs for {intent.rails} rails"
            return (), [Problem(message, "list one PCI address per rail, in rail order", key)]
        known = {nic.pci: nic for nic in model.rails}
        return tuple(
            known.get(pci) or RailNic(pci, "", f"rdma_rail{rail}", "", None, None) for rail, pci in enumerate(given)
        ), []
    remedy = f"list the NICs in rail order as {'.'.join(map(str, key))}"
    if not model.rails:
        return (), [Problem(f"no source states the PCI addresses of {model.name}'s rail NICs", remedy, path)]
    if len(model.rails) < intent.rails:
        message = f"{model.name} has {len(model.rails)} rail NICs, the fabric {intent.rails} rails"
        return (), [Problem(message, f"lower rails, or {remedy}", ("rails",) if is_main else path)]
    return model.rails[: intent.rails], []


def cable_of(intent: Intent, kind: str) -> CableIntent:
    """The cable of a kind of link that the topology has."""
    cable: CableIntent = getattr(intent.cables, kind)
    return cable


def _cables(intent: Intent, media: Mapping[str, Media]) -> Iterator[Problem]:
    for kind in ("host", *TOPOLOGY_TIERS[intent.topology][1:]):
        unknown: set[str] = set()
        for name, at, length, path in _lengths(intent, kind):
            known = media.get(name)
            if known is None and name not in unknown:
                unknown.add(name)
                close = difflib.get_close_matches(name, media, 1, 0.6)
                remedy = f"did you mean {close[0]}?" if close else f"use one of {', '.join(sorted(media))}"
                yield Problem(f"no media {name!r}", remedy, at)
            if known is not None and known.reach_m is not None and length > known.reach_m:
                yield Problem(
                    f"{name} reaches {known.reach_m:g} m, the cable is {length:g} m",
                    "shorten it or choose other media",
                    path,
                )


def _lengths(intent: Intent, kind: str) -> Iterator[tuple[str, Path, float, Path]]:
    """Yield the media and the length of a kind of cable, each with where it is written, of the fabric and of units."""
    cable, at, path = cable_of(intent, kind), ("cables", kind, "media"), ("cables", kind, "length_m")
    yield cable.media, at, cable.length_m, path
    for index, unit in enumerate(intent.units):
        media, length_m = getattr(unit, f"{kind}_media", None), getattr(unit, f"{kind}_cable_m", None)
        if media is not None or length_m is not None:
            yield (
                media or cable.media,
                ("units", index, f"{kind}_media") if media else at,
                cable.length_m if length_m is None else length_m,
                path if length_m is None else ("units", index, f"{kind}_cable_m"),
            )


def _host_speeds(hardware: HardwareLookup) -> Iterator[Problem]:
    """Compare the NICs of the models of units and rows with the ports of their leaves."""
    intent, seen = hardware.intent, set[tuple[str, int]]()
    named: list[tuple[str, Unit | None, Path]] = [
        (
            unit.host_model or intent.hosts.model,
            unit,
            ("units", index, "host_model" if unit.host_model else "host_breakout"),
        )
        for index, unit in enumerate(intent.units)
        if unit.host_model or host_ports(intent, unit)[0]
    ]
    for index, entry in enumerate(intent.tables.devices):
        if entry.role == "host" and entry.model:
            named.append((entry.model, unit_at(intent, entry.pod, entry.unit), ("tables", "devices", index, "model")))
    for name, unit, path in named:
        speed = hardware.variant("leaf", None, None, unit).down_split("leaf").speed_gbps
        own = hardware.hosts[name].model.speed_gbps if name in hardware.hosts else speed
        if own != speed and (name, speed) not in seen:
            seen.add((name, speed))
            message = f"the NICs of {name} run at {own}G, the leaves' host ports at {speed}G"
            yield Problem(
                message, "choose a model of that speed, or give the unit its host_breakout and host_media", path
            )


def _speeds(
    intent: Intent, splits: Mapping[tuple[str, str], Split], host: HostModel, media: Mapping[str, Media]
) -> Iterator[Problem]:
    ends = {
        "host": (("leaf", "host_breakout"), host.speed_gbps, f"the NICs of {host.name}"),
        "spine": (("leaf", "uplink_breakout"), _speed(splits, ("spine", "breakout")), "switches.spine.breakout"),
        "core": (("spine", "uplink_breakout"), _speed(splits, ("core", "breakout")), "switches.core.breakout"),
    }
    for kind in ("host", *TOPOLOGY_TIERS[intent.topology][1:]):
        key, other, name = ends[kind]
        speed = splits[key].speed_gbps
        path = ("switches", *key)
        if speed != other:
            yield Problem(f"runs at {speed}G, but {name} at {other}G", "give both ends of the link one speed", path)
        yield from _of_media(intent, kind, splits[key], media)


def _of_media(intent: Intent, kind: str, split: Split, media: Mapping[str, Media]) -> Iterator[Problem]:
    """Yield why the media of a kind of cable do not fit how the cages are split."""
    cable, speed, path = media[cable_of(intent, kind).media], split.speed_gbps, ("cables", kind, "media")
    if cable.speed_gbps != speed:
        offered = (
            ", ".join(sorted(name for name, each in media.items() if each.speed_gbps == speed))
            or "none in the catalogue"
        )
        message = f"{cable.name} carries {cable.speed_gbps}G a port, the link runs at {speed}G"
        yield Problem(message, f"choose media of that speed: {offered}", path)
    elif split.ports > cable.ports_per_module:
        fitting = sorted(
            name for name, each in media.items() if each.speed_gbps == speed and each.ports_per_module == split.ports
        )
        message = f"a {cable.name} serves one port, but {split.mode} makes {split.ports} of each cage"
        yield Problem(message, f"choose media for it: {', '.join(fitting) or 'none known'}", path)


def _speed(splits: Mapping[tuple[str, str], Split], key: tuple[str, str]) -> int:
    return splits[key].speed_gbps if key in splits else 0


def _max_mtu(intent: Intent, role: str, model: SwitchModel) -> int:
    platform = getattr(intent.switches, role).platform
    own = model.platforms.get(platform, {}).get("max_mtu_bytes")
    return int(own or PLATFORMS[platform].max_mtu_bytes)


def _mtu(intent: Intent, models: Mapping[str, SwitchModel]) -> Iterator[Problem]:
    if "leaf" in models and intent.hosts.mtu_bytes > (limit := _max_mtu(intent, "leaf", models["leaf"])):
        yield Problem(
            f"hosts would send packets of {intent.hosts.mtu_bytes} bytes, the leaves take {limit}",
            f"use {limit} or less",
            ("hosts", "mtu_bytes"),
        )
