"""Running and intended configurations → a plan. Pure: what was read is handed in."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from netkit import __version__
from netkit.design.fabric import Fabric, Host, Switch
from netkit.errors import ConfigError, PlanError, Problem
from netkit.plan import blast
from netkit.plan.group import grouped
from netkit.plan.model import (
    Blast,
    Bridge,
    Detour,
    DevicePlan,
    Partial,
    Plan,
    ReachabilityLoss,
    RoutingChange,
    Running,
    Unreachable,
    UnreadDevice,
)
from netkit.plan.order import best_order
from netkit.plan.retain import detours, with_entries
from netkit.platforms import HOSTS
from netkit.platforms.change import NOTHING, REFUSED, Risk, Strategy
from netkit.platforms.compare import MODELS, ConfigComparison, ConfigModel, Situation, apply, compare, natural
from netkit.platforms.config import Files
from netkit.platforms.ownership import OWN_RULES, SEPARATOR
from netkit.platforms.routing import HostRoutes, RetainedRouting, Router
from netkit.platforms.secrets import masked_line
from netkit.routing.designed import prefixes_of, router_of

Known = MutableMapping[str, str]
"""Pairs of texts already compared equal, and the digest of their content: see netkit.plan.serial."""

ROUTING_WORDS = re.compile(
    r"addr|aggregate|bgp|bridge|graceful|interface|ipv4|loopback|maint|member|neighbor|netplan|network|path"
    r"|prefix|quiesce|redistribute|route|routing|shutdown|vlan",
    re.IGNORECASE,
)
"""Words in the paths of everything that affects routes on any NOS; extra matches only cost time."""
NO_ROUTING = re.compile(r"description|qos|mtu|ecn|pfc|buffer|queue", re.IGNORECASE)
MOST_NAMED = 5
NOT_ASKED = "its configuration was not read"
NOTHING_READ = "none of its files was read"


def make(
    fabric: Fabric,
    devices: Mapping[str, Running | Unreachable],
    intended: Mapping[str, Files],
    *,
    owner: Mapping[str, Files] | None = None,
    known: Known | None = None,
    is_part: bool = False,
    explain: bool = False,
) -> Plan:
    """What has to change on each device that has intended files, and in which order.

    A device that could not be read is listed, never assumed unchanged. `owner`: see netkit.platforms.compare.compare.
    With `explain`, what would be removed is listed as unexplained: see netkit.deploy.resume.

    A part of a plan has neither groups nor an order: `grouped` and `ordered` make them once all parts are there.
    """
    unknown = sorted(set(devices) - set(intended)) or sorted(name for name in intended if fabric.device(name) is None)
    if unknown:
        remedy = "plan with the files of the same fabric"
        raise PlanError(Problem(f"{unknown[0]}: no device of fabric {fabric.name} with intended files", remedy))
    plans: list[DevicePlan] = []
    missed: list[UnreadDevice] = []
    for name, files in intended.items():
        read = devices.get(name, Unreachable(NOT_ASKED))
        if isinstance(read, Running):
            planned = _device(fabric, name, read, files, owner[name] if owner else None, known, explain=explain)
        else:
            planned = read
        if isinstance(planned, Unreachable):
            missed.append(UnreadDevice(name, planned.reason))
        else:
            plans.append(planned)
    plan = Plan(fabric.name, tuple(plans), tuple(missed), () if is_part else grouped(fabric, plans), __version__)
    if is_part:
        return plan
    return ordered(fabric, plan, sides_of(devices, intended, owner), is_back=owner is not None)


@dataclass(frozen=True, slots=True)
class Sides:
    """What a device runs, and what it should run."""

    running: Running
    intended: Files
    owner: Files | None = None


Others = Callable[[], tuple[Plan, Callable[[str], Sides]]]
"""The part of a plan that a limit leaves out, and both configurations of its devices."""


ReadBeside = Callable[[], Mapping[str, Running | Unreachable]]
"""What devices run that a plan leaves as they are."""


def sides_of(
    devices: Mapping[str, Running | Unreachable],
    intended: Mapping[str, Files],
    owner: Mapping[str, Files] | None = None,
) -> Callable[[str], Sides]:
    def sides(name: str) -> Sides:
        running = devices[name]
        if isinstance(running, Unreachable):
            raise PlanError(Problem(f"{name}: {running.reason}", "make the plan again"))
        return Sides(running, intended[name], owner[name] if owner else None)

    return sides


def ordered(
    fabric: Fabric,
    plan: Plan,
    sides: Callable[[str], Sides],
    *,
    before: Sequence[Fabric] = (),
    others: Others | None = None,
    is_back: bool = False,
    beside: ReadBeside = dict,
) -> Plan:
    """A plan with the order of its devices; `is_back`: that of a rollback.

    `sides` is called only for devices that change in two stages, or have lines that netkit does not own. `before` are
    fabrics whose cables may still be there. `others` is called where routing changes: it returns the part of the plan
    that a limit leaves out, and what devices that could not be read are known to run; these are among its unreachable
    ones as well. The sessions of other switches that were not read count as down.
    `beside` is called where routing changes, and returns what devices outside the plan run.
    """
    if not plan.changed:
        return plan
    has_routing = any(device.routing is not None for device in plan.changed)
    parts = [(plan, sides)]
    rest: Sequence[DevicePlan] = ()
    unread: set[str] = set()
    unknown: dict[str, DevicePlan] = {}
    linked: frozenset[str] = frozenset()
    moved = {host for device in plan.changed for host in device.blast.moved}
    found = beside() if has_routing else {}
    stay = {name: routing for name, one in found.items() if (routing := _routing_read(fabric, name, one)) is not None}
    if others and (has_routing or moved):
        parts.append(others())
        part, _ = parts[-1]
        rest = part.changed
        read = [*plan.devices, *part.devices]
        unread = {one.name for one in (*plan.unreachable, *part.unreachable)} | (found.keys() - stay.keys())
        missed = unread - {one.name for one in part.devices} - stay.keys() if has_routing else set()
        unknown = {name: _unread(fabric, fabric.switch(name)) for name in sorted(missed) if _has_rails(fabric, name)}
        linked = _linked([fabric, *before], read, unknown)
    is_felt = has_routing or any(device.blast.ports for device in plan.changed)
    order, steps = best_order(
        fabric,
        plan.changed,
        before,
        [*rest, *unknown.values()],
        may_take=writable(fabric, sides),
        staying=stay
        | {
            name: router
            for one, sides_of_one in (parts if is_felt else ())
            for name, router in _staying(fabric, one, sides_of_one, is_back=is_back)
        },
    )
    staged = {name for step in steps if step.stage for name in step.devices}
    every = (_bridge(fabric, name, order.kept[name], sides(name)) for name in order.kept if name in staged)
    bridges = tuple(bridge for bridge in every if bridge.then.changes)
    devices = tuple(replace(device, routing=None) for device in plan.devices)
    partial = _with_moved(order.partial(), moved, rest)
    return replace(
        plan,
        devices=devices,
        steps=tuple(order.staged(steps, bridges)),
        bridges=bridges,
        gone=order.gone(),
        partial=replace(partial, is_unread=unread.issuperset(partial.missing)) if partial else None,
        has_routing=has_routing,
        unknown=tuple(filter(linked.__contains__, unknown))
        if order.carries and any(device.role != "host" for device in plan.changed)
        else (),
    )


def _staying(
    fabric: Fabric, plan: Plan, sides: Callable[[str], Sides], *, is_back: bool
) -> Iterator[tuple[str, Router | HostRoutes]]:
    """Yield the routing that does not change, and is not the intended one: by lines of switches netkit does not own.

    The files that a rollback leads to contain such lines; the intended files, which it starts from, do not. With a
    rollback, others may run what was intended before.
    """
    for device in plan.devices:
        model = MODELS[device.platform]
        read = model.router or (model.host_routes if is_back else None)
        is_beside = device.routing is None and (is_back or device.unowned or device.left)
        if not is_beside or read is None or _is_beside_rails(fabric, device.name):
            continue
        found = sides(device.name)
        running, intended = (
            read(model.parse({name: text for name, text in files.items() if text and model.reads(name)}))
            for files in (found.running.files, found.intended)
        )
        if is_back or running != intended:
            yield device.name, intended if is_back else running


def _routing_read(fabric: Fabric, name: str, read: Running | Unreachable) -> Router | HostRoutes | None:
    """The routing of a device as it runs; None if it is not known, or plays no part."""
    device = fabric.device(name)
    if device is None or isinstance(read, Unreachable):
        return None
    model = MODELS[device.platform if isinstance(device, Switch) else HOSTS]
    parse = model.router or model.host_routes
    files = {file: text for file, text in read.files.items() if text and model.reads(file)}
    with suppress(ConfigError):
        return parse(model.parse(files)) if parse else None
    return None


def _with_moved(partial: Partial | None, moved: Collection[str], rest: Sequence[DevicePlan]) -> Partial | None:
    """What is worse while other devices stay, with the hosts that are left out of a network beside the rails."""
    hosts, missing = set(moved), dict[str, set[str]]()
    while more := [one for one in rest if one.name not in missing and hosts.intersection(one.blast.moved)]:
        missing |= {one.name: set(one.blast.moved) for one in more}
        hosts |= {host for one in more for host in one.blast.moved}
    if not missing:
        return partial
    found = partial or Partial(ReachabilityLoss(), ())
    left = set[str]().union(*missing.values()).intersection(moved)
    names, left_hosts = (sorted(some, key=lambda one: natural((one,))) for some in (missing, left))
    return replace(found, missing=tuple(dict.fromkeys([*found.missing, *names])), moved=tuple(left_hosts))


def _linked(fabrics: Sequence[Fabric], read: Sequence[DevicePlan], unread: Collection[str]) -> frozenset[str]:
    """The unread switches to which a neighbor runs a session, or may. The others, not yet installed, carry nothing."""
    routing = {device.name: device.routing for device in read}
    ports = {port for fabric in fabrics for switch in fabric.switches for port in _ports(switch)}
    links = [(name, port, peer) for name, port, peer in ports if peer in unread]
    known = {peer for name, _, peer in links if name in routing}
    running = {
        name: {one.interface for one in change.running.sessions}
        for name, change in routing.items()
        if change is not None and isinstance(change.running, Router)
    }
    # Without a change of routing a switch runs what is intended, so every port has its session.
    found = {peer for name, port, peer in links if name in routing and port in running.get(name, {port})}
    while more := {peer for name, _, peer in links if name in found} - found - known:
        found |= more
    return frozenset(found)


def _ports(switch: Switch) -> Iterator[tuple[str, str, str]]:
    return ((switch.name, port.name, port.peer) for port in switch.fabric_ports)


def _has_rails(fabric: Fabric, name: str) -> bool:
    return isinstance(fabric.device(name), Switch) and not _is_beside_rails(fabric, name)


def _is_beside_rails(fabric: Fabric, name: str) -> bool:
    device = fabric.device(name)
    return isinstance(device, Switch) and bool(device.access)


def _unread(fabric: Fabric, switch: Switch) -> DevicePlan:
    """A switch of which nothing is known: nothing may depend on its sessions."""
    intended = router_of(fabric, switch)
    routing = RoutingChange(intended.without_sessions(), intended)
    nothing = (), Risk.NONE, Strategy(NOTHING), Blast(), "", ""
    return DevicePlan(switch.name, switch.role, switch.platform, switch.version, *nothing, routing=routing)


def writable(fabric: Fabric, sides: Callable[[str], Sides]) -> Callable[[str, Detour], bool]:
    """Whether a device's files can be written for a detour."""

    def may_take(name: str, detour: Detour) -> bool:
        return with_entries(MODELS[fabric.switch(name).platform], sides(name).intended, detour.entries) is not None

    return may_take


