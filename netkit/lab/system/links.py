"""From what a switch is told to `ip -batch` lines: only what differs from what it was told before."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from netkit.lab.state import SwitchState

DOWN_MTU = 1500


@dataclass(frozen=True, slots=True)
class LinkState:
    """One kernel interface."""

    is_up: bool = False
    mtu_bytes: int = DOWN_MTU
    addresses: frozenset[str] = frozenset()
    bridge: str = ""


@dataclass(frozen=True, slots=True)
class KernelState:
    """All interfaces of a node: its ports, its bridges (one for each VLAN) and its loopback."""

    links: Mapping[str, LinkState] = field(default_factory=dict)
    bridges: frozenset[str] = frozenset()


def wanted(state: SwitchState, kernel_names: Mapping[str, str]) -> KernelState:
    """Return the kernel state that a switch's configuration asks for."""
    bridge_of = {vlan.number: vlan.interface for vlan in state.vlans}
    told = {port.name: port for port in state.ports}
    links = {"lo": LinkState(is_up=True, mtu_bytes=0, addresses=frozenset(state.loopback_addresses))}
    for vlan in state.vlans:
        links[vlan.interface] = LinkState(vlan.is_enabled, vlan.mtu_bytes, frozenset(vlan.addresses))
    for name, interface in kernel_names.items():
        port = told.get(name)
        if port is None:
            links[interface] = LinkState()
            continue
        bridge = bridge_of.get(port.access_vlan, "")
        links[interface] = LinkState(port.is_enabled, port.mtu_bytes, frozenset(port.addresses), bridge)
    return KernelState(links, frozenset(bridge_of.values()))


def steps(before: KernelState, after: KernelState) -> Iterator[str]:
    """Yield the lines that lead from one kernel state to another."""
    for bridge in sorted(before.bridges - after.bridges):
        yield f"link del {bridge}"
    for bridge in sorted(after.bridges - before.bridges):
        yield f"link add {bridge} type bridge forward_delay 0 stp_state 0 mcast_snooping 0"
    gone = before.bridges - after.bridges
    ordered = sorted(after.links, key=lambda name: (name in after.bridges, name))  # a bridge's MTU follows its ports'
    for name in ordered:
        yield from _link(name, before.links.get(name, LinkState()), after.links[name], gone)


def _link(name: str, before: LinkState, after: LinkState, gone: frozenset[str]) -> Iterator[str]:
    for address in sorted(before.addresses - after.addresses):
        yield f"addr del {address} dev {name}"
    was_bridge = "" if before.bridge in gone else before.bridge
    if was_bridge != after.bridge:
        yield f"link set {name} nomaster" if not after.bridge else f"link set {name} master {after.bridge}"
    if after.mtu_bytes and before.mtu_bytes != after.mtu_bytes:
        yield f"link set {name} mtu {after.mtu_bytes}"
    if before.is_up != after.is_up:
        yield f"link set {name} {'up' if after.is_up else 'down'}"
    for address in sorted(after.addresses - before.addresses):
        yield f"addr add {address} dev {name}"
