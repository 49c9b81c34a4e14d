"""What the files of a GPU host say about the design: its NICs, and how they mark and pause.

The network is netplan's file or networkd's units, whoever wrote them. PCI addresses come from what binds a name to one:
the list of rails, udev rules, or link files.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from netkit.hardware import Catalog
from netkit.platforms.config import Config
from netkit.platforms.existing import ExistingHost, ExistingNic, ExistingNicQos, number
from netkit.platforms.linux.netplan import ITEM, read_item

NETPLAN, SCRIPT, RULES, NCCL = "netplan.yaml", "netkit-nic-qos", "70-netkit-rails.rules", "nccl.conf"
PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
IN_LIST = re.compile(rf"(\S+)=({PCI})")
IN_RULE = re.compile(rf'KERNELS?=="({PCI})".*?(?:NAME|ENV\{{\w+\}})="([\w.-]+)"')
IN_PATH = re.compile(rf"pci-({PCI})")
ECN_BITS = 2
Settings = dict[str, str]


def existing_host(config: Config) -> ExistingHost:
    netplan, units = _netplan(config), _units(config)
    bound = _pci(config, units)
    nics = tuple(
        ExistingNic(
            name,
            bound.get(name, ""),
            settings.get("mac", "").lower(),
            number(settings.get("mtu")),
        )
        for name, settings in (*netplan.items(), *units.items())
        if "address" in settings
    )
    interfaces = config.get((NCCL, "NCCL_SOCKET_IFNAME"), "").removeprefix("=")
    return ExistingHost(
        models=_models(frozenset(nic.pci for nic in nics if nic.pci)),
        backend="netplan" if netplan else "networkd" if units else "",
        management_interface=interfaces.partition(",")[0],
        nics=nics,
        qos=_qos(config),
    )


def _netplan(config: Config) -> dict[str, Settings]:
    """Return MTU, MAC and whether there is an address, by interface; an entry may match a MAC and set the name."""
    found: dict[str, Settings] = {}
    names: dict[str, str] = {}
    for path, value in config.items():
        if path[:3] != (NETPLAN, "network", "ethernets") or len(path) < 5:
            continue
        settings = found.setdefault(path[3], {})
        if path[4] == "mtu":
            settings["mtu"] = value
        elif path[4] in {"macaddress", "match"} and path[-1] == "macaddress":
            settings["mac"] = value
        elif path[4] == "set-name":
            names[path[3]] = value
        elif path[4] == "addresses" and len(path) == 6:
            settings["address"] = str(read_item(path[5].removeprefix(ITEM), value))
    return {names.get(key, key): settings for key, settings in found.items()}


def _units(config: Config) -> dict[str, Settings]:
    """Return the same from networkd's units, and the PCI address of link files."""
    by_file: dict[str, Settings] = {}
    for path, value in config.items():
        if not path[0].endswith((".network", ".link")):
            continue
        settings = by_file.setdefault(path[0], {})
        section = path[1].partition(";")[0] if len(path) > 1 else ""
        key, _, tail = path[2].partition("=") if len(path) > 2 else ("", "", "")
        settings |= {
            ("[Match]", "Name"): {"name": value},
            ("[Match]", "MACAddress"): {"mac": value},
            ("[Match]", "PermanentMACAddress"): {"mac": value},
            ("[Match]", "Path"): {"path": value},
            ("[Link]", "MTUBytes"): {"mtu": value},
            ("[Link]", "Name"): {"name": value},
            ("[Network]", "Address"): {"address": value or tail},
            ("[Address]", ""): {"address": path[1] if len(path) > 1 else ""},
        }.get((section, key), {})
    found: dict[str, Settings] = {}
    for file in sorted(by_file):
        if name := by_file[file].get("name"):
            found.setdefault(name, {}).update(by_file[file])
    return found


def _pci(config: Config, units: Mapping[str, Settings]) -> dict[str, str]:
    """Return the PCI address that each name is bound to."""
    found = {name: match[1] for name, settings in units.items() if (match := IN_PATH.search(settings.get("path", "")))}
    for path, value in config.items():
        if path[0] == RULES:
            found |= {match[2]: match[1] for match in map(IN_RULE.search, value.splitlines()) if match}
    return found | {match[1]: match[2] for match in IN_LIST.finditer(config.get((SCRIPT, "RAILS"), "").strip("'\""))}


@cache
def _catalog() -> tuple[tuple[str, frozenset[str]], ...]:
    """Return (model, PCI addresses of its rail NICs) of the shipped catalogue."""
    catalog = Catalog()
    return tuple((name, frozenset(nic.pci for nic in catalog.host(name).rails)) for name in catalog.names("hosts"))


def _models(pci: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name, known in _catalog() if pci and pci <= known)


def _qos(config: Config) -> ExistingNicQos:
    def setting(name: str) -> str:
        return config.get((SCRIPT, name), "").strip("'\"")

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


def _pairs(text: str) -> Iterator[tuple[int, int]]:
    for pair in text.split():
        first, second = map(number, pair.partition(":")[::2])
        if first is not None and second is not None:
            yield first, second
