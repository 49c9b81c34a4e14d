"""Configuration → what the switch is told to be."""

from collections.abc import Iterator

from netkit.lab.personalities.nvue.chassis import Chassis, port_ways
from netkit.lab.personalities.nvue.frr import frr_text
from netkit.lab.personalities.nvue.kinds import SVI
from netkit.lab.personalities.nvue.qos import port_qos
from netkit.lab.personalities.nvue.rules import port_speed_gbps
from netkit.lab.personalities.nvue.tree import Tree, addresses, child, has, is_on, is_set, number, text
from netkit.lab.state import GnmiState, PortState, SnmpState, SnmpUser, SwitchState, VlanState

DEFAULT_MTU = 9216
GNMI_PORT = 9339
DEFAULT_HOSTNAME = "cumulus"


def switch_state(tree: Tree, chassis: Chassis) -> SwitchState:
    """Return the state an accepted configuration asks for."""
    lldp = child(tree, "system", "lldp")
    return SwitchState(
        hostname=text(tree, "system", "hostname") or DEFAULT_HOSTNAME,
        ports=tuple(_ports(tree, chassis)),
        vlans=tuple(_vlans(tree)),
        loopback_addresses=addresses(child(tree, "interface", "lo")),
        frr=frr_text(tree),
        snmp=_snmp(tree),
        gnmi=_gnmi(tree),
        has_lldp=is_on(lldp, default=True),
        adaptive_routing=is_on(tree, "router", "adaptive-routing"),
    )


class Made:
    """What the configuration that runs makes of a switch: worked out anew only when another one runs."""

    def __init__(self) -> None:
        self._known: tuple[Tree, SwitchState] | None = None

    def of(self, tree: Tree, chassis: Chassis) -> SwitchState:
        """Return the state of a configuration; trees are never changed, so the same tree means the same."""
        known = self._known
        if known is None or known[0] is not tree:
            known = self._known = (tree, switch_state(tree, chassis))
        return known[1]


def _ports(tree: Tree, chassis: Chassis) -> Iterator[PortState]:
    interfaces = child(tree, "interface")
    is_adaptive = is_on(tree, "router", "adaptive-routing")
    for name in port_ways(interfaces, chassis):
        if name in interfaces:
            interface = child(interfaces, name)
            yield PortState(
                name=name,
                is_enabled=is_up(tree, interface),
                mtu_bytes=number(interface, "link", "mtu", default=DEFAULT_MTU),
                addresses=addresses(interface),
                access_vlan=number(interface, "bridge", "domain", "br_default", "access"),
                description=text(interface, "description"),
                speed_gbps=port_speed_gbps(interfaces, name, chassis),
                fec=text(interface, "link", "fec"),
                adaptive_routing=is_adaptive and is_on(interface, "router", "adaptive-routing"),
                qos=port_qos(tree, interface),
            )


def is_up(tree: Tree, interface: Tree) -> bool:
    """Whether an interface is administratively up: one that is configured is, unless told otherwise."""
    in_maintenance = text(tree, "maintenance", "unit", "all-interfaces", "mode") == "enabled"
    return not (has(interface, "link", "state", "down") or in_maintenance)


def _vlans(tree: Tree) -> Iterator[VlanState]:
    known = child(tree, "bridge", "domain", "br_default", "vlan")
    interfaces = child(tree, "interface")
    gateways = {
        number(interfaces, name, "vlan", default=int(name.removeprefix("vlan"))): name
        for name in interfaces
        if SVI.fullmatch(name)
    }
    for vlan in sorted(map(int, known)):
        interface = child(interfaces, gateways.get(vlan, "-"))
        yield VlanState(
            number=vlan,
            interface=gateways.get(vlan, f"vlan{vlan}"),
            addresses=addresses(interface),
            mtu_bytes=number(interface, "link", "mtu", default=DEFAULT_MTU),
            is_enabled=is_up(tree, interface),
        )


def snmp_tree(tree: Tree) -> Tree:
    """Return the SNMP agent's configuration, wherever the release keeps it."""
    return child(tree, "system", "snmp-server") or child(tree, "service", "snmp-server")


def _snmp(tree: Tree) -> SnmpState | None:
    agent = snmp_tree(tree)
    if not is_on(agent):
        return None
    users = child(agent, "username")
    return SnmpState(
        users=tuple(
            SnmpUser(name, auth, priv)
            for name in sorted(users)
            for auth, below in child(users, name, "auth-sha").items()
            for priv in (child(below, "encrypt-aes") if isinstance(below, dict) else ())
        ),
        communities=tuple(sorted(child(agent, "readonly-community"))),
        location=text(agent, "system-location"),
        contact=text(agent, "system-contact"),
    )


def _gnmi(tree: Tree) -> GnmiState | None:
    server = child(tree, "system", "gnmi-server")
    if not is_on(server) or not child(server, "listening-address"):
        return None
    return GnmiState(number(server, "port", default=GNMI_PORT), is_cumulus=True)


def has_dot1(tree: Tree) -> bool:
    """Whether LLDP announces VLANs."""
    return any(is_set(tree, place, "lldp", "dot1-tlv") for place in ("system", "service"))
