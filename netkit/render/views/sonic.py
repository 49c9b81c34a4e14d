"""SONiC: everything config_db.json and frr.conf need, decided."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, ManagementAddress, Snmp, Switch, SyslogServer, Vlan
from netkit.errors import Problem, RenderError
from netkit.platforms.frr import dialects as frr_dialects
from netkit.platforms.sonic.dialects import Dialect, dialect
from netkit.platforms.sonic.hardware import SonicHardware, hardware
from netkit.render.artifact import Artifact
from netkit.render.views import sonic_ports, sonic_qos, sonic_unified
from netkit.render.views.block import when, when_text
from netkit.render.views.frr_routing import Routing, routing
from netkit.render.views.json_rows import Table, table
from netkit.render.views.sonic_ports import CageRow, Interface, PortRow
from netkit.render.views.sonic_qos import Qos
from netkit.render.views.sonic_unified import Bgp

# Both modes run frrcfgd (frr_mgmt_framework_config), because the container starts bfdd only beside it. In split mode it
# finds no BGP tables and leaves FRR alone. bgpcfgd, which acts on BGP_DEVICE_GLOBAL (TSA), is then not started: a drain
# is FRR's graceful shutdown in either mode, and tsa_enabled stays false.
ROUTING_MODES = {"split": "split-unified", "unified": "unified"}
DEVICE_TYPES = {"leaf": "LeafRouter", "spine": "SpineRouter", "core": "SpineRouter"}
SNMP_USER_LENGTHS = range(4, 33)
FLOOD_KBPS = 10_000  # unknown unicast of a host port: enough to find a host again, too little to fill a lossless queue


@dataclass(frozen=True, slots=True)
class SnmpText:
    """Where SNMP says the switch stands, or whom to call."""

    row: str
    field: str
    value: str


@dataclass(frozen=True, slots=True)
class Services:
    """What the switch talks to beside its neighbours."""

    vrf: str
    dns: Table[str]
    ntp: Table[str]
    syslog: Table[SyslogServer]
    snmp_texts: Table[SnmpText]
    snmp_users: tuple[Snmp, ...]
    snmp_address: tuple[ManagementAddress, ...]


@dataclass(frozen=True, slots=True)
class View:
    """All of one switch."""

    hardware: SonicHardware
    device_type: str
    buffer_model: str
    routing_mode: str
    system_mac: tuple[str, ...]
    router_id: tuple[str, ...]
    has_wcmp: tuple[bool, ...]
    has_hash_algorithm: tuple[bool, ...]
    has_ntp_options: tuple[bool, ...]
    has_ecn_counters: tuple[bool, ...]
    management: tuple[ManagementAddress, ...]
    services: Services
    cages: Table[CageRow]
    ports: Table[PortRow]
    interfaces: Table[Interface]
    vlans: tuple[Vlan, ...]
    members: Table[str]
    flood_kbps: int
    qos: tuple[Qos, ...]
    bgp: tuple[Bgp, ...]


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield config_db.json and, in split mode, frr.conf."""
    words = dialect(switch.version)
    plan = routing(fabric, switch, frr_dialects.dialect(words.frr_version))
    view = build(fabric, switch, plan, words)
    yield Artifact("config_db.json", "sonic/config_db.json.j2", {"fabric": fabric, "switch": switch, "view": view})
    if switch.routing_mode == "split":
        # The container adds the lines for zebra where they are missing; there from the start, the file stays as it is.
        context = {"switch": switch, "routing": plan, "zebra_lines": words.zebra_lines}
        yield Artifact("frr.conf", "sonic/frr.conf.j2", context)


def ztp(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield what a factory-fresh switch needs to be reached over the management network."""
    if switch.management is None:
        return
    logins = tuple(login for login in fabric.services.login if login.password_hash_secret)
    context = {"switch": switch, "management": switch.management, "logins": logins}
    yield Artifact("ztp_config_db.json", "sonic/ztp_config_db.json.j2", context)
    yield Artifact("ztp.sh", "sonic/ztp.sh.j2", context)


def build(fabric: Fabric, switch: Switch, plan: Routing, words: Dialect) -> View:
    """Return the view of a switch."""
    model = hardware(switch.model, switch.version)
    return View(
        hardware=model,
        device_type=DEVICE_TYPES[switch.role],
        buffer_model="dynamic" if model.is_dynamic else "traditional",
        routing_mode=ROUTING_MODES[switch.routing_mode],
        system_mac=when_text(switch.system_mac),
        router_id=(switch.loopback,) if words.has_router_id else (),
        has_wcmp=when(words.has_wcmp),
        has_hash_algorithm=when(words.has_hash_algorithm),
        has_ntp_options=when(words.has_ntp_options),
        has_ecn_counters=when(words.has_ecn_counters),
        management=(switch.management,) if switch.management else (),
        services=_services(fabric, switch, words),
        cages=table(sonic_ports.cages(switch, model)),
        ports=table(sonic_ports.ports(switch, model)),
        interfaces=table(sonic_ports.interfaces(switch)),
        vlans=(switch.vlan,) if switch.vlan else (),
        members=table(sonic_ports.members(switch)),
        flood_kbps=FLOOD_KBPS,
        qos=(sonic_qos.build(fabric.lossless, switch, model, words),) if switch.ports else (),
        bgp=tuple(sonic_unified.bgp(plan)) if switch.routing_mode == "unified" else (),
    )


def _services(fabric: Fabric, switch: Switch, words: Dialect) -> Services:
    services = fabric.services
    users = tuple(snmp for snmp in services.snmp if snmp.auth_secret and snmp.priv_secret)
    for snmp in users:
        if len(snmp.user) not in SNMP_USER_LENGTHS:
            message = f"the SNMP user {snmp.user!r} is too short or too long for SONiC"
            raise RenderError(Problem(message, "use 4 to 32 characters", ("services", "snmp", "user")))
    texts = [SnmpText("CONTACT", "Contact", snmp.contact) for snmp in services.snmp if snmp.contact]
    texts += [SnmpText("LOCATION", "Location", snmp.location) for snmp in services.snmp if snmp.location]
    return Services(
        vrf="mgmt" if switch.management else "default",
        dns=table(services.dns),
        ntp=table(services.ntp),
        syslog=table(services.syslog),
        snmp_texts=table(texts),
        snmp_users=users,
        snmp_address=(switch.management,) if users and switch.management and words.has_snmp_address else (),
    )
