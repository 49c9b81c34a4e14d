"""Validation of a configuration: references, breakouts, QoS and routing."""

import ipaddress
from collections.abc import Iterator

from netkit.lab.netlink import PEER_INTERFACE
from netkit.lab.personalities.nvue.schema import (
    BOND,
    CAGE,
    PEERLINK,
    PORT,
    SUBPORT,
    SVI,
    CumulusSwitch,
    Issue,
    blocked_cages,
    breakout,
    cage_of,
    interface_type,
    ways,
)
from netkit.lab.personalities.nvue.tree import Path, Tree, addresses, child, has, is_on, is_set, number, text

BGP = "vrf.default.router.bgp"


def broken_policy(tree: Tree) -> Iterator[Issue]:
    """Yield every problem of the routing configuration."""
    yield from _bgp(tree)
    yield from _sessions(tree)
    yield from _prefix_lists(child(tree, "router", "policy", "prefix-list"))
    yield from _route_maps(tree)
    if has(tree, "vrf", "mgmt", "router", "bgp"):
        yield Issue("vrf.mgmt.router.bgp", "BGP is not supported in the management VRF")


def _bgp(tree: Tree) -> Iterator[Issue]:
    bgp, global_bgp = child(tree, *BGP.split(".")), child(tree, "router", "bgp")
    if not is_on(bgp):
        return
    if not is_on(global_bgp):
        yield Issue(f"{BGP}.enable", "BGP is not enabled under router")
    if not (text(bgp, "router-id") or text(global_bgp, "router-id")):
        yield Issue("router.bgp.enable", "BGP requires router-id to be set globally or in the VRF.")
    if not (text(bgp, "autonomous-system") or text(global_bgp, "autonomous-system")):
        yield Issue("router.bgp.enable", "BGP requires autonomous-system to be set globally or in the VRF.")
    for family in child(bgp, "address-family"):
        sources = child(bgp, "address-family", family, "redistribute")
        for source in sources:
            yield from _map(tree, sources, (source,), f"{BGP}.address-family.{family}.redistribute")


def _sessions(tree: Tree) -> Iterator[Issue]:
    bgp = child(tree, *BGP.split("."))
    groups = child(bgp, "peer-group")
    for name in groups:
        yield from _session(tree, child(groups, name), f"{BGP}.peer-group.{name}")
    for name in child(bgp, "neighbor"):
        neighbor, here = child(bgp, "neighbor", name), f"{BGP}.neighbor.{name}"
        group = text(neighbor, "peer-group")
        yield from _session(tree, neighbor, here)
        kind = text(neighbor, "type")
        if PORT.fullmatch(name) or name == PEER_INTERFACE:
            if name not in child(tree, "interface"):
                yield Issue(here, f"interface {name} is not configured")
            if kind != "unnumbered":
                yield Issue(f"{here}.type", "a neighbor on an interface needs the type unnumbered")
        elif kind == "unnumbered":
            yield Issue(f"{here}.type", "an unnumbered neighbor is named by its interface")
        if group and group not in groups:
            yield Issue(f"{here}.peer-group", f"there is no peer-group {group}")
        if not text(neighbor, "remote-as") and not text(groups, group or "-", "remote-as"):
            yield Issue(here, "neither the neighbor nor its peer-group has a remote-as")


def _session(tree: Tree, session: Tree, here: str) -> Iterator[Issue]:
    for family in child(session, "address-family"):
        for direction in ("inbound", "outbound"):
            yield from _map(tree, session, ("address-family", family, "policy", direction), here)
    profile = text(session, "bfd", "profile")
    if profile and profile not in child(tree, "router", "bfd", "profile"):
        yield Issue(f"{here}.bfd.profile", f"there is no BFD profile {profile}")
    if profile and not is_on(tree, "router", "bfd"):
        yield Issue(f"{here}.bfd.profile", "BFD is not enabled under router")


def _map(tree: Tree, owner: Tree, path: Path, here: str) -> Iterator[Issue]:
    name = text(owner, *path, "route-map")
    if name and name not in child(tree, "router", "policy", "route-map"):
        yield Issue(".".join((here, *path, "route-map")), f"there is no route-map {name}")


