"""`show`: configuration, version, platform, neighbours, interfaces and their counters."""

import ipaddress
import json
import zlib
from collections.abc import Mapping, Sequence

from netkit.lab.agents.lldp import neighbor as lldp_neighbor
from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.sonic.command_line import Commands, SonicArguments, SonicCommand, SonicUsageError, columns
from netkit.lab.personalities.sonic.counters import PORT
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personalities.sonic.tables import natural, ordered, parts, text
from netkit.lab.personality import Call
from netkit.lab.reading import PortReading


def _all(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    routing = system.node.run("vtysh", "-c", "show running-config").stdout
    call.out(json.dumps({**ordered(system.running), "bgpraw": routing}, indent=4) + "\n")


def _bgp(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    call.out(system.node.run("vtysh", "-c", "show running-config").stdout)


def _ports(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    rows = ordered(system.running).get("PORT", {})
    found = {name: rows[name] for name in line.arguments if name in rows} if line.arguments else rows
    call.out(json.dumps(found, indent=4) + "\n")


CONFIG_COMMANDS: Commands = {
    ("runningconfiguration", "all"): SonicCommand(_all),
    ("runningconfiguration", "bgp"): SonicCommand(_bgp),
    ("runningconfiguration", "ports"): SonicCommand(_ports, 1),
}


RULE = "-" * 50
BGP_TITLES = ("Neighbhor", "V", "AS", "MsgRcvd", "MsgSent", "TblVer", "InQ", "OutQ")
"""The first is misspelt on every switch."""


def serial(system: SonicSystem) -> str:
    """Return a serial number that stays the same for a device of this name."""
    return f"LAB{zlib.crc32(system.switch.name.encode()):010d}"


def _version(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    call.out(
        f"\nSONiC Software Version: SONiC.{system.switch.version}\nSONiC OS Version: 12\nDistribution: Debian 12\n"
        f"Built by: netkit lab\n\n{_summary(system)}\n"
    )


def _summary(system: SonicSystem) -> str:
    found = {leaf: text(system.running, "DEVICE_METADATA", "localhost", leaf) for leaf in ("platform", "hwsku")}
    return (
        f"Platform: {found['platform']}\nHwSKU: {found['hwsku']}\nASIC: {system.switch.model.asic}\nASIC Count: 1\n"
        f"Serial Number: {serial(system)}\nModel Number: {system.switch.model.name}\nHardware Revision: N/A\n"
    )


def _platform(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    call.out(_summary(system))


def _lldp_table(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    rows = [
        (one.interface, one.chassis.name, one.port, "", one.port_description)
        for one in sorted(_neighbors(system), key=lambda one: natural(one.interface))
    ]
    call.out("Capability codes: (R) Router, (B) Bridge, (O) Other\n")
    call.out(columns(("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"), rows, right=False))
    call.out(f"{RULE}\nTotal entries displayed:  {len(rows)}\n")


def _neighbors(system: SonicSystem) -> tuple[lldp_neighbor.LldpNeighbor, ...]:
    return lldp_neighbor.neighbors(system.node.run("/usr/sbin/lldpcli", "-f", "json0", "show", "neighbors").stdout)


def _lldp_neighbors(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    ports = [*(("ports", line.arguments[0]) if line.arguments else ())]
    call.out(system.node.run("/usr/sbin/lldpcli", "show", "neighbors", *ports).stdout)


def _bgp_summary(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    try:
        answer = json.loads(system.node.vty("show bgp ipv4 unicast summary json") or "{}")
    except (OSError, ValueError) as error:
        raise ConfigRefusedError("bgpd is not running") from error
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


def _addresses(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
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


def _vlan_config(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    rows = []
    for key in sorted(system.running.get("VLAN", {}), key=natural):
        members = [parts(member)[1] for member in system.running.get("VLAN_MEMBER", {}) if parts(member)[0] == key]
        number = text(system.running, "VLAN", key, "vlanid")
        for member in sorted(members, key=natural) or [""]:
            mode = text(system.running, "VLAN_MEMBER", f"{key}|{member}", "tagging_mode")
            rows.append((key, number, member, mode))
    call.out(columns(("Name", "VID", "Member", "Mode"), rows, right=False))


def _management(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    for key, row in sorted(system.running.get("MGMT_INTERFACE", {}).items()):
        call.out(f"Management IP address = {parts(key)[1]}\n")
        if "gwaddr" in row:
            call.out(f"Management Network Default Gateway = {row['gwaddr']}\n")


def _lines(table: str, title: str) -> SonicCommand:
    """Return the command that prints the rows of a table under one title."""

    def action(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
        rows = [
            (key, " ".join(f"{leaf}={value}" for leaf, value in sorted(row.items())))
            for key, row in sorted(system.running.get(table, {}).items(), key=lambda entry: natural(entry[0]))
        ]
        call.out(columns((title, "Settings"), rows, right=False))

    return SonicCommand(action)


def _hash(system: SonicSystem, call: Call, line: SonicArguments) -> None:
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


SYSTEM_COMMANDS: Commands = {
    ("version",): SonicCommand(_version),
    ("platform", "summary"): SonicCommand(_platform),
    ("lldp", "table"): SonicCommand(_lldp_table),
    ("lldp", "neighbors"): SonicCommand(_lldp_neighbors, 1),
    ("ip", "bgp", "summary"): SonicCommand(_bgp_summary),
    ("ip", "interfaces"): SonicCommand(_addresses),
    ("vlan", "config"): SonicCommand(_vlan_config),
    ("management_interface", "address"): SonicCommand(_management),
    ("dns", "nameserver"): _lines("DNS_NAMESERVER", "Nameserver"),
    ("storm-control", "all"): _lines("PORT_STORM_CONTROL", "Interface Name"),
    ("syslog",): _lines("SYSLOG_SERVER", "SERVER IP"),
    ("runningconfiguration", "syslog"): _lines("SYSLOG_SERVER", "Syslog Servers"),
    ("snmpagentaddress",): _lines("SNMP_AGENT_ADDRESS_CONFIG", "ListenIP"),
    ("runningconfiguration", "ntp"): _lines("NTP_SERVER", "NTP Servers"),
    ("runningconfiguration", "snmp", "user"): _lines("SNMP_USER", "User"),
    ("switch-hash", "global"): SonicCommand(_hash, 0, frozenset({"--json", "-j"})),
}


STATES = {(True, True): "U", (True, False): "D", (False, True): "X", (False, False): "X"}
FORM_WORDS = {"OSFP": "OSFP 8X Pluggable Transceiver", "QSFP-DD": "QSFP-DD Double Density 8X Pluggable Transceiver"}


def chosen(system: SonicSystem, line: SonicArguments) -> tuple[str, ...]:
    """Return the ports a line names, all when it names none; one that is not there is an error."""
    known = sorted(system.running.get("PORT", {}), key=natural)
    if not line.arguments:
        return tuple(known)
    for name in line.arguments:
        if name not in known:
            raise SonicUsageError(f"Invalid interface name {name}")
    return line.arguments


def readings(system: SonicSystem, line: SonicArguments) -> list[PortReading]:
    """Return what the named ports show, in their order; ports without a cable in the lab show nothing."""
    found = {reading.name: reading for reading in system.node.ports()}
    return [found[name] for name in chosen(system, line) if name in found]


def number(count: int) -> str:
    """Return a count as `show` prints it."""
    return f"{count:,}"


def _status(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    up = {reading.name: reading for reading in system.node.ports()}
    names = chosen(system, line)
    titles = ("Interface", "Lanes", "Speed", "MTU", "FEC", "Alias", "Vlan", "Oper", "Admin", "Type", "Asym PFC")
    call.out(columns(titles, [_status_row(system, name, up.get(name)) for name in names]))


def _status_row(system: SonicSystem, name: str, reading: PortReading | None) -> Sequence[str]:
    row = {leaf: text(system.running, "PORT", name, leaf) for leaf in system.running["PORT"][name]}
    speed = int(row["speed"])
    module = reading.module if reading else None
    return (
        name,
        row["lanes"],
        f"{speed // 1000}G" if speed % 1000 == 0 else f"{speed}M",
        row.get("mtu", "9100"),
        row.get("fec", "N/A"),
        row.get("alias", name),
        "trunk" if any(parts(key)[1] == name for key in system.running.get("VLAN_MEMBER", {})) else "routed",
        "up" if reading and reading.is_up else "down",
        row.get("admin_status", "down"),
        FORM_WORDS.get(module.identifier, module.identifier) if module else "N/A",
        "off",
    )


def _description(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    up = {reading.name for reading in system.node.ports() if reading.is_up}
    rows = []
    for name in chosen(system, line):
        row = system.running["PORT"][name]
        shown = ("up" if name in up else "down", row.get("admin_status", "down"), row.get("alias", name))
        rows.append((name, *shown, row.get("description", "N/A")))
    call.out(columns(("Interface", "Oper", "Admin", "Alias", "Description"), rows))


def _counters(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    counts = [f"{way}_{what}" for way in ("RX", "TX") for what in ("OK", "BPS", "UTIL", "ERR", "DRP", "OVR")]
    titles = ("IFACE", "STATE", *counts)
    call.out(columns(titles, [_counters_row(system, call, reading) for reading in readings(system, line)]))


def _counters_row(system: SonicSystem, call: Call, reading: PortReading) -> Sequence[str]:
    since = system.cleared.since(call.user, "counters", reading)
    cells = [reading.name, STATES[reading.is_enabled, reading.is_up]]
    rates = system.rates.of(reading)
    for word, rate in (("IN", rates.rx_bytes_per_s), ("OUT", rates.tx_bytes_per_s)):
        share = 100 * rate * 8 / (reading.speed_gbps * 1e9) if reading.speed_gbps else 0.0
        counts = [since[f"{PORT}IF_{word}_{what}"] for what in ("UCAST_PKTS", "ERRORS", "DISCARDS")]
        cells += [number(counts[0]), _rate(rate), f"{share:.2f}%", number(counts[1]), number(counts[2]), "N/A"]
    return cells


def _rate(bytes_per_s: float) -> str:
    for size, word in ((1e7, "MB/s"), (1e3, "KB/s")):
        if bytes_per_s > size:
            return f"{bytes_per_s / (1e6 if word == 'MB/s' else 1e3):.2f} {word}"
    return f"{bytes_per_s:.2f} B/s"


def _fec_stats(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    titles = ("IFACE", "STATE", "FEC_CORR", "FEC_UNCORR", "FEC_SYMBOL_ERR", "FEC_PRE_BER", "FEC_POST_BER")
    rows = []
    for reading in readings(system, line):
        since = system.cleared.since(call.user, "counters", reading)
        names = ("CORRECTABLE_FRAMES", "NOT_CORRECTABLE_FRAMES", "SYMBOL_ERRORS")
        counts = [number(since[f"{PORT}IF_IN_FEC_{name}"]) for name in names]
        rates = (f"{reading.fec.pre_fec_ber:.2e}", f"{reading.fec.effective_ber:.2e}")
        rows.append((reading.name, STATES[reading.is_enabled, reading.is_up], *counts, *rates))
    call.out(columns(titles, rows))


def _fec_histogram(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    line.first("interfacename")
    for reading in readings(system, line):
        bins = [(f"BIN{index}", count) for index, count in enumerate(reading.fec.histogram[:16])]
        call.out(columns(("Symbol Errors Per Codeword", "Codewords"), bins, right=False))


def _fec_status(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    up = {reading.name: reading.fec.mode for reading in system.node.ports() if reading.is_up}
    names = chosen(system, line)
    rows = [(name, up.get(name) or "N/A", text(system.running, "PORT", name, "fec", "N/A")) for name in names]
    call.out(columns(("Interface", "FEC Oper", "FEC Admin"), rows))


def _breakout(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    rows: Mapping[str, object] = system.running.get("BREAKOUT_CFG", {})
    shown = [(name, text(system.running, "BREAKOUT_CFG", name, "brkout_mode")) for name in sorted(rows, key=natural)]
    call.out(columns(("Interface", "Current Breakout Mode"), shown, right=False))


INTERFACE_COMMANDS: Commands = {
    ("interfaces", "status"): SonicCommand(_status, 1),
    ("interfaces", "description"): SonicCommand(_description, 1),
    ("interfaces", "counters"): SonicCommand(_counters),
    ("interfaces", "counters", "fec-stats"): SonicCommand(_fec_stats),
    ("interfaces", "counters", "fec-histogram"): SonicCommand(_fec_histogram, 1),
    ("interfaces", "fec", "status"): SonicCommand(_fec_status, 1),
    ("interfaces", "breakout", "current-mode"): SonicCommand(_breakout),
}