def limited(
    fabric: Fabric,
    plan: Plan,
    names: Collection[str],
    sides: Callable[[str], Sides],
    others: ReadBeside = dict,
) -> Plan:
    """The part of an unordered plan of a rollback for these devices, with their order.

    `others` is called where routing changes: it returns what the devices run that are not in the plan, and those that
    could not be read, if that is known. Nothing may depend on the others of these, but none is unknown: the run knows
    both its configurations.
    """
    part = replace(
        plan,
        devices=tuple(device for device in plan.devices if device.name in names),
        unreachable=tuple(one for one in plan.unreachable if one.name in names),
    )
    rest = replace(plan, devices=tuple(device for device in plan.devices if device.name not in names))
    part = replace(part, groups=grouped(fabric, part.devices))
    found = ordered(fabric, part, sides, others=lambda: (rest, sides), is_back=True, beside=others)
    return replace(found, unknown=())


def keeping(fabric: Fabric, name: str, intended: Files, kept: RetainedRouting) -> Files:
    """The intended files of a device, extended by what is kept from before."""
    device = fabric.device(name)
    keep = MODELS[device.platform].keeping if isinstance(device, Switch) else None
    if keep is None or not isinstance(device, Switch):
        raise PlanError(Problem(f"{name}: cannot keep routes", "make the plan again"))
    both = keep(intended, kept)
    found = with_entries(MODELS[device.platform], both, kept.entries) if kept.entries else both
    if found is None:
        raise PlanError(Problem(f"{name}: cannot keep sessions without losing a secret", "make the plan again"))
    return found


