"""From an EOS configuration to what the switch is: ports, VLANs, loopbacks, routing, SNMP."""

from collections.abc import Iterator, Mapping

from netkit.lab.personalities.eos import qos
from netkit.lab.personalities.eos.routing import frr
from netkit.lab.personalities.eos.tree import EosSection
from netkit.lab.state import GnmiState, PortState, SnmpState, SnmpV3User, SwitchState, VlanState

FACTORY_HOSTNAME = "localhost"
DEFAULT_MTU, SWITCHED_MTU = 1500, 9214
FEC_WORDS = {"reed-solomon": "rs", "fire-code": "fc"}
MANAGEMENT = "Management1"
GNMI_PORT = 6030


def switch_state(config: EosSection, kernel_names: Mapping[str, str]) -> SwitchState:
    """Return what a configuration makes of a switch."""
    return SwitchState(
        hostname=config.word("hostname") or FACTORY_HOSTNAME,
        ports=tuple(_port(config, name) for name in kernel_names),
        vlans=tuple(_vlans(config)),
        loopback_addresses=tuple(_loopbacks(config)),
        frr=frr(config, kernel_names),
        snmp=snmp(config),
        gnmi=gnmi(config),
        has_lldp=not config.is_off("lldp", "run"),
        adaptive_routing=is_dynamic(config),
    )


def is_dynamic(config: EosSection) -> bool:
    """Whether flows are spread by load instead of by hash."""
    return config.word("ip", "hardware", "fib", "load-balance", "distribution") == "dynamic"


def is_routed(section: EosSection) -> bool:
    """Whether a port routes; every port switches until it is told not to."""
    return section.is_off("switchport")


def access_vlan(config: EosSection, section: EosSection) -> int:
    """Return the VLAN of a switched port, if it exists; VLAN 1 is where ports wait, and joins nothing here."""
    number = section.word("switchport", "access", "vlan")
    return int(number) if not is_routed(section) and number and is_vlan(config, number) else 0


def is_vlan(config: EosSection, number: str) -> bool:
    """Whether a VLAN exists and is not suspended."""
    return ("vlan", number) in config.entries and config.section("vlan", number).word("state") != "suspend"


def _port(config: EosSection, name: str) -> PortState:
    section = config.section("interface", name)
    routed = is_routed(section)
    return PortState(
        name=name,
        is_enabled=not section.has("shutdown"),
        mtu_bytes=int(section.word("mtu") or DEFAULT_MTU) if routed else SWITCHED_MTU,
        addresses=tuple(rest[0] for rest in section.find("ip", "address")) if routed else (),
        access_vlan=access_vlan(config, section),
        description=section.word("description"),
        speed_gbps=speed_gbps(section),
        fec=fec(section),
        adaptive_routing=routed and is_dynamic(config),
        qos=qos.port_qos(config, section, is_routed=routed),
    )


def speed_gbps(section: EosSection) -> int:
    """Return the speed a port is set to; 0 leaves it to the module."""
    speed = section.word("speed").partition("g")[0]
    return int(speed) if speed.isdigit() else 0


def fec(section: EosSection) -> str:
    """Return the error correction a port is set to; empty leaves it to the module."""
    if section.is_off("error-correction", "encoding"):
        return "none"
    return FEC_WORDS.get(section.word("error-correction", "encoding"), "")


def _vlans(config: EosSection) -> Iterator[VlanState]:
    """Yield the VLANs; one whose gateway is shut down, or has none, still switches."""
    for (number,), _ in config.sections("vlan"):
        if not is_vlan(config, number):
            continue
        gateway = config.section("interface", f"Vlan{number}")
        addresses = () if gateway.has("shutdown") else tuple(rest[0] for rest in gateway.find("ip", "address"))
        yield VlanState(
            number=int(number),
            interface=f"Vlan{number}",
            addresses=addresses,
            mtu_bytes=int(gateway.word("mtu") or DEFAULT_MTU),
        )


def _loopbacks(config: EosSection) -> Iterator[str]:
    for (name,), section in config.sections("interface"):
        if name.startswith("Loopback") and not section.has("shutdown"):
            yield from (rest[0] for rest in section.find("ip", "address"))


def management_vrf(config: EosSection) -> str:
    """Return the VRF the management interface is in."""
    return config.section("interface", MANAGEMENT).word("vrf") or "default"


def gnmi(config: EosSection) -> GnmiState | None:
    """Return how gNMI is served; nothing when it is not where the management interface is."""
    server = config.section("management", "api", "gnmi")
    for _, transport in server.sections("transport", "grpc"):
        if not transport.has("shutdown") and (transport.word("vrf") or "default") == management_vrf(config):
            port = int(transport.word("port") or GNMI_PORT)
            return GnmiState(port, has_tls=bool(transport.word("ssl", "profile")))
    return None


def snmp_vrfs(config: EosSection) -> tuple[str, ...]:
    """Return the VRFs the SNMP agent answers in."""
    named = tuple(rest[0] for rest in config.find("snmp-server", "vrf") if len(rest) == 1)
    return named if config.is_off("snmp-server", "vrf", "default") else ("default", *named)


def snmp(config: EosSection) -> SnmpState | None:
    """Return what the SNMP agent answers to; nothing when it does not answer on the management interface."""
    users = tuple(_snmp_users(config))
    communities = tuple(rest[0] for rest in config.find("snmp-server", "community"))
    if management_vrf(config) not in snmp_vrfs(config) or not (users or communities):
        return None
    return SnmpState(
        users=users,
        communities=communities,
        location=config.word("snmp-server", "location"),
        contact=config.word("snmp-server", "contact"),
    )


def _snmp_users(config: EosSection) -> Iterator[SnmpV3User]:
    """Yield the users whose group may read something; secrets in stored form are of no use to an agent elsewhere."""
    for name, group, _, *rest in config.find("snmp-server", "user"):
        words = dict(zip(rest[::3], zip(rest[1::3], rest[2::3], strict=False), strict=False))
        if "auth" in words and "priv" in words and _may_read(config, group):
            yield SnmpV3User(name, words["auth"][1], words["priv"][1])


def _may_read(config: EosSection, group: str) -> bool:
    found = config.one("snmp-server", "group", group, "v3")
    if not found or "read" not in found:
        return False
    view = found[found.index("read") + 1]
    return any(rest[-1] == "included" for rest in config.find("snmp-server", "view", view))
