"""What must hold between the parts of a configuration before it can be applied."""

from collections.abc import Iterator

from netkit.lab.personalities.nvue import policy_rules, qos_rules
from netkit.lab.personalities.nvue.chassis import CAGE, SUBPORT, Chassis, blocked_cages, breakout, cage_of, ways
from netkit.lab.personalities.nvue.kinds import PORT, SVI
from netkit.lab.personalities.nvue.schema import Issue
from netkit.lab.personalities.nvue.tree import Tree, addresses, child, has, is_on, is_set, number, text

TYPES = {"eth0": "eth", "lo": "loopback"}


def broken(tree: Tree, chassis: Chassis) -> list[Issue]:
    """Return every reason a configuration cannot be applied."""
    return [
        *_interfaces(child(tree, "interface"), chassis),
        *_vlans(tree),
        *_addresses(child(tree, "interface")),
        *_adaptive_routing(tree, chassis),
        *qos_rules.broken(tree),
        *policy_rules.broken(tree),
    ]


def _interfaces(interfaces: Tree, chassis: Chassis) -> Iterator[Issue]:
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
        wanted = TYPES.get(name, "svi" if SVI.fullmatch(name) else "swp")
        kind = text(interfaces, name, "type")
        if kind and kind != wanted:
            yield Issue(f"{here}.type", f"{name} is of type {wanted}, not {kind}")
    for cage, cause in blocked_cages(interfaces, chassis):
        if breakout(interfaces, cage) != "disabled":
            yield Issue(f"interface.{cage}.link.breakout", f"must be disabled, as {cause} uses its lanes")


def _cage(interfaces: Tree, name: str, chassis: Chassis) -> Iterator[Issue]:
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


def _speed(interfaces: Tree, name: str, chassis: Chassis) -> Iterator[Issue]:
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
        access = text(interface, "bridge", "domain", "br_default", "access")
        if access and access not in known:
            yield Issue(f"interface.{name}.bridge.domain.br_default.access", f"bridge br_default has no vlan {access}")
        if access and addresses(interface):
            yield Issue(f"interface.{name}", "a port of a bridge cannot have an address")
        if SVI.fullmatch(name):
            vlan = text(interface, "vlan") or name.removeprefix("vlan")
            if vlan not in known:
                yield Issue(f"interface.{name}.vlan", f"bridge br_default has no vlan {vlan}")


def _addresses(interfaces: Tree) -> Iterator[Issue]:
    seen: dict[str, str] = {}
    for name in interfaces:
        for address in addresses(child(interfaces, name)):
            host = address.partition("/")[0]
            if host in seen:
                yield Issue(f"interface.{name}", f"address {host} is already used on {seen[host]}")
            seen[host] = name


def _adaptive_routing(tree: Tree, chassis: Chassis) -> Iterator[Issue]:
    here = "router.adaptive-routing"
    is_everywhere = is_on(tree, *here.split("."))
    if is_everywhere and not chassis.model.adaptive_routing:
        yield Issue(here, f"adaptive routing is not supported on {chassis.model.name}")
    for name in child(tree, "interface"):
        interface = child(tree, "interface", name)
        if not is_on(interface, "router", "adaptive-routing"):
            continue
        if not is_everywhere:
            yield Issue(f"interface.{name}.{here}", "adaptive routing is not enabled under router")
        if text(interface, "bridge", "domain", "br_default", "access"):
            yield Issue(f"interface.{name}.{here}", "adaptive routing needs a routed port")
        speed = port_speed_gbps(child(tree, "interface"), name, chassis)
        if speed not in chassis.model.adaptive_routing_speeds and chassis.model.adaptive_routing:
            yield Issue(f"interface.{name}.{here}", f"adaptive routing is not supported on a {speed}G port")


def port_speed_gbps(interfaces: Tree, name: str, chassis: Chassis) -> int:
    """Return the speed a port runs at: what it is set to, or the fastest its breakout has."""
    speed = text(interfaces, name, "link", "speed").removesuffix("G")
    split = chassis.split(ways(breakout(interfaces, cage_of(name))))
    return int(speed) if speed.isdigit() else split.speed_gbps if split else 0


def is_negotiating(interface: Tree) -> bool:
    """Whether a port negotiates its speed, which it does unless told not to."""
    return not has(interface, "link", "auto-negotiate") or is_set(interface, "link", "auto-negotiate")
