"""What the files of a GPU host say about the design: its NICs, and how they mark and pause.

The network is netplan's files or networkd's units, whoever wrote them. PCI addresses come from what binds a name to
one: the list of rails, udev rules, or link files.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePath
from typing import NamedTuple

from netkit.hardware import Catalog
from netkit.platforms.config import Config, Files
from netkit.platforms.existing import ExistingHost, ExistingNic, ExistingNicQos, number
from netkit.platforms.linux import file_kinds
from netkit.platforms.linux.file_kinds import BODY
from netkit.platforms.linux.interface_names import GLOB, NETPLAN, PCI, Settings, mac, netplan_names, unit_settings
from netkit.platforms.linux.netplan import ITEM, read_item
from netkit.platforms.linux.nic_commands import ECN_BITS, nic_qos, with_variables
from netkit.platforms.linux.unit import JOIN

DEFAULT = ("default", "0.0.0.0/0")
LOOPBACK, FIRMWARE = "lo", "mlxconfig.conf"
KINDS = {
    "*.network": file_kinds.UNIT,
    "*.link": file_kinds.UNIT,
    "*.service": file_kinds.UNIT,
    "oif.conf": file_kinds.UNIT,
    "nccl.conf": file_kinds.SHELL,
    FIRMWARE: file_kinds.SHELL,
    "*.rules": file_kinds.WHOLE,
}
NETPLAN_HEAD = re.compile(r"^network:", re.MULTILINE)
SCRIPT_HEAD = "#!"
IN_LIST = re.compile(rf"(\S+)=({PCI})")
AT_PCI = re.compile(rf'\bKERNELS?=="({PCI})"', re.IGNORECASE)
WITH_MAC = re.compile(r'\bATTRS?\{address\}=="([^"]+)"')
NAMED = re.compile(r'(?:(?<![\w$])NAME|ENV\{NETKIT_RAIL\}):?="([\w.-]+)"')
NOT_NET = re.compile(r'\bSUBSYSTEMS?=="(?!net")')
SOCKET_NAME = re.compile(r"[a-z][\w.-]*\d[\w.-]*", re.IGNORECASE)


class _Bound(NamedTuple):
    """Interface → the PCI address and the MAC its name is bound to."""

    pci: dict[str, str]
    mac: dict[str, str]


def host_config(files: Files) -> Config:
    """Parse the files of a host, whatever their names; netplan's files are one, as netplan merges them."""
    entries: dict[tuple[str, ...], str] = {}
    for path, text in sorted(host_files(files).items()):
        name = PurePath(path).name
        kind = next((kind for pattern, kind in KINDS.items() if fnmatchcase(name, pattern)), None)
        if kind is None:
            is_script = text.startswith(SCRIPT_HEAD)
            found = file_kinds.SCRIPT.parse(text, path) if is_script else file_kinds.NETPLAN.parse(text, NETPLAN)
        else:
            found = kind.parse(text, path)
        entries |= found
    return entries


def host_files(files: Files) -> Files:
    """Select the files that may describe the network of a host."""
    return {path: text for path, text in files.items() if _is_of_network(PurePath(path).name, text)}


def _is_of_network(name: str, text: str) -> bool:
    if name.endswith((".yaml", ".yml")):
        return NETPLAN_HEAD.search(text) is not None
    return text.startswith(SCRIPT_HEAD) or any(fnmatchcase(name, pattern) for pattern in KINDS)


def existing_host(config: Config) -> ExistingHost:
    netplan, units = _netplan(config), _units(config)
    bound = _bound(config, units)
    nics = tuple(
        ExistingNic(
            name,
            bound.pci.get(name, ""),
            settings.get("mac") or bound.mac.get(name, ""),
            number(settings.get("mtu")),
            settings.get("note", ""),
        )
        for name, settings in _both(netplan, units).items()
        if "address" in settings and name != LOOPBACK and not GLOB & set(name)
    )
    in_netplan, in_units = _with_address(netplan), _with_address(units)
    return ExistingHost(
        models=_models(frozenset(nic.pci for nic in nics if nic.pci)),
        backend="" if not nics else "networkd" if in_units > in_netplan else "netplan",
        management_interface=_management(config, netplan, units),
        nics=nics,
        qos=_qos(config),
    )


def _both(netplan: Mapping[str, Settings], units: Mapping[str, Settings]) -> dict[str, Settings]:
    """Return the settings of both by interface; those of netplan count where both have one."""
    return {name: {**units.get(name, {}), **netplan.get(name, {})} for name in (*netplan, *units)}


def _with_address(interfaces: Mapping[str, Settings]) -> int:
    return sum("address" in settings for settings in interfaces.values())


def _netplan(config: Config) -> dict[str, Settings]:
    """Return MTU, MAC, the address and whether a default route leaves here, by interface."""
    names = netplan_names(config)
    found: dict[str, Settings] = {}
    for path, value in config.items():
        if path[:3] != (NETPLAN, "network", "ethernets") or len(path) < 5:
            continue
        settings = found.setdefault(names[path[3]], {})
        match path[4:]:
            case ("mtu",):
                settings["mtu"] = value
            case ("macaddress",) | ("match", "macaddress"):
                settings["mac"] = mac(value)
            case ("addresses", item):
                settings["address"] = str(read_item(item.removeprefix(ITEM), value))
            case ("gateway4",):
                settings["default"] = value
            case ("routes", item) if any(to in item for to in DEFAULT):
                route = read_item(item.removeprefix(ITEM), value)
                if isinstance(route, dict) and "table" not in route and route.get("to") in DEFAULT:
                    settings["default"] = str(route.get("via", ""))
    return found


