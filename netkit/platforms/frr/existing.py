"""What the files of a Linux switch with FRR say about its design: interfaces, timers and services.

They have no speed, breakout or model of the switch, and nothing about lossless Ethernet.
"""

import re
from collections.abc import Iterator, Mapping

from netkit.platforms.bgp_reader import interface_address
from netkit.platforms.config import Config
from netkit.platforms.existing import ExistingPort, ExistingServices, ExistingSwitch, number
from netkit.platforms.frr.files import FRR_CONF, NETPLAN
from netkit.platforms.frr.timers import session_timers
from netkit.platforms.linux.netplan import ITEM, read_item

CHRONY, RSYSLOG, SNMPD = "chrony.conf", "rsyslog.conf", "snmpd.conf"
SYSLOG_PORT, SYSLOG_PROTOCOL = 514, "udp"
PHYSICAL = "ethernets"
FORWARDED = re.compile(r'action\(\s*type="omfwd"(.*?)\)', re.DOTALL)
OLD_FORWARD = re.compile(r"^\S+\s+(@@?)\[?([\w.:-]+?)\]?(?::(\d+))?$", re.MULTILINE)
PARAMETER = re.compile(r'(\w+)="([^"]*)"')
NUMBERED = re.compile(r"\D*?(\d{1,4})")
Interfaces = Mapping[str, Mapping[str, str]]


def existing(config: Config) -> ExistingSwitch:
    interfaces = _interfaces(config)
    timers = session_timers(config)
    address, gateway = _management(config, interfaces)
    return ExistingSwitch(
        hostname=config.get((FRR_CONF, "hostname"), ""),
        management=address,
        management_gateway=gateway,
        ports=tuple(_ports(config, interfaces, address)),
        vlans=_vlans(config),
        services=_services(config),
        keepalive_s=timers.keepalive_s,
        hold_s=timers.hold_s,
        connect_s=timers.connect_s,
        bfd_interval_ms=timers.bfd_interval_ms,
        bfd_multiplier=timers.bfd_multiplier,
    )


def _items(config: Config) -> Iterator[tuple[str, str, str, object]]:
    """Yield (kind, interface, key, value) of the interfaces in netplan; lists item by item."""
    for path, value in config.items():
        if path[0] == NETPLAN and len(path) > 4:
            item = path[5] if len(path) > 5 else ""
            yield path[2], path[3], path[4], read_item(item.removeprefix(ITEM), value) if item else value


def _interfaces(config: Config) -> Interfaces:
    """Return MTU, first address and gateway by physical interface."""
    found: dict[str, dict[str, str]] = {}
    for kind, name, key, value in _items(config):
        settings = found.setdefault(name, {}) if kind == PHYSICAL else {}
        if key == "mtu":
            settings["mtu"] = str(value)
        elif key == "addresses":
            settings.setdefault("address", str(value))
        elif key == "routes" and isinstance(value, dict) and str(value.get("to")) in {"default", "0.0.0.0/0"}:
            settings["gateway"] = str(value.get("via", ""))
        elif key == "gateway4":
            settings["gateway"] = str(value)
    return found


def _management(config: Config, interfaces: Interfaces) -> tuple[str, str]:
    """Return the address of the interface with a default route, or of the one in a VRF of its own."""
    vrfs = {name: str(value) for kind, name, key, value in _items(config) if (kind, key) == ("vrfs", "interfaces")}
    candidates = [*(name for name, one in interfaces.items() if one.get("gateway")), *vrfs.values()]
    for name in candidates:
        address = interfaces.get(name, {}).get("address", "")
        if interface_address(address) is not None:
            return address, interfaces[name].get("gateway", "")
    return "", ""


def _ports(config: Config, interfaces: Interfaces, management: str) -> Iterator[ExistingPort]:
    descriptions = {
        path[1].removeprefix("interface "): value
        for path, value in config.items()
        if path[0] == FRR_CONF and len(path) == 3 and path[2] == "description" and path[1].startswith("interface ")
    }
    bridges = _vlans_by_name(config)
    vlans = {
        str(value): bridges.get(name)
        for kind, name, key, value in _items(config)
        if (kind, key) == ("bridges", "interfaces")
    }
    for name in dict.fromkeys((*interfaces, *descriptions)):
        settings = interfaces.get(name, {})
        if name != "lo" and not (management and settings.get("address") == management):
            mtu = number(settings.get("mtu"))
            yield ExistingPort(name, descriptions.get(name, ""), mtu_bytes=mtu, vlan=vlans.get(name))


def _vlans_by_name(config: Config) -> dict[str, int]:
    """Return the VLAN that the name of each bridge has as its number."""
    names = dict.fromkeys(name for kind, name, _, _ in _items(config) if kind == "bridges")
    return {name: int(match[1]) for name in names if (match := NUMBERED.fullmatch(name))}


def _vlans(config: Config) -> dict[int, str]:
    return {vlan: name for name, vlan in _vlans_by_name(config).items()}


def _services(config: Config) -> ExistingServices:
    words = {
        file: [(*" ".join(path[1:]).split(), *value.split()) for path, value in config.items() if path[0] == file]
        for file in (CHRONY, SNMPD)
    }
    return ExistingServices(
        ntp=tuple(line[1] for line in words[CHRONY] if line[0] in {"server", "pool", "peer"} and len(line) > 1),
        dns=tuple(dict.fromkeys(_nameservers(config))),
        syslog=tuple(_syslog("\n".join(value for path, value in config.items() if path[0] == RSYSLOG))),
        snmp_users=tuple(line[1] for line in words[SNMPD] if line[0] in {"rouser", "rwuser"} and len(line) > 1),
        snmp_location=_first(words[SNMPD], "sysLocation"),
        snmp_contact=_first(words[SNMPD], "sysContact"),
    )


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
    for action in FORWARDED.findall(text):
        parameters = dict(PARAMETER.findall(action))
        if target := parameters.get("target"):
            yield target, number(parameters.get("port")) or SYSLOG_PORT, parameters.get("protocol", SYSLOG_PROTOCOL)
    for mark, target, port in OLD_FORWARD.findall(text):
        yield target, number(port) or SYSLOG_PORT, "tcp" if mark == "@@" else "udp"


EXISTING = existing
