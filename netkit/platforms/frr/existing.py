"""The design of a Linux switch with FRR, read from its files: interfaces, timers and services.

They have no speed, breakout or model of the switch, and nothing about lossless Ethernet.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from netkit.platforms.bgp_reader import ANY, interface_address, line_of, network
from netkit.platforms.config import Config, Files
from netkit.platforms.existing import (
    ExistingHeading,
    ExistingPort,
    ExistingServices,
    ExistingSwitch,
    addresses_v6,
    number,
)
from netkit.platforms.frr.files import FRR_CONF, NETPLAN
from netkit.platforms.frr.reply import session_timers
from netkit.platforms.linux.netplan import ITEM, read_item

CHRONY, RSYSLOG, SNMPD = "chrony.conf", "rsyslog.conf", "snmpd.conf"
SYSLOG_PORT, SYSLOG_PROTOCOL = 514, "udp"
PHYSICAL = "ethernets"
ACTION = re.compile(r'action\(((?:[^()"]|"[^"]*")*)\)')
PARAMETER = re.compile(r'([\w.]+)\s*=\s*"([^"]*)"')
OLD_FORWARD = re.compile(r"^\S+\s+(@@?)(?:\([^)]*\))?(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d+))?(?:;\S+)?$", re.MULTILINE)
RELEASE = re.compile(r"^frr version (\d+(?:\.\d+){0,2})", re.MULTILINE)
VLAN_BRIDGE = re.compile(r"(?:br[-_.]?)?vlan[-_.]?(\d{1,4})", re.IGNORECASE)
VLANS = range(1, 4095)
MANAGEMENT_VRF = re.compile(r"mgmt.*|management.*", re.IGNORECASE)
NO_PORT = re.compile(
    r"lo|.*[.@:].*|(?:lo|dummy|br|bridge|vlan|bond|vrf|vxlan|vni|mgmt|docker|cni|irb|svi|veth|tun|tap|wg)[-_]?\d*",
    re.IGNORECASE,
)
"""Names of virtual interfaces, for those that netplan does not describe."""
Interfaces = Mapping[str, Mapping[str, str]]


def existing(config: Config) -> ExistingSwitch:
    interfaces = _interfaces(config)
    timers = session_timers(config)
    port, address, gateway = _management(config, interfaces)
    return ExistingSwitch(
        hostname=config.get((FRR_CONF, "hostname"), ""),
        management=address,
        management_gateway=gateway,
        ports=tuple(_ports(config, interfaces, port)),
        vlans=_vlans(config),
        services=_services(config),
        **asdict(timers),
        addresses_v6=addresses_v6(
            (name, str(next(iter(value), "")) if isinstance(value, dict) else str(value))
            for _, name, key, value in _items(config)
            if key == "addresses"
        ),
        gateways_v6=tuple(
            str(value["via"])
            for _, _, key, value in _items(config)
            if key == "routes" and isinstance(value, dict) and value.get("to") in {"::/0", "default"}
            if ":" in str(value.get("via", ""))
        ),
    )


def _items(config: Config) -> Iterator[tuple[str, str, str, object]]:
    """Yield (kind, interface, key, value) of the interfaces in netplan; lists item by item."""
    for path, value in config.items():
        if path[:2] == (NETPLAN, "network") and len(path) > 3:
            _, _, kind, name, key, item, *_ = (*path, "", "")
            yield kind, name, key, read_item(item.removeprefix(ITEM), value) if item else value


def _interfaces(config: Config) -> Interfaces:
    """The MTU, first IPv4 address and gateway by physical interface, and by VRF."""
    found: dict[str, dict[str, str]] = {}
    for kind, name, key, value in _items(config):
        settings = found.setdefault(name, {"kind": kind})
        if key == "mtu":
            settings["mtu"] = str(value)
        elif key == "addresses":
            address = str(next(iter(value), "")) if isinstance(value, dict) else str(value)
            if interface_address(address) is not None:
                settings.setdefault("address", address)
        elif key == "routes" and isinstance(value, dict):
            to = str(value.get("to"))
            if to == "default" or network(to) == ANY:
                settings["gateway"] = str(value.get("via", ""))
        elif key == "gateway4":
            settings["gateway"] = str(value)
    return found


def _management(config: Config, interfaces: Interfaces) -> tuple[str, str, str]:
    """(port, address, gateway) of the interface in the VRF for management, else of one with a default route."""
    members = [(name, str(one)) for kind, name, key, one in _items(config) if (kind, key) == ("vrfs", "interfaces")]
    own = [(port, vrf) for vrf, port in members if MANAGEMENT_VRF.fullmatch(vrf)]
    ways = [(name, "") for name, one in interfaces.items() if one["kind"] == PHYSICAL and one.get("gateway")]
    for port, vrf in (*own, *ways):
        settings = interfaces.get(port, {})
        if "address" in settings:
            gateway = settings.get("gateway") or interfaces.get(vrf, {}).get("gateway", "")
            return port, settings["address"], gateway
    return "", "", ""


def _ports(config: Config, interfaces: Interfaces, management: str) -> Iterator[ExistingPort]:
    """Yield what netplan has as physical, and what only FRR names and does not look virtual."""
    descriptions: dict[str, str] = {}
    sessions: dict[str, str] = {}
    for path, value in config.items():
        if path[0] != FRR_CONF or len(path) < 2:
            continue
        if path[1].startswith("interface ") and (words := path[1].split()[1:]):
            descriptions.setdefault(words[0], "")
            if path[2:] == ("description",):
                descriptions[words[0]] = value
        elif path[1].startswith("router bgp") and len(path) == 3:
            match line_of(path, value).split(maxsplit=3):
                case ["neighbor", name, "interface", *_]:
                    descriptions.setdefault(name, "")
                case ["neighbor", name, "description", text]:
                    sessions[name] = text
    vlans = _vlans_by_name(config)
    bridged = {
        str(value): vlans.get(name)
        for kind, name, key, value in _items(config)
        if (kind, key) == ("bridges", "interfaces")
    }
    for name in dict.fromkeys((*interfaces, *descriptions)):
        settings = interfaces.get(name, {})
        is_port = settings["kind"] == PHYSICAL if settings else not NO_PORT.fullmatch(name)
        if is_port and name not in {"lo", management}:
            yield ExistingPort(
                name,
                descriptions.get(name) or sessions.get(name, ""),
                mtu_bytes=number(settings.get("mtu")),
                vlan=bridged.get(name),
            )


def _vlans_by_name(config: Config) -> dict[str, int]:
    """The VLAN of each bridge with a name such as vlan101; a bridge itself has no number."""
    names = dict.fromkeys(name for kind, name, _, _ in _items(config) if kind == "bridges")
    found = {name: int(match[1]) for name in names if (match := VLAN_BRIDGE.fullmatch(name))}
    return {name: vlan for name, vlan in found.items() if vlan in VLANS}


def _vlans(config: Config) -> dict[int, str]:
    return {vlan: name for name, vlan in _vlans_by_name(config).items()}


def _services(config: Config) -> ExistingServices:
    chrony, snmpd = list(_words(config, CHRONY)), list(_words(config, SNMPD))
    return ExistingServices(
        ntp=tuple(line[1] for line in chrony if line[0] in {"server", "pool", "peer"} and len(line) > 1),
        dns=tuple(dict.fromkeys(_nameservers(config))),
        syslog=tuple(_syslog("\n".join(value for path, value in config.items() if path[0] == RSYSLOG))),
        snmp_users=tuple(dict.fromkeys(_snmp_users(snmpd))),
        snmp_location=_first(snmpd, "syslocation"),
        snmp_contact=_first(snmpd, "syscontact"),
    )


def _words(config: Config, file: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each line; the case of the first does not matter."""
    for path, value in config.items():
        words = " ".join((*path[1:], value)).split()
        if path[0] == file and words:
            yield words[0].lower(), *words[1:]