def _units(config: Config) -> dict[str, Settings]:
    """Return the same from the units of networkd and udev, with the PCI address of link files."""
    by_file = unit_settings(config)
    for path, value in config.items():
        if not path[0].endswith(".network") or len(path) < 2:
            continue
        section, *rows = path[1].split(JOIN)
        key, _, tail = path[2].partition("=") if len(path) > 2 else ("", "", "")
        block = dict(row.partition("=")[::2] for row in rows)
        if section == "[Network]" and key in {"Address", "Gateway"}:
            by_file[path[0]]["address" if key == "Address" else "default"] = value or tail
        elif section == "[Address]":
            by_file[path[0]]["address"] = block.get("Address", "")
        elif section == "[Route]" and "Table" not in block and block.get("Destination", "default") in DEFAULT:
            by_file[path[0]]["default"] = block.get("Gateway", "")
    found: dict[str, Settings] = {}
    for settings in by_file.values():
        for name in settings.get("name", "").split():
            found.setdefault(name, {}).update(settings)
    return found


def _bound(config: Config, units: Mapping[str, Settings]) -> _Bound:
    """Return what each name is bound to: by the list of rails, else by udev rules, else by link files."""
    pci = {name: settings["pci"] for name, settings in units.items() if settings.get("pci")}
    macs: dict[str, str] = {}
    for path, value in config.items():
        if path[0].endswith(".rules"):
            for rule in value.replace("\\\n", " ").splitlines():
                name = NAMED.search(rule)
                if name is None or NOT_NET.search(rule):
                    continue
                if at := AT_PCI.search(rule):
                    pci[name[1]] = at[1].lower()
                if own := WITH_MAC.search(rule):
                    macs[name[1]] = mac(own[1])
    for path, value in config.items():
        if path[1:] == ("RAILS",):
            pci |= dict(IN_LIST.findall(value.strip("'\"")))
    return _Bound(pci, macs)


def _management(config: Config, netplan: Mapping[str, Settings], units: Mapping[str, Settings]) -> str:
    """Return the interface that NCCL is told to bootstrap over, else the one with the default route.

    NCCL's value without = is the start of a name, and with ^ excludes: only what looks like a whole name is one.
    """
    value = next((value for path, value in config.items() if path[1:] == ("NCCL_SOCKET_IFNAME",)), "").strip("'\"")
    first = value.removeprefix("=").partition(",")[0]
    if value.startswith("=") or first in {**netplan, **units} or SOCKET_NAME.fullmatch(first):
        return first
    ways = {name for name, settings in (*netplan.items(), *units.items()) if settings.get("default")}
    return ways.pop() if len(ways) == 1 else ""


@cache
def _catalog() -> tuple[tuple[str, frozenset[str]], ...]:
    """Return (model, PCI addresses of its rail NICs) of the shipped catalogue, of those that have them."""
    catalog = Catalog()
    rails = (
        (name, frozenset(nic.pci for nic in catalog.host(name).rails if nic.pci)) for name in catalog.names("hosts")
    )
    return tuple((name, pci) for name, pci in rails if pci)


def _models(pci: frozenset[str]) -> tuple[str, ...]:
    """Return the models that have all these NICs as rails, or all whose rails are among them."""
    return tuple(name for name, rails in _catalog() if pci and (pci <= rails or rails <= pci))


def _qos(config: Config) -> ExistingNicQos:
    """Read the settings of netkit's own script, else the commands of any."""
    own = next((path[0] for path in config if path[1:] == ("CLASSES_IN_USE",)), None)
    if own is None:
        marking = next((value for path, value in config.items() if path[1:] == ("NCCL_IB_TC",)), "")
        return nic_qos(_commands(config), marking)

    def setting(name: str) -> str:
        return config.get((own, name), "").strip("'\"")

    tos = number(setting("TOS"))
    in_use = [one.split(":") for one in setting("CLASSES_IN_USE").split()]
    return ExistingNicQos(
        priority=number(setting("PRIORITY")),
        dscp=tos >> ECN_BITS if tos is not None else None,
        cnp_dscp=number(setting("CNP_DSCP")),
        cnp_priority=number(setting("CNP_PRIORITY")),
        dscp_to_priority=dict(_pairs(setting("DSCP_MAP"))),
        weights=dict(_pairs(" ".join(f"{one[0]}:{one[2]}" for one in in_use if len(one) == 3 and one[1] != "strict"))),
    )


def _commands(config: Config) -> Iterator[str]:
    """Yield the text of each file that may have commands, with its variables replaced."""
    texts: dict[str, list[str]] = {}
    variables: dict[str, dict[str, str]] = {}
    for path, value in config.items():
        if path[0].endswith(FIRMWARE):
            texts.setdefault(path[0], []).append("=".join((*path[1:], value)))
        elif len(path) == 2 and path[1] == BODY:
            texts.setdefault(path[0], []).append(value)
        elif len(path) == 2 and path[1].isupper():
            variables.setdefault(path[0], {})[path[1]] = value
        elif len(path) == 3 and path[1] == "[Service]":
            texts.setdefault(path[0], []).append(f"{path[2]}={value}")
    for file, lines in texts.items():
        yield with_variables(variables.get(file, {}), "\n".join(lines))


def _pairs(text: str) -> Iterator[tuple[int, int]]:
    for pair in text.split():
        first, second = map(number, pair.partition(":")[::2])
        if first is not None and second is not None:
            yield first, second