def _bridge(fabric: Fabric, name: str, kept: RetainedRouting, sides: Sides) -> Bridge:
    both = keeping(fabric, name, sides.intended, kept)
    between = Running({file: both.get(file) for file in sides.running.files}, sides.running.version)
    first = _device(fabric, name, sides.running, both, sides.owner, None)
    then = _device(fabric, name, between, sides.intended, sides.owner or both, None)
    if isinstance(first, Unreachable) or isinstance(then, Unreachable):
        raise PlanError(Problem(f"{name}: {NOTHING_READ}", "make the plan again"))
    return Bridge(name, kept, replace(first, routing=None), replace(then, routing=None))


def rollback(
    fabric: Fabric, before: Mapping[str, Running], intended: Mapping[str, Files], *, known: Known | None = None
) -> Plan:
    """The plan back from the intended files to what ran before: the same plan with its sides swapped."""
    gone = {
        name: {file: text for file, text in running.files.items() if text is not None}
        for name, running in before.items()
    }
    there = {
        name: Running({file: intended[name].get(file) for file in running.files}, running.version)
        for name, running in before.items()
    }
    return make(fabric, there, gone, owner={name: intended[name] for name in before}, known=known)


def _device(
    fabric: Fabric,
    name: str,
    running: Running,
    intended: Files,
    owner: Files | None,
    known: Known | None,
    *,
    explain: bool = False,
) -> DevicePlan | Unreachable:
    device = fabric.device(name)
    if device is None:
        raise PlanError(Problem(f"{name}: not in fabric {fabric.name}"))
    platform, version = (device.platform, device.version) if isinstance(device, Switch) else (device.platform, "")
    is_cached = known is not None and owner is None and OWN_RULES not in intended
    pair = "" if not is_cached else _pair(platform, running, intended)
    is_other = bool(version and running.version) and running.version != version
    warnings = (f"runs {running.version}; the files are for {version}",) if is_other else ()
    if known is not None and pair in known:
        role = device.role if isinstance(device, Switch) else "host"
        digest, _, unowned = known[pair].partition(":")
        unchanged = (), Risk.NONE, Strategy(NOTHING), Blast(), digest, digest
        return DevicePlan(device.name, role, platform, version, *unchanged, (), warnings, unowned=int(unowned))
    model = MODELS[platform]
    try:
        found = compare(model, running.files, intended, owner=owner)
    except ConfigError as error:
        raise ConfigError(Problem(f"{name}: {problem}") for problem in error.problems) from None
    if found.not_read and len(found.not_read) == sum(map(model.reads, intended)):
        return Unreachable(NOTHING_READ)
    if known is not None and pair and not found.changes and not found.not_read:
        known[pair] = f"{found.running_digest}:{len(found.unowned)}"
    if found.left_rendered:
        some = "; ".join(SEPARATOR.join(path) for path in found.left_rendered[:MOST_NAMED])
        warnings = (*warnings, f"left unchanged, although the intent sets it ({len(found.left_rendered)}): {some}")
    planned = _planned(fabric, device, model, version, found, warnings)
    return replace(planned, unexplained=found.removed(model.ownership.on(intended))) if explain else planned