def _prefix_lists(lists: Tree) -> Iterator[Issue]:
    for name in lists:
        for rank in child(lists, name, "rule"):
            here = f"router.policy.prefix-list.{name}.rule.{rank}"
            rule = child(lists, name, "rule", rank)
            if not text(rule, "action") or not child(rule, "match"):
                yield Issue(here, "a rule needs an action and a match")
            for prefix in child(rule, "match"):
                match = child(rule, "match", prefix)
                network = ipaddress.ip_interface(prefix).network
                low = int(text(match, "min-prefix-len") or network.prefixlen)
                high = int(text(match, "max-prefix-len") or max(low, network.prefixlen))
                if not network.prefixlen <= low <= high:
                    yield Issue(f"{here}.match.{prefix}", f"lengths {low} to {high} do not follow from {prefix}")


def _route_maps(tree: Tree) -> Iterator[Issue]:
    maps = child(tree, "router", "policy", "route-map")
    for name in maps:
        for rank in child(maps, name, "rule"):
            rule = child(maps, name, "rule", rank)
            here = f"router.policy.route-map.{name}.rule.{rank}"
            if not child(rule, "action"):
                yield Issue(here, "a rule needs an action")
            prefix_list, interface = text(rule, "match", "ip-prefix-list"), text(rule, "match", "interface")
            if prefix_list and prefix_list not in child(tree, "router", "policy", "prefix-list"):
                yield Issue(f"{here}.match.ip-prefix-list", f"there is no prefix-list {prefix_list}")
            if prefix_list and text(rule, "match", "type") not in {"ipv4", "ipv6"}:
                yield Issue(f"{here}.match.type", "a match on a prefix-list needs a type")
            is_port = PORT.fullmatch(interface) or SVI.fullmatch(interface)
            if is_port and interface not in child(tree, "interface"):
                yield Issue(f"{here}.match.interface", f"interface {interface} is not configured")


PROFILES = ("congestion-control", "egress-scheduler", "mapping", "pfc")
LOSSLESS_MODES = ("", "lossless", "lossless-single-ipool")


def broken_qos(tree: Tree) -> Iterator[Issue]:
    """Yield every problem of the QoS configuration."""
    qos = child(tree, "qos")
    yield from _pools(qos)
    yield from _schedulers(child(qos, "egress-scheduler"))
    profiles = child(qos, "congestion-control")
    for profile in profiles:
        classes = child(profiles, profile, "traffic-class")
        for name in classes:
            low, high = number(classes, name, "min-threshold"), number(classes, name, "max-threshold")
            if low and high and low >= high:
                where = f"qos.congestion-control.{profile}.traffic-class.{name}"
                yield Issue(where, f"min-threshold {low} is not below max-threshold {high}")
    for name in child(tree, "interface"):
        for kind in PROFILES:
            profile = text(tree, "interface", name, "qos", kind, "profile")
            if profile and profile not in child(qos, kind):
                yield Issue(f"interface.{name}.qos.{kind}.profile", f"qos {kind} has no profile {profile}")
    yield from _watchdogs(tree)


def is_lossless(qos: Tree) -> bool:
    """Whether RoCE is enabled in a lossless mode."""
    return is_on(qos, "roce") and text(qos, "roce", "mode") in LOSSLESS_MODES


def _pools(qos: Tree) -> Iterator[Issue]:
    here = "qos.traffic-pool"
    pools = child(qos, "traffic-pool")
    # default-lossy has the whole buffer unless it is configured.
    total = 100 if "default-lossy" not in pools else 0
    total += sum(number(pools, name, "memory-percent") for name in pools)
    if pools and total > 100:
        yield Issue(here, f"the pools take {total} % of the memory")
    if "roce-lossless" in pools and not is_lossless(qos):
        yield Issue(f"{here}.roce-lossless", "this pool needs RoCE in lossless mode")
    if "default-lossless" in pools and "roce-lossless" in pools:
        yield Issue(here, "only one lossless pool can be used")


def _schedulers(schedulers: Tree) -> Iterator[Issue]:
    for profile in schedulers:
        classes = child(schedulers, profile, "traffic-class")
        here = f"qos.egress-scheduler.{profile}.traffic-class"
        for name in classes:
            mode = text(classes, name, "mode")
            if not mode:
                yield Issue(f"{here}.{name}", "a traffic class needs a mode")
            if (mode == "dwrr") != has(classes, name, "bw-percent"):
                yield Issue(f"{here}.{name}", "bw-percent goes with the mode dwrr, and only with it")
        total = sum(number(classes, name, "bw-percent") for name in classes)
        if total > 100:
            yield Issue(here, f"the weights make {total} %")


