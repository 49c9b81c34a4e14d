"""The design of a GPU host, read from its files: its NICs, and how they mark and pause.

The network is netplan's files or networkd's units, whoever wrote them. PCI addresses come from what binds a name to
one: the list of rails, udev rules, or link files. QoS is read from scripts and units of anybody: mlnx_qos, dcb, and
values written to sysfs. Only plain numbers are read, and variables that the same file sets once. What is set to several
values is unknown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePath
from typing import NamedTuple, TypeVar

from netkit.hardware import Catalog
from netkit.platforms.config import Config, Files
from netkit.platforms.existing import ExistingHost, ExistingNic, ExistingNicQos, interface_v6, number
from netkit.platforms.linux import file_kinds
from netkit.platforms.linux.file_kinds import BODY, JOIN
from netkit.platforms.linux.model import GLOB, NETPLAN, PCI, UnitSettings, mac, netplan_names, unit_settings
from netkit.platforms.linux.netplan import ITEM, read_item

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
T = TypeVar("T")
VARIABLE = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]*))")
MLNX_QOS = re.compile(r"\bmlnx_qos\b([^;|&\n]*)")
MLNX_OPTION = re.compile(r"\s(?:--(pfc|prio_tc|tsa|tcbw|dscp2prio)[=\s]|-([fpst])\s)\s*[\"']?([a-z0-9,]+)")
MLNX_SHORT = {"f": "pfc", "p": "prio_tc", "s": "tsa", "t": "tcbw"}
DCB = re.compile(r"\bdcb\s+(?:-\S+\s+)*(?:app|pfc|ets)\s+(?:add|replace|set)\b([^;|&\n]*)")
DCB_OPTION = re.compile(r"\b(prio-pfc|dscp-prio|prio-tc|tc-tsa|tc-bw)((?:\s+\w+:\w+)+)")
WRITTEN = re.compile(r"\becho\s+[\"']?(\d+)[\"']?\s*(?:>|\|\s*(?:sudo\s+)?tee)\s*[\"']?([^\s\"';|&]+)")
NV_SETTING = re.compile(r"\b(CNP_DSCP|CNP_802P_PRIO)_P\d+=(\d+)\b")
RDMA_CM = re.compile(r"\bcma_roce_tos\b[^;|&\n]*\s-t\s+(\d+)")
CNP_DSCP, CNP_PRIORITY = ("roce_np/cnp_dscp", "np_cnp_dscp"), ("roce_np/cnp_802p_prio", "np_cnp_prio")
TRAFFIC_CLASS = ("/traffic_class", "/default_roce_tos")
CLASS_SELECTOR, ASSURED = re.compile(r"CS([0-7])"), re.compile(r"AF([1-4])([1-3])")
EXPEDITED = 46
ECN_BITS = 2
PRIORITIES = range(8)
DSCPS = range(64)


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
            interface_v6(settings["address_v6"]) if "address_v6" in settings else None,
            settings["address"],
            tuple(settings.get("routes", "").split()),
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


def _both(netplan: Mapping[str, UnitSettings], units: Mapping[str, UnitSettings]) -> dict[str, UnitSettings]:
    """The settings of both by interface; those of netplan count where both have one."""
    return {name: {**units.get(name, {}), **netplan.get(name, {})} for name in (*netplan, *units)}


def _with_address(interfaces: Mapping[str, UnitSettings]) -> int:
    return sum("address" in settings for settings in interfaces.values())


def _netplan(config: Config) -> dict[str, UnitSettings]:
    """MTU, MAC, the address and whether a default route leaves here, by interface."""
    names = netplan_names(config)
    found: dict[str, UnitSettings] = {}
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
                address = str(read_item(item.removeprefix(ITEM), value))
                settings["address_v6" if interface_v6(address) else "address"] = address
            case ("gateway4",):
                settings["default"] = value
            case ("routes", item) if any(to in item for to in DEFAULT):
                route = read_item(item.removeprefix(ITEM), value)
                if isinstance(route, dict) and "table" not in route and route.get("to") in DEFAULT:
                    settings["default"] = str(route.get("via", ""))
    return found


def _units(config: Config) -> dict[str, UnitSettings]:
    """The same from the units of networkd and udev, with the PCI address of link files."""
    by_file = unit_settings(config)
    for path, value in config.items():
        if not path[0].endswith(".network") or len(path) < 2:
            continue
        section, *rows = path[1].split(JOIN)
        key, _, tail = path[2].partition("=") if len(path) > 2 else ("", "", "")
        block = dict(row.partition("=")[::2] for row in rows)
        if section == "[Network]" and key in {"Address", "Gateway"}:
            setting = "address" if key == "Address" else "default"
            by_file[path[0]]["address_v6" if key == "Address" and ":" in (value or tail) else setting] = value or tail
        elif section == "[Address]":
            address = block.get("Address", "")
            by_file[path[0]]["address_v6" if ":" in address else "address"] = address
        elif section == "[Route]" and "Table" not in block and "Gateway" in block:
            to, routes = block.get("Destination", "default"), by_file[path[0]].get("routes", "")
            by_file[path[0]]["routes"] = f"{routes} {DEFAULT[1] if to in DEFAULT else to}".strip()
            if to in DEFAULT:
                by_file[path[0]]["default"] = block["Gateway"]
    found: dict[str, UnitSettings] = {}
    for settings in by_file.values():
        for name in settings.get("name", "").split():
            found.setdefault(name, {}).update(settings)
    return found


def _bound(config: Config, units: Mapping[str, UnitSettings]) -> _Bound:
    """What each name is bound to: by the list of rails, else by udev rules, else by link files."""
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


def _management(config: Config, netplan: Mapping[str, UnitSettings], units: Mapping[str, UnitSettings]) -> str:
    """The interface that NCCL is configured to bootstrap over, else the one with the default route.

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
    """(model, PCI addresses of its rail NICs) of the shipped catalogue, of those that have them."""
    catalog = Catalog()
    rails = (
        (name, frozenset(nic.pci for nic in catalog.host(name).rails if nic.pci)) for name in catalog.names("hosts")
    )
    return tuple((name, pci) for name, pci in rails if pci)