def _planned(
    fabric: Fabric,
    device: Switch | Host,
    model: ConfigModel,
    version: str,
    found: ConfigComparison,
    warnings: tuple[str, ...],
) -> DevicePlan:
    way = (
        model.strategy(Situation(found.changes, found.running, found.intended, version))
        if found.changes
        else Strategy(NOTHING)
    )
    if found.held:
        kept = "; ".join(
            f"{SEPARATOR.join(path)} changes as a whole, with lines that leave keeps" for path in found.held
        )
        way = Strategy(REFUSED, reasons=(kept,))
    if isinstance(device, Switch):
        touched = blast.of_switch(fabric, device, found, model, way.risk)
    else:
        touched = blast.of_host(device, found.changes, found.running, model.risks)
    # The model of routing knows the rails only.
    routing = None if isinstance(device, Switch) and device.access else _routing(device, model, found, touched)
    if left := tuple(f"{device.name}:{interface}" for interface in _rails_left(routing)):
        touched = replace(touched, hosts=(device.name,), gpus=(*touched.gpus, *left), is_disruptive=True)
    running = routing.running if routing else HostRoutes()
    doubts = running.doubtful_lines(prefixes_of(fabric)) if isinstance(running, Router) else running.doubtful_lines()
    if unmodelled := tuple(dict.fromkeys(map(masked_line, doubts))):
        some = "; ".join(unmodelled[:MOST_NAMED])
        warnings = (*warnings, f"the order does not know what this does to routes ({len(unmodelled)}): {some}")
    return DevicePlan(
        name=device.name,
        role=device.role if isinstance(device, Switch) else "host",
        platform=model.platform,
        version=version,
        changes=found.changes,
        risk=max([way.risk, *(change.risk for change in found.changes)]),
        way=way,
        blast=touched,
        running_digest=found.running_digest,
        intended_digest=found.intended_digest,
        not_read=found.not_read,
        warnings=warnings,
        left=tuple(tuple(map(masked_line, path)) for path in found.left),
        unmatched=found.unmatched,
        unowned=len(found.unowned),
        routing=routing,
    )


