"""The files of a Linux switch with FRR; unknown content is refused here."""

import contextlib
import ipaddress
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from netkit.lab.node import ConfigRefusedError, Node

Json = object
SECTIONS = ("version", "renderer", "ethernets", "bridges", "vrfs")
SHARED = ("addresses", "dhcp4", "dhcp6", "accept-ra", "link-local", "mtu", "optional", "routes", "nameservers")
BRIDGE_ONLY = ("interfaces", "parameters")
PARAMETERS: Mapping[str, type] = {"stp": bool, "forward-delay": int, "ageing-time": int}
VRF_KEYS = ("table", "interfaces", "routes")
LOWEST_MTU, HIGHEST_MTU = 68, 9500
DEFAULT_MTU = 1500
LINK_LOCAL = ["ipv6"]
MANAGEMENT = "eth0"
VLAN_NAME = re.compile(r"[a-z]+(\d{1,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class NetplanInterface:
    """An interface that netplan manages."""

    addresses: tuple[str, ...] = ()
    mtu_bytes: int = DEFAULT_MTU
    has_link_local: bool = True


@dataclass(frozen=True, slots=True)
class NetplanBridge:
    """A bridge; netplan enables STP by default."""

    interface: NetplanInterface
    ports: tuple[str, ...] = ()
    has_stp: bool = True
    forward_delay_s: int = 15
    ageing_s: int = 300


@dataclass(frozen=True, slots=True)
class Netplan:
    """A netplan configuration."""

    interfaces: Mapping[str, NetplanInterface] = field(default_factory=dict)
    bridges: Mapping[str, NetplanBridge] = field(default_factory=dict)


def parse(text: str, known: Sequence[str]) -> Netplan:
    """Parse a netplan file; raise ConfigRefusedError with everything that is not understood."""
    try:
        whole = _resolved(yaml.load(text, Loader=yaml.CSafeLoader)) if text.strip() else {"network": {}}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigRefusedError(f"netplan: invalid YAML: {' '.join(str(error).split())}") from error
    network = _mapping(whole).get("network")
    if not isinstance(network, dict):
        raise ConfigRefusedError("netplan: there is no mapping `network` at the top")
    problems = [f"netplan: network: unknown key {key!r}" for key in network if key not in SECTIONS]
    ethernets, bridges = _mapping(network.get("ethernets")), _mapping(network.get("bridges"))
    vrfs = _mapping(network.get("vrfs"))
    names = {"lo", MANAGEMENT, *known}
    problems += [f"netplan: there is no interface {name}" for name in ethernets if name not in names]
    for name, found in {**ethernets, **bridges}.items():
        allowed = (*SHARED, *(BRIDGE_ONLY if name in bridges else ()))
        problems += _complaints(str(name), found, allowed)
    for name, found in bridges.items():
        problems += _bridge_complaints(str(name), _mapping(found), ethernets)
    for name, found in vrfs.items():
        problems += [f"netplan: {name}: unknown key {key!r}" for key in _mapping(found) if key not in VRF_KEYS]
        problems += [
            f"netplan: {name}: there is no {one}" for one in _list(found, "interfaces") if str(one) not in ethernets
        ]
    if problems:
        raise ConfigRefusedError("\n".join(problems))
    return Netplan(
        {str(name): _interface(_mapping(found)) for name, found in ethernets.items()},
        {str(name): _bridge(_mapping(found)) for name, found in bridges.items()},
    )


def _resolved(node: Json) -> Json:
    """Read quoted values as netplan does: by their text, whatever the quotes."""
    if isinstance(node, dict):
        return {key: _resolved(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_resolved(value) for value in node]
    return yaml.safe_load(node) if node in {"true", "false"} or (isinstance(node, str) and node.isdecimal()) else node


def _complaints(name: str, found: Json, allowed: Sequence[str]) -> Iterator[str]:
    if not isinstance(found, dict):
        yield f"netplan: {name}: expected a mapping"
        return
    for key, value in found.items():
        if key not in allowed:
            yield f"netplan: {name}: unknown key {key!r}"
        elif key == "mtu" and not (type(value) is int and LOWEST_MTU <= value <= HIGHEST_MTU):
            yield f"netplan: {name}: invalid mtu {value!r}"
        elif key in {"dhcp4", "dhcp6", "accept-ra", "optional"} and not isinstance(value, bool):
            yield f"netplan: {name}: {key} must be true or false"
        elif key == "link-local" and value not in ([], LINK_LOCAL, ["ipv4"], ["ipv4", "ipv6"]):
            yield f"netplan: {name}: invalid link-local {value!r}"
        elif key == "addresses":
            yield from (
                f"netplan: {name}: invalid address {one!r}" for one in _list(found, key) if not _is_address(one)
            )


def _bridge_complaints(name: str, found: Mapping[str, Json], ethernets: Mapping[str, Json]) -> Iterator[str]:
    for port in _list(found, "interfaces"):
        if str(port) not in ethernets:
            yield f"netplan: {name}: there is no interface {port}"
    for key, value in _mapping(found.get("parameters")).items():
        if key not in PARAMETERS:
            yield f"netplan: {name}: unknown parameter {key!r}"
        elif type(value) is not PARAMETERS[key]:
            yield f"netplan: {name}: invalid {key} {value!r}"
    if not VLAN_NAME.fullmatch(name):
        yield f"netplan: {name}: a bridge must be named after its VLAN, such as vlan100"


def _interface(found: Mapping[str, Json]) -> NetplanInterface:
    mtu = found.get("mtu", DEFAULT_MTU)
    return NetplanInterface(
        addresses=tuple(str(one) for one in _list(found, "addresses")),
        mtu_bytes=mtu if isinstance(mtu, int) else DEFAULT_MTU,
        has_link_local="ipv6" in _list({"link-local": LINK_LOCAL, **found}, "link-local"),
    )


def _bridge(found: Mapping[str, Json]) -> NetplanBridge:
    given = _mapping(found.get("parameters"))
    forward, ageing = given.get("forward-delay", 15), given.get("ageing-time", 300)
    return NetplanBridge(
        interface=_interface(found),
        ports=tuple(str(one) for one in _list(found, "interfaces")),
        has_stp=given.get("stp", True) is True,
        forward_delay_s=forward if isinstance(forward, int) else 15,
        ageing_s=ageing if isinstance(ageing, int) else 300,
    )


def _is_address(value: Json) -> bool:
    try:
        ipaddress.ip_interface(str(value))
    except ValueError:
        return False
    return "/" in str(value)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(found: Json, key: str) -> list[Json]:
    value = _mapping(found).get(key)
    return value if isinstance(value, list) else []


FRR_CONF = "/etc/frr/frr.conf"
DAEMONS = "/etc/frr/daemons"
NETPLAN = "/etc/netplan/60-netkit.yaml"
SYSCTL = "/etc/sysctl.d/90-netkit.conf"
SNMPD = "/etc/snmp/snmpd.conf"
LLDPD = "/etc/lldpd.d/netkit.conf"
CHRONY = "/etc/chrony/chrony.conf"
RSYSLOG = "/etc/rsyslog.conf"
PLACES: Mapping[str, str] = {
    "frr.conf": FRR_CONF,
    "daemons": DAEMONS,
    "netplan.yaml": NETPLAN,
    "sysctl.conf": SYSCTL,
    "snmpd.conf": SNMPD,
    "lldpd.conf": LLDPD,
    "chrony.conf": CHRONY,
    "rsyslog.conf": RSYSLOG,
}

ADDRESS = r"[0-9a-fA-F.:]+"
NAME = r"[A-Za-z0-9._-]+"
LINES: Mapping[str, str] = {
    CHRONY: rf"""
        server ({NAME}|{ADDRESS})( iburst| prefer)*
        bindacqdevice {NAME}
        driftfile /\S+
        makestep \d+(\.\d+)? -?\d+
        rtcsync
        port 0
    """,
    LLDPD: rf"""
        configure system hostname {NAME}
        configure system ip management pattern \S+
        configure lldp portidsubtype (ifname|macaddress)
        configure lldp tx-interval \d+
    """,
    RSYSLOG: rf"""
        module\(load="[a-z]+"\)
        global\(workDirectory="/\S+" localHostname="{NAME}"\)
        \*\.info action\(type="omfile" file="/\S+"\)
        \*\.info action\(
        type="omfwd" target="{ADDRESS}" port="\d+" protocol="(udp|tcp)"
        device="{NAME}"
        queue\.type="LinkedList" queue\.size="\d+" action\.resumeRetryCount="-?\d+"
        \)
    """,
    SNMPD: rf"""
        agentAddress \S+
        sysName {NAME}
        sysLocation .+
        sysContact .+
        createUser \S+ SHA "[^"]+" AES "[^"]+"
        rouser \S+ priv
    """,
    DAEMONS: r"""
        [a-z0-9]+=(yes|no)
        vtysh_enable=(yes|no)
        frr_profile="(traditional|datacenter)"
        [a-z0-9]+_options="[^"]*"
    """,
    SYSCTL: r"-?[a-z0-9_.]+ *= *\S+",
}
"""The lines a file may have. FRR and netplan validate their own files."""


def lines(text: str) -> Iterator[str]:
    """Yield the lines that are neither empty nor comments."""
    for line in map(str.strip, text.splitlines()):
        if line and line[0] not in "#;":
            yield line


def complaints(place: str, text: str) -> Iterator[str]:
    """Yield every line that the program reading the file would reject."""
    if place not in LINES:
        return
    forms = re.compile("|".join(f"(?:{form.strip()})" for form in LINES[place].strip().splitlines()), re.ASCII)
    for line in lines(text):
        if not forms.fullmatch(line):
            yield f"{place}: {line!r} is not understood"


def read(node: Node, place: str) -> str:
    """A file of the node; empty if it does not exist."""
    path = node.file(place)
    return path.read_text(encoding="utf-8") if path.is_file() and not path.is_symlink() else ""


def install(node: Node, files: Mapping[str, str]) -> None:
    """Install rendered files; raise ConfigRefusedError with every problem."""
    problems = [f"{name}: a Linux switch has no such file" for name in sorted(set(files) - set(PLACES))]
    for name, place in PLACES.items():
        problems += complaints(place, files.get(name, ""))
    if problems:
        raise ConfigRefusedError("\n".join(problems))
    for name, text in files.items():
        path = node.file(PLACES[name])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a symlink to the machine's own file, which must not change
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600 if path.suffix == ".yaml" else 0o640)
        if PLACES[name].startswith("/etc/frr/"):
            with contextlib.suppress(OSError, LookupError):  # an unprivileged lab has no such account
                shutil.chown(path, "frr", "frr")
