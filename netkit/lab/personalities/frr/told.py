"""What its files make of a Linux switch: the state the lab realises, and what only Linux has words for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from netkit.lab.node import Node
from netkit.lab.personalities.frr import files, netplan
from netkit.lab.personalities.frr.netplan import Bridge, Netplan
from netkit.lab.state import PortState, SnmpState, SnmpUser, SwitchState, VlanState

CREATE_USER = re.compile(r'createUser (\S+) SHA "([^"]+)" AES "([^"]+)"')
NEEDED = ("zebra", "staticd")
"""Daemons that always run."""
CHOSEN = ("bgpd", "bfdd")


@dataclass(frozen=True, slots=True)
class Told:
    """A switch as its files describe it."""

    state: SwitchState
    without_link_local: frozenset[str] = frozenset()
    bridges: Mapping[str, Bridge] = field(default_factory=dict)
    daemons: frozenset[str] = frozenset(NEEDED)
    sysctls: tuple[tuple[str, str, bool], ...] = ()
    """Key, value, and whether a failure matters."""


def of_node(node: Node, hostname: str, routing: str) -> Told:
    """Return what the files of a node make of it, with the routing it began with."""
    texts = {place: files.read(node, place) for place in files.PLACES.values()}
    return of_files({**texts, files.FRR_CONF: routing}, hostname, node.kernel_names)


def of_files(texts: Mapping[str, str], hostname: str, kernel_names: Mapping[str, str]) -> Told:
    """Return what files make of a switch, by their places; raises RefusedError for what is not understood."""
    found = netplan.parse(texts.get(files.NETPLAN, ""), tuple(kernel_names.values()))
    state = SwitchState(
        hostname=hostname,
        ports=tuple(_ports(found, kernel_names)),
        vlans=tuple(_vlan(name, bridge) for name, bridge in found.bridges.items()),
        loopback_addresses=found.interfaces["lo"].addresses if "lo" in found.interfaces else (),
        frr=texts.get(files.FRR_CONF, ""),
        snmp=snmp(texts.get(files.SNMPD, "")),
    )
    managed = {**found.interfaces, **{name: bridge.interface for name, bridge in found.bridges.items()}}
    return Told(
        state=state,
        without_link_local=frozenset(name for name, one in managed.items() if not one.has_link_local),
        bridges=found.bridges,
        daemons=daemons(texts.get(files.DAEMONS, "")),
        sysctls=tuple(_sysctls(texts.get(files.SYSCTL, ""))),
    )


def _ports(found: Netplan, kernel_names: Mapping[str, str]) -> Iterator[PortState]:
    vlan_of = {port: _number(name) for name, bridge in found.bridges.items() for port in bridge.ports}
    for name, interface in kernel_names.items():
        one = found.interfaces.get(interface)
        if one is None:
            yield PortState(name, is_enabled=False)
            continue
        vlan = vlan_of.get(interface, 0)
        yield PortState(name, mtu_bytes=one.mtu_bytes, addresses=one.addresses, access_vlan=vlan)


def _vlan(name: str, bridge: Bridge) -> VlanState:
    return VlanState(_number(name), name, bridge.interface.addresses, bridge.interface.mtu_bytes)


def _number(bridge: str) -> int:
    found = netplan.VLAN_NAME.fullmatch(bridge)
    return int(found[1]) if found else 0


def daemons(text: str) -> frozenset[str]:
    """Return the daemons that are to run."""
    wanted = {line.partition("=")[0] for line in files.lines(text) if line.endswith("=yes")}
    return frozenset((*NEEDED, *(name for name in CHOSEN if name in wanted)))


def snmp(text: str) -> SnmpState | None:
    """Return what snmpd answers to: users that were made and may read. Without any it answers nobody."""
    words = [line.split(maxsplit=1) for line in files.lines(text)]
    readers = {rest.split()[0] for key, *rest_ in words if key == "rouser" for rest in rest_}
    users = tuple(
        SnmpUser(found[1], found[2], found[3])
        for line in files.lines(text)
        if (found := CREATE_USER.fullmatch(line)) and found[1] in readers
    )
    said = {key: rest[0] for key, *rest in words if rest}
    if not users:
        return None
    return SnmpState(users, (), said.get("sysLocation", ""), said.get("sysContact", ""))


def _sysctls(text: str) -> Iterator[tuple[str, str, bool]]:
    for line in files.lines(text):
        key, _, value = line.partition("=")
        yield key.strip().removeprefix("-"), value.strip(), not key.startswith("-")