def _routing(
    device: Switch | Host, model: ConfigModel, found: ConfigComparison, touched: Blast
) -> RoutingChange | None:
    """What a change does to routing; None if it does nothing."""
    is_about_routing = any(
        ROUTING_WORDS.search(" ".join(change.path)) and not NO_ROUTING.search(change.path[-1])
        for change in found.changes
    )
    if not touched.ports and not is_about_routing:
        return None
    read = model.router or model.host_routes
    if read is None:
        return None
    running, intended = read(found.whole), read(apply(found.whole, found.changes))
    if running == intended:
        return None
    if not isinstance(device, Switch) or not isinstance(running, Router) or not isinstance(intended, Router):
        return RoutingChange(running, intended)
    through = detours(model, found, running, intended, is_spine=device.role == "spine")
    return RoutingChange(running, intended, tuple(through))


def _rails_left(routing: RoutingChange | None) -> Iterator[str]:
    """Yield the interfaces of a host that its intent no longer has."""
    if routing and isinstance(routing.running, HostRoutes) and isinstance(routing.intended, HostRoutes):
        stay = {rail.interface for rail in routing.intended.rails}
        yield from (rail.interface for rail in routing.running.rails if rail.interface not in stay)


def _pair(platform: str, running: Running, intended: Files) -> str:
    """A digest of two sets of files."""
    whole = hashlib.sha256(f"{__version__} {platform}".encode())
    for files in (running.files, intended):
        whole.update(b"\0\0")
        for name, text in sorted(files.items()):
            content = b"-" if text is None else b"+" + text.encode(errors="surrogatepass")
            whole.update(f"{name} {len(content)}\0".encode() + content)
    return whole.hexdigest()
