"""`show` commands on the switch as a whole: version, platform, neighbours, VLANs, addresses."""

import ipaddress
import json
import zlib

from netkit.lab.agents.lldp import neighbor as lldp_neighbor
from netkit.lab.node import RefusedError
from netkit.lab.personalities.sonic.columns import columns
from netkit.lab.personalities.sonic.command import Command, Commands, Line
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import natural, parts, text
from netkit.lab.personality import Call

RULE = "-" * 50
BGP_TITLES = ("Neighbhor", "V", "AS", "MsgRcvd", "MsgSent", "TblVer", "InQ", "OutQ")
"""The first is misspelt on every switch."""


def serial(system: System) -> str:
    """Return a serial number that stays the same for a device of this name."""
    return f"LAB{zlib.crc32(system.switch.name.encode()):010d}"


def _version(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    call.out(
        f"\nSONiC Software Version: SONiC.{system.switch.version}\nSONiC OS Version: 12\nDistribution: Debian 12\n"
        f"Built by: netkit lab\n\n{_summary(system)}\n"
    )


def _summary(system: System) -> str:
    found = {leaf: text(system.running, "DEVICE_METADATA", "localhost", leaf) for leaf in ("platform", "hwsku")}
    return (
        f"Platform: {found['platform']}\nHwSKU: {found['hwsku']}\nASIC: {system.switch.model.asic}\nASIC Count: 1\n"
        f"Serial Number: {serial(system)}\nModel Number: {system.switch.model.name}\nHardware Revision: N/A\n"
    )


def _platform(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    call.out(_summary(system))


def _lldp_table(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    rows = [
        (one.interface, one.chassis.name, one.port, "", one.port_description)
        for one in sorted(_neighbors(system), key=lambda one: natural(one.interface))
    ]
    call.out("Capability codes: (R) Router, (B) Bridge, (O) Other\n")
    call.out(columns(("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"), rows, right=False))
    call.out(f"{RULE}\nTotal entries displayed:  {len(rows)}\n")


def _neighbors(system: System) -> tuple[lldp_neighbor.Neighbor, ...]:
    return lldp_neighbor.neighbors(system.node.run("/usr/sbin/lldpcli", "-f", "json0", "show", "neighbors").stdout)


def _lldp_neighbors(system: System, call: Call, line: Line) -> None:
    ports = [*(("ports", line.arguments[0]) if line.arguments else ())]
    call.out(system.node.run("/usr/sbin/lldpcli", "show", "neighbors", *ports).stdout)


def _bgp_summary(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    try:
        answer = json.loads(system.node.vty("show bgp ipv4 unicast summary json") or "{}")
    except (OSError, ValueError) as error:
        raise RefusedError("bgpd is not running") from error
    found = answer.get("ipv4Unicast", answer)
    if "peers" not in found:
        call.out("No IPv4 neighbor is configured\n")
        return
    call.out(
        f"\nIPv4 Unicast Summary:\nBGP router identifier {found['routerId']}, local AS number {found['as']} vrf-id 0\n"
        f"BGP table version {found['tableVersion']}\nRIB entries {found['ribCount']}, "
        f"using {found['ribMemory']} bytes of memory\nPeers {found['peerCount']}, "
        f"using {found['peerMemory']} KiB of memory\nPeer groups {found.get('peerGroupCount', 0)}, "
        f"using {found.get('peerGroupMemory', 0)} bytes of memory\n\n\n"
    )
    titles = (*BGP_TITLES, "Up/Down", "State/PfxRcd", "NeighborName")
    rows = []
    for name, peer in sorted(found["peers"].items(), key=lambda entry: natural(entry[0])):
        state = peer["pfxRcd"] if peer["state"] == "Established" else peer["state"]
        counts = [peer[key] for key in ("version", "remoteAs", "msgRcvd", "msgSent", "tableVersion", "inq", "outq")]
        rows.append((name, *counts, peer["peerUptime"], state, "NotAvailable"))
    call.out(columns(titles, rows, right=False))
    call.out(f"\nTotal number of neighbors {len(rows)}\n")


def _addresses(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    up = {reading.name for reading in system.node.ports() if reading.is_up}
    rows = []
    for table in ("INTERFACE", "LOOPBACK_INTERFACE", "VLAN_INTERFACE"):
        for key in sorted(system.running.get(table, {}), key=natural):
            name, *prefix = parts(key)
            if prefix and ipaddress.ip_interface(prefix[0]).version == 4:
                admin = text(system.running, "PORT", name, "admin_status", "up") if table == "INTERFACE" else "up"
                oper = "up" if table != "INTERFACE" or name in up else "down"
                rows.append((name, "", prefix[0], f"{admin}/{oper}", "N/A", "N/A"))
    call.out(
        columns(
            ("Interface", "Master", "IPv4 address/mask", "Admin/Oper", "BGP Neighbor", "Neighbor IP"), rows, right=False
        )
    )


def _vlan_config(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    rows = []
    for key in sorted(system.running.get("VLAN", {}), key=natural):
        members = [parts(member)[1] for member in system.running.get("VLAN_MEMBER", {}) if parts(member)[0] == key]
        number = text(system.running, "VLAN", key, "vlanid")
        for member in sorted(members, key=natural) or [""]:
            mode = text(system.running, "VLAN_MEMBER", f"{key}|{member}", "tagging_mode")
            rows.append((key, number, member, mode))
    call.out(columns(("Name", "VID", "Member", "Mode"), rows, right=False))


def _management(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    for key, row in sorted(system.running.get("MGMT_INTERFACE", {}).items()):
        call.out(f"Management IP address = {parts(key)[1]}\n")
        if "gwaddr" in row:
            call.out(f"Management Network Default Gateway = {row['gwaddr']}\n")


def _lines(table: str, title: str) -> Command:
    """Return the command that prints the rows of a table under one title."""

    def action(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
        rows = [
            (key, " ".join(f"{leaf}={value}" for leaf, value in sorted(row.items())))
            for key, row in sorted(system.running.get(table, {}).items(), key=lambda entry: natural(entry[0]))
        ]
        call.out(columns((title, "Settings"), rows, right=False))

    return Command(action)


def _hash(system: System, call: Call, line: Line) -> None:
    row = system.running.get("SWITCH_HASH", {}).get("GLOBAL", {})
    found = {
        word: {"hash_field": row.get(f"{word}_hash", "N/A"), "algorithm": row.get(f"{word}_hash_algorithm", "N/A")}
        for word in ("ecmp", "lag")
    }
    if line.has("--json", "-j"):
        call.out(json.dumps(found, indent=4) + "\n")
        return
    for word, settings in found.items():
        fields = settings["hash_field"]
        shown = [fields] if isinstance(fields, str) else fields
        rows = [(f"{word.upper()} HASH", shown[0], settings["algorithm"]), *(("", field, "") for field in shown[1:])]
        call.out(columns(("Hash", "Field", "Algorithm"), rows, right=False))


COMMANDS: Commands = {
    ("version",): Command(_version),
    ("platform", "summary"): Command(_platform),
    ("lldp", "table"): Command(_lldp_table),
    ("lldp", "neighbors"): Command(_lldp_neighbors, 1),
    ("ip", "bgp", "summary"): Command(_bgp_summary),
    ("ip", "interfaces"): Command(_addresses),
    ("vlan", "config"): Command(_vlan_config),
    ("management_interface", "address"): Command(_management),
    ("dns", "nameserver"): _lines("DNS_NAMESERVER", "Nameserver"),
    ("storm-control", "all"): _lines("PORT_STORM_CONTROL", "Interface Name"),
    ("syslog",): _lines("SYSLOG_SERVER", "SERVER IP"),
    ("runningconfiguration", "syslog"): _lines("SYSLOG_SERVER", "Syslog Servers"),
    ("snmpagentaddress",): _lines("SNMP_AGENT_ADDRESS_CONFIG", "ListenIP"),
    ("runningconfiguration", "ntp"): _lines("NTP_SERVER", "NTP Servers"),
    ("runningconfiguration", "snmp", "user"): _lines("SNMP_USER", "User"),
    ("switch-hash", "global"): Command(_hash, 0, frozenset({"--json", "-j"})),
}