def _watchdogs(tree: Tree) -> Iterator[Issue]:
    qos = child(tree, "qos")
    if is_lossless(qos) or child(qos, "pfc", "default-global", "switch-priority"):
        return
    for name in child(tree, "interface"):
        interface = child(tree, "interface", name)
        if has(interface, "qos", "pfc-watchdog") and not text(interface, "qos", "pfc", "profile"):
            yield Issue(f"interface.{name}.qos.pfc-watchdog", "the watchdog needs PFC on the port")


def broken(tree: Tree, chassis: CumulusSwitch) -> list[Issue]:
    """Every reason why a configuration cannot be applied."""
    return [
        *_interfaces(child(tree, "interface"), chassis),
        *_vlans(tree),
        *_addresses(child(tree, "interface")),
        *broken_bonds(tree),
        *_adaptive_routing(tree, chassis),
        *broken_qos(tree),
        *broken_policy(tree),
    ]


def _interfaces(interfaces: Tree, chassis: CumulusSwitch) -> Iterator[Issue]:
    for name in interfaces:
        here = f"interface.{name}"
        if CAGE.fullmatch(name):
            yield from _cage(interfaces, name, chassis)
        if SUBPORT.fullmatch(name):
            mode = breakout(interfaces, cage_of(name))
            if int(name.rpartition("s")[2]) >= ways(mode) or mode == "1x":
                yield Issue(here, f"the port does not exist: {cage_of(name)} is not broken out to have it")
            if has(interfaces, name, "link", "breakout"):
                yield Issue(f"{here}.link.breakout", "only a whole port can be broken out")
        if PORT.fullmatch(name):
            yield from _speed(interfaces, name, chassis)
        expected = interface_type(name)
        kind = text(interfaces, name, "type")
        if kind and kind != expected:
            yield Issue(f"{here}.type", f"{name} is of type {expected}, not {kind}")
    for cage, cause in blocked_cages(interfaces, chassis):
        if breakout(interfaces, cage) != "disabled":
            yield Issue(f"interface.{cage}.link.breakout", f"must be disabled, as {cause} uses its lanes")


def _cage(interfaces: Tree, name: str, chassis: CumulusSwitch) -> Iterator[Issue]:
    here = f"interface.{name}"
    found = int(name.removeprefix("swp"))
    mode = breakout(interfaces, name)
    split = chassis.split(ways(mode))
    if found > chassis.model.cages:
        yield Issue(here, f"{chassis.model.name} has no port {name}")
    elif mode != "disabled" and (split is None or found not in split.cages):
        yield Issue(f"{here}.link.breakout", f"{name} of {chassis.model.name} cannot be broken out {mode}")
    lanes = number(interfaces, name, "link", "breakout", mode, "lanes-per-port")
    if split and lanes and lanes != split.lanes_per_port:
        yield Issue(f"{here}.link.breakout.{mode}", f"{lanes} lanes per port are not supported with {mode}")
    used = [key for key in child(interfaces, name) if key not in {"link", "type", "description"}]
    used += [f"link.{key}" for key in child(interfaces, name, "link") if key != "breakout"]
    if mode != "1x" and used:
        yield Issue(f"{here}.{used[0]}", f"{name} is broken out {mode} and cannot be configured itself")


def _speed(interfaces: Tree, name: str, chassis: CumulusSwitch) -> Iterator[Issue]:
    speed = text(interfaces, name, "link", "speed")
    count = ways(breakout(interfaces, cage_of(name)))
    slower = {"10M", "100M"}
    if not speed or speed == "auto" or not count:
        return
    if speed in slower or int(speed.removesuffix("G")) not in chassis.speeds(count):
        yield Issue(f"interface.{name}.link.speed", f"{speed} is not supported on {name} of {chassis.model.name}")