def _snmp_users(lines: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the users with access; -s and -V are followed by another word."""
    for line in lines:
        words = list(line[1:])
        while words and words[0] in {"-s", "-V"}:
            words = words[2:]
        if line[0] in {"rouser", "rwuser"} and words:
            yield words[0]


def _first(lines: list[tuple[str, ...]], key: str) -> str:
    return next((" ".join(line[1:]) for line in lines if line[0] == key), "")


def _nameservers(config: Config) -> Iterator[str]:
    """Yield the name servers of netplan; depending on their form, the list is one level deeper."""
    for path, value in config.items():
        if path[0] == NETPLAN and len(path) > 5 and path[4] == "nameservers" and "search" not in path:
            found = read_item(path[-1].removeprefix(ITEM), value)
            if isinstance(found, str) and path[-1].startswith(ITEM):
                yield found


def _syslog(text: str) -> Iterator[tuple[str, int, str]]:
    for action in ACTION.findall(text):
        parameters = {key.lower(): value for key, value in PARAMETER.findall(action)}
        if parameters.get("type") == "omfwd" and (target := parameters.get("target")):
            protocol = parameters.get("protocol", SYSLOG_PROTOCOL).lower()
            yield target, number(parameters.get("port")) or SYSLOG_PORT, protocol
    for mark, target, port in OLD_FORWARD.findall(text):
        yield target.strip("[]"), number(port) or SYSLOG_PORT, "tcp" if mark == "@@" else "udp"


def heading(files: Files) -> ExistingHeading:
    """Read the release that FRR writes above its configuration."""
    found = RELEASE.search(files.get(FRR_CONF, ""))
    return ExistingHeading(version=found[1] if found else "")


EXISTING = existing
HEADING = heading