def _models(pci: frozenset[str]) -> tuple[str, ...]:
    """The models that have all these NICs as rails, or all whose rails are among them."""
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


def nic_qos(texts: Iterable[str], traffic_class: str) -> ExistingNicQos:
    """Read the commands of scripts; `traffic_class` is what NCCL marks with."""
    text = "\n".join(texts).replace("\\\n", " ")
    mlnx, dcb = list(_mlnx(text)), list(_dcb(text))
    pauses = [*_rows(mlnx, "pfc"), *_rows(dcb, "prio-pfc")]
    written = WRITTEN.findall(text)
    cnp = [(key, number(value)) for key, value in NV_SETTING.findall(text)]
    marks = [*_to(written, TRAFFIC_CLASS), *map(number, RDMA_CM.findall(text)), number(traffic_class)]
    return ExistingNicQos(
        priority=agreed(lossless for row in pauses if (lossless := _on(row)) is not None),
        dscp=agreed(mark >> ECN_BITS for mark in marks if mark is not None and mark >> ECN_BITS in DSCPS),
        cnp_dscp=_first(_to(written, CNP_DSCP), (value for key, value in cnp if key == "CNP_DSCP")),
        cnp_priority=_first(_to(written, CNP_PRIORITY), (value for key, value in cnp if key != "CNP_DSCP")),
        dscp_to_priority=dict(_dscp_map(mlnx, dcb)),
        weights=_weights(
            [*_rows(mlnx, "tcbw"), *_rows(dcb, "tc-bw")],
            agreed(map(_items, (*_rows(mlnx, "tsa"), *_rows(dcb, "tc-tsa")))),
        ),
    )


def with_variables(variables: Mapping[str, str], text: str) -> str:
    """Replace the variables that are set once."""
    once = {
        name: value.partition(" #")[0].strip().strip("'\"")
        for name, value in variables.items()
        if not re.search(rf"(?<![\w$}}{{]){name}\b", text)
    }
    return VARIABLE.sub(lambda match: once.get(match[1] or match[2], match[0]), text)


def agreed(values: Iterable[T]) -> T | None:
    """The value that all have."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _first(*sources: Iterable[int | None]) -> int | None:
    found = (agreed(value for value in source if value is not None) for source in sources)
    return next((one for one in found if one is not None), None)


Option = tuple[str, dict[str, str]]
"""An option, and its value by priority, class or DSCP."""


def _mlnx(text: str) -> Iterator[Option]:
    for command in MLNX_QOS.findall(text):
        for long, short, value in MLNX_OPTION.findall(command):
            words = value.split(",")
            name = long or MLNX_SHORT[short]
            if name == "dscp2prio" and words[0] == "set" and len(words) == 3:
                yield name, {words[1]: words[2]}
            elif name != "dscp2prio" and len(words) == len(PRIORITIES):
                yield name, {str(index): word for index, word in enumerate(words)}


def _dcb(text: str) -> Iterator[Option]:
    for command in DCB.findall(text):
        for name, pairs in DCB_OPTION.findall(command):
            row = dict(pair.split(":") for pair in pairs.split())
            every = row.pop("all", None)
            yield name, row if every is None else {str(index): every for index in PRIORITIES} | row


def _rows(options: Iterable[Option], name: str) -> Iterator[dict[str, str]]:
    return (row for option, row in options if option == name)


def _items(row: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(row.items()))


def _on(row: Mapping[str, str]) -> int | None:
    """The priority with PFC; None without one, and with several."""
    found = [number(priority) for priority, state in row.items() if state in {"1", "on"}]
    return found[0] if len(found) == 1 else None


def _to(written: Iterable[tuple[str, str]], targets: tuple[str, ...]) -> Iterator[int | None]:
    return (number(value) for value, target in written if target.endswith(targets))


def _dscp_map(mlnx: Iterable[Option], dcb: Iterable[Option]) -> Iterator[tuple[int, int]]:
    for row in (*_rows(mlnx, "dscp2prio"), *_rows(dcb, "dscp-prio")):
        for code, text in row.items():
            dscp, priority = _dscp(code), number(text)
            if dscp in DSCPS and priority is not None and priority in PRIORITIES:
                yield dscp, priority


def _dscp(text: str) -> int:
    """The code point of a number or a name as dcb takes it; -1 for others."""
    if match := CLASS_SELECTOR.fullmatch(text):
        return 8 * int(match[1])
    if match := ASSURED.fullmatch(text):
        return 8 * int(match[1]) + 2 * int(match[2])
    found = EXPEDITED if text == "EF" else number(text)
    return -1 if found is None else found


def _weights(shares: Iterable[Mapping[str, str]], algorithms: tuple[tuple[str, str], ...] | None) -> dict[int, int]:
    row, kinds = dict(agreed(map(_items, shares)) or ()), dict(algorithms or ())
    pairs = ((number(one), number(share)) for one, share in row.items() if kinds.get(one) != "strict")
    return {one: share for one, share in pairs if one is not None and share}