def _vlans(tree: Tree) -> Iterator[Issue]:
    known = child(tree, "bridge", "domain", "br_default", "vlan")
    for name in child(tree, "interface"):
        interface = child(tree, "interface", name)
        bridged = child(interface, "bridge", "domain", "br_default")
        access = text(bridged, "access")
        named = [(key, text(bridged, key)) for key in ("access", "untagged")]
        for key, vlan in (*named, *(("vlan", one) for one in child(bridged, "vlan"))):
            if vlan and vlan not in known:
                yield Issue(f"interface.{name}.bridge.domain.br_default.{key}", f"bridge br_default has no vlan {vlan}")
        if access and addresses(interface):
            yield Issue(f"interface.{name}", "a port of a bridge cannot have an address")
        if SVI.fullmatch(name):
            vlan = text(interface, "vlan") or name.removeprefix("vlan")
            if vlan not in known:
                yield Issue(f"interface.{name}.vlan", f"bridge br_default has no vlan {vlan}")


def broken_bonds(tree: Tree) -> Iterator[Issue]:
    """Yield every problem of bonds and of MLAG."""
    interfaces, owners = child(tree, "interface"), dict[str, str]()
    numbers: dict[int, str] = {}
    for name in interfaces:
        if not (BOND.fullmatch(name) or name == PEERLINK):
            continue
        bond = child(interfaces, name, "bond")
        for port in child(bond, "member"):
            if port not in interfaces or child(interfaces, port, "bridge"):
                yield Issue(f"interface.{name}.bond.member.{port}", f"{port} is not configured, or bridged by itself")
            if (other := owners.setdefault(port, name)) != name:
                yield Issue(f"interface.{name}.bond.member.{port}", f"{port} is a member of {other}")
        if is_on(bond, "mlag"):
            number_ = number(bond, "mlag", "id")
            if not is_on(tree, "mlag"):
                yield Issue(f"interface.{name}.bond.mlag", "MLAG is not enabled")
            if (other := numbers.setdefault(number_, name)) != name:
                yield Issue(f"interface.{name}.bond.mlag.id", f"{number_} is the id of {other}")
    if is_on(tree, "mlag"):
        missing = [key for key in ("mac-address", "peer-ip", "backup") if not has(tree, "mlag", key)]
        missing += [name for name in (PEERLINK, PEER_INTERFACE) if name not in interfaces]
        if missing:
            yield Issue("mlag", f"MLAG needs {', '.join(missing)}")


def _addresses(interfaces: Tree) -> Iterator[Issue]:
    seen: dict[str, str] = {}
    for name in interfaces:
        for address in addresses(child(interfaces, name)):
            host = address.partition("/")[0]
            if host in seen:
                yield Issue(f"interface.{name}", f"address {host} is already used on {seen[host]}")
            seen[host] = name


def _adaptive_routing(tree: Tree, chassis: CumulusSwitch) -> Iterator[Issue]:
    here = "router.adaptive-routing"
    is_enabled = is_on(tree, *here.split("."))
    if is_enabled and not chassis.model.adaptive_routing:
        yield Issue(here, f"adaptive routing is not supported on {chassis.model.name}")
    for name in child(tree, "interface"):
        interface = child(tree, "interface", name)
        if not is_on(interface, "router", "adaptive-routing"):
            continue
        if not is_enabled:
            yield Issue(f"interface.{name}.{here}", "adaptive routing is not enabled under router")
        if text(interface, "bridge", "domain", "br_default", "access"):
            yield Issue(f"interface.{name}.{here}", "adaptive routing needs a routed port")
        speed = port_speed_gbps(child(tree, "interface"), name, chassis)
        if speed not in chassis.model.adaptive_routing_speeds and chassis.model.adaptive_routing:
            yield Issue(f"interface.{name}.{here}", f"adaptive routing is not supported on a {speed}G port")


def port_speed_gbps(interfaces: Tree, name: str, chassis: CumulusSwitch) -> int:
    """The configured speed of a port, or the highest of its breakout."""
    speed = text(interfaces, name, "link", "speed").removesuffix("G")
    if speed.isdigit():
        return int(speed)
    split = chassis.split(ways(breakout(interfaces, cage_of(name))))
    return split.speed_gbps if split else 0


def is_negotiating(interface: Tree) -> bool:
    """Whether a port negotiates its speed, which is the default."""
    return not has(interface, "link", "auto-negotiate") or is_set(interface, "link", "auto-negotiate")
