"""Parsers of a host's hardware and settings: PCI topology, NICs, their QoS, GPUs, firmware and kernel."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from itertools import takewhile

from netkit.facts import Absent
from netkit.facts.device import System
from netkit.facts.host import DefaultRoute, HostFacts, NicFacts
from netkit.facts.qos import Ecn, PortQos
from netkit.platforms.linux.facts.reading import (
    CONF,
    CONF_V6,
    PROBE_INTERVAL,
    RECENT,
    SLOT,
    SYSCTLS,
    Card,
    Tree,
    number,
    pairs,
    plain,
    sections,
    settings,
    whole,
)

GPUS, END = "#@ gpus", "#= end"
HEAD = re.compile(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (.*)")
READ_REQUEST = re.compile(r"MaxReadReq ([0-9]{2,5}) bytes")
ORDERING = re.compile(r"RlxdOrd([+-])")
PART = re.compile(r"\[PN\] Part number: *(\S+)")
ACCESS = re.compile(r"ACSCtl:.*\b(?:ReqRedir|CmpltRedir|UpstreamFwd)\+")


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One PCI device; None where `lspci` does not show a value."""

    title: str = ""
    part: str = ""
    read_request_bytes: int | None = None
    has_relaxed_ordering: bool | None = None
    redirects: bool = False
    """Whether access control (ACS) redirects peer-to-peer traffic up to the root."""


@lru_cache(maxsize=RECENT)
def devices(text: str) -> Mapping[str, PciDevice]:
    """Parse `lspci -D -vv` by address; empty if it is truncated."""
    if END not in text:
        return {}
    blocks: dict[str, list[str]] = {}
    address = ""
    for line in text.splitlines():
        match = HEAD.match(line)
        address = match[1] if match else address if line.startswith(("\t", " ")) else ""
        if address:
            blocks.setdefault(address, []).append(line)
    return {address: _device("\n".join(lines)) for address, lines in blocks.items()}


def _device(text: str) -> PciDevice:
    request, ordering, part = READ_REQUEST.search(text), ORDERING.search(text), PART.search(text)
    return PciDevice(
        title=text.partition("\n")[0].partition(" ")[2],
        part=part[1] if part else "",
        read_request_bytes=int(request[1]) if request else None,
        has_relaxed_ordering=ordering[1] == "+" if ordering else None,
        redirects=ACCESS.search(text) is not None,
    )


@dataclass(frozen=True, slots=True)
class Topology:
    """The PCI tree."""

    above: Mapping[str, tuple[str, ...]]
    """Device → its upstream bridges, from the root down."""
    gpus: tuple[str, ...]


def topology(text: str) -> Topology:
    """Parse the real paths of all devices, and the GPUs among them; empty if truncated."""
    paths, _, rest = text.partition(GPUS)
    gpus, end, _ = rest.partition(END)
    if not end:
        return Topology({}, ())
    above = {address: bridges for *bridges, address in map(_slots, paths.splitlines()) if address}
    return Topology(
        {address: tuple(bridges) for address, bridges in above.items()},
        tuple(sorted({slot for line in gpus.splitlines() for slot in _slots(line) if slot})),
    )


def _slots(path: str) -> list[str]:
    """The PCI addresses in a path; one empty string if there are none."""
    return [part for part in path.strip().split("/") if SLOT.match(part)] or [""]


def bridges_with_access_control(
    devices: Mapping[str, PciDevice], topology: Topology, concerned: Iterable[str]
) -> tuple[str, ...] | None:
    """List the bridges that redirect: those above NICs and GPUs if the tree is known, else all."""
    if not devices:
        return None
    known = {bridge for address in concerned for bridge in topology.above.get(address, ())}
    return tuple(sorted(name for name, one in devices.items() if one.redirects and (not known or name in known)))


def nearest(topology: Topology, cards: Sequence[Card]) -> dict[str, str]:
    """Map each GPU to the NIC behind the same PCIe switch: the one that shares most upstream bridges.

    A tie, or no shared bridge but the root port, means that no NIC is nearest.
    """
    found = {}
    for gpu in topology.gpus:
        counts = []
        for card in cards:
            bridges = zip(topology.above.get(gpu, ()), topology.above.get(card.pci, ()), strict=False)
            counts.append((sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], bridges)), card.interface))
        shared = sorted(counts, reverse=True)
        is_alone = len(shared) == 1 or (len(shared) > 1 and shared[0][0] > shared[1][0])
        if shared and shared[0][0] > 1 and is_alone:
            found[gpu] = shared[0][1]
    return found


GIDS = range(16)
SETTING = re.compile(r"^\*?\s*(?:RO)?\s+([A-Z][A-Z0-9_]+)\s+(\S+)\s+(\S+)\s+(\S+)\s*$", re.MULTILINE)
"""Default, current, and next boot."""
NAMED = re.compile(r"\S*\(([0-9]+)\)\Z")
FORCED = re.compile(r"^adaptive_routing_forced_en\s*\|\s*0x([0-9a-fA-F]{1,8})\s*$", re.MULTILINE)
Settings = tuple[Mapping[str, str], Mapping[str, str], bool | None]
"""Current, after the next boot, and whether adaptive routing is forced."""
NO_SETTINGS: Settings = ({}, {}, None)


def nics(
    tree: Tree,
    cards: Sequence[Card],
    devices: Mapping[str, PciDevice],
    mtus: Mapping[str, int],
    firmware: Mapping[str, Settings],
) -> Mapping[str, NicFacts] | Absent:
    """Build the NICs at the PCI addresses of the design."""
    if not tree.files:
        return Absent("its files below /sys could not be read")
    return {
        card.interface: _nic(tree, card, devices.get(card.pci, PciDevice()), mtus, firmware.get(card.pci, NO_SETTINGS))
        for card in cards
    }


def _nic(tree: Tree, card: Card, device: PciDevice, mtus: Mapping[str, int], firmware: Settings) -> NicFacts:
    event = settings(tree.text(f"{card.folder}/uevent"))
    rdma = f"{card.folder}/infiniband/{card.rdma}"
    roce_v2 = (index for index in GIDS if tree.text(f"{card.port}/gid_attrs/types/{index}") == "RoCE v2")
    return NicFacts(
        interface=card.interface,
        pci=card.pci,
        rdma=card.rdma,
        part=device.part,
        psid=tree.text(f"{rdma}/board_id"),
        firmware=tree.text(f"{rdma}/fw_ver"),
        driver=event.get("DRIVER", ""),
        driver_version=tree.text(f"/sys/module/{event.get('DRIVER', '')}/version"),
        pci_gt_s=_gigatransfers(tree.text(f"{card.folder}/current_link_speed")),
        pci_width=whole(tree.text(f"{card.folder}/current_link_width")),
        pci_full_gt_s=_gigatransfers(tree.text(f"{card.folder}/max_link_speed")),
        pci_full_width=whole(tree.text(f"{card.folder}/max_link_width")),
        read_request_bytes=device.read_request_bytes,
        has_relaxed_ordering=device.has_relaxed_ordering,
        active_mtu_bytes=mtus.get(card.rdma),
        roce_gid_index=next((index for index in roce_v2 if _is_ipv4(tree.text(f"{card.port}/gids/{index}"))), None),
        settings=firmware[0],
        next_settings=firmware[1],
        numa=whole(tree.text(f"{card.folder}/numa_node")),
        is_adaptive_routing_forced=firmware[2],
    )


def _gigatransfers(text: str) -> float | None:
    """Parse a speed such as `32.0 GT/s PCIe`; None for `Unknown`."""
    return number(next(iter(text.split()), ""))


def _is_ipv4(gid: str) -> bool:
    try:
        return IPv6Address(gid).ipv4_mapped is not None
    except AddressValueError:
        return False


def active_mtus(text: str) -> dict[str, int]:
    """Parse the active RoCE MTU from `ibv_devinfo`, by RDMA device."""
    found: dict[str, int] = {}
    device = ""
    for key, value in pairs(text):
        if key == "hca_id":
            device = value
        size = whole(next(iter(value.split()), "")) if key == "active_mtu" else None
        if device and size is not None:
            found.setdefault(device, size)
    return found


def firmware(text: str) -> Settings:
    """Parse the current and next-boot settings of mlxconfig; enumerated values by number."""
    rows = [match.groups() for match in SETTING.finditer(plain(text))]
    forced = FORCED.search(plain(text))
    is_forced = bool(int(forced[1], 16)) if forced else None
    return {row[0]: _value(row[2]) for row in rows}, {row[0]: _value(row[3]) for row in rows}, is_forced


def _value(word: str) -> str:
    match = NAMED.match(word)
    return match[1] if match else word


KERNEL = "/proc/sys/kernel"
DMI = "/sys/class/dmi/id"


def system(tree: Tree) -> System | Absent:
    release = settings(tree.text("/etc/os-release"))
    kernel = tree.text(f"{KERNEL}/osrelease")
    found = System(
        hostname=tree.text(f"{KERNEL}/hostname"),
        version=release.get("VERSION_ID", "") or kernel,
        model=tree.text(f"{DMI}/product_name"),
        serial=tree.text(f"{DMI}/product_serial"),
        uptime_s=number(next(iter(tree.text("/proc/uptime").split()), "")),
        boot=tree.text(f"{KERNEL}/random/boot_id"),
        kernel=kernel,
    )
    return found if found.hostname or found.boot else Absent("its files below /proc could not be read")


TRANSLATING = {"DMA", "DMA-FQ"}
INSTALLED = {
    "ofed": re.compile(r"^(?:MLNX_OFED_LINUX-|OFED-internal-|DOCA-?)?([0-9][\w.-]*):?\s*$", re.MULTILINE),
    "mft": re.compile(r"^\w+, (?:mft|mstflint) ([0-9][\w.-]*)", re.MULTILINE),
    "libnccl": re.compile(r"libnccl\.so\.([0-9.]+)\s*$", re.MULTILINE),
}
"""Package → pattern of its version in VERSIONS' output."""
MODULES = ("mlx5_core", "bnxt_en", "ionic", "nvidia", "nvidia_peermem")


def host(
    tree: Tree,
    cards: Sequence[Card],
    addresses: Mapping[str, tuple[str, ...]],
    default_routes: tuple[DefaultRoute, ...] | None,
    devices: Mapping[str, PciDevice],
    topology: Topology,
    versions: str,
) -> HostFacts | Absent:
    if not tree.files:
        return Absent("its files below /proc and /sys could not be read")
    concerned = (*topology.gpus, *(card.pci for card in cards))
    iommu = {tree.text(f"{card.folder}/iommu_group/type") for card in cards} - {""}
    tools = {name: tree.text(f"/sys/module/{name}/version") for name in MODULES}
    if not tools["nvidia_peermem"] and tree.text("/sys/module/nvidia_peermem/initstate") == "live":
        tools["nvidia_peermem"] = "loaded"
    return HostFacts(
        sysctls=dict(_sysctls(tree)),
        addresses=addresses,
        default_routes=default_routes,
        bridges_with_acs=bridges_with_access_control(devices, topology, concerned),
        is_iommu_on=bool(iommu & TRANSLATING) if iommu else None,  # passthrough counts as off
        gpu_pcis=topology.gpus,
        nearest_nic=nearest(topology, cards),
        tools={name: version for name, version in tools.items() if version} | _packages(versions),
        nccl=settings(tree.text("/etc/nccl.conf")),
    )


def _packages(versions: str) -> dict[str, str]:
    """Parse the installed packages; where the command did not end, all may be installed."""
    matches = {name: pattern.search(plain(versions)) for name, pattern in INSTALLED.items()}
    unknown = () if END in versions else INSTALLED
    return dict.fromkeys(unknown, "") | {name: match[1] for name, match in matches.items() if match}


def _sysctls(tree: Tree) -> dict[str, str]:
    found = {}
    for path, text in tree.below(CONF):
        name, _, key = path.rpartition("/")
        if key in SYSCTLS:
            found[f"net.ipv4.conf.{name}.{key}"] = text
    for path, text in tree.below(CONF_V6):
        name, _, key = path.rpartition("/")
        if key == PROBE_INTERVAL:
            found[f"net.ipv6.conf.{name}.{key}"] = text
    ecn = tree.text("/proc/sys/net/ipv4/tcp_ecn")
    return {**found, **({"net.ipv4.tcp_ecn": ecn} if ecn else {})}


APP_SHOWN = "app was shown"
"""Printed after `dcb app show`, whose output is empty without entries."""
ROWS = ("dscp-prio", "prio-pfc", "tc-tsa", "tc-bw", "prio-tc", "prio-buffer")
PAIR = re.compile(r"([0-9]{1,2}):(\S+)")


def parse_dcb(text: str) -> PortQos:
    """Parse the output of `dcb` for app, pfc, ets and buffer."""
    rows: dict[str, dict[int, str]] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" ")
        if name in ROWS:
            rows[name] = {int(index): value for index, value in PAIR.findall(rest)}
    if not {"prio-pfc", "prio-tc"} & set(rows):
        return PortQos()
    pfc = frozenset(index for index, word in rows["prio-pfc"].items() if word == "on") if "prio-pfc" in rows else None
    algorithms = rows.get("tc-tsa", {})
    weights = _numbers(rows.get("tc-bw", {}))
    mapping = _numbers(rows.get("dscp-prio", {}))
    return PortQos(
        # The driver trusts DSCP as soon as there is an entry, and PCP again after the last one is removed.
        trust="dscp" if mapping else "pcp" if APP_SHOWN in text else "",
        dscp_to_priority=mapping or None,
        pfc_rx=pfc,
        pfc_tx=pfc,
        weights={tc: weight for tc, weight in weights.items() if algorithms.get(tc) == "ets"} if algorithms else None,
        strict=frozenset(tc for tc, name in algorithms.items() if name == "strict") if algorithms else None,
        priority_to_class=_numbers(rows["prio-tc"]) if "prio-tc" in rows else None,
        priority_to_buffer=_numbers(rows["prio-buffer"]) if "prio-buffer" in rows else None,
    )


def _numbers(row: Mapping[int, str]) -> dict[int, int]:
    read = {index: whole(word) for index, word in row.items()}
    return {index: value for index, value in read.items() if value is not None}


TRUST = re.compile(r"^Priority trust state: *(\S+)", re.MULTILINE)
MAP = re.compile(r"^\s*prio:([0-7]) dscp:([0-9,]*)", re.MULTILINE)
ROW = re.compile(r"^\s*(enabled|buffer)((?:\s+[0-9]){8})\s*$", re.MULTILINE)
CABLE = re.compile(r"^Cable len: *(\S+)", re.MULTILINE)
CLASS = re.compile(r"^tc: *([0-7])\b.*?tsa: *([a-z]+)(?:.*?bw: *([0-9]{1,3})%)?", re.MULTILINE)
MEMBER = re.compile(r"^\s+priority: *([0-7])\s*$", re.MULTILINE)


def is_mlnx_qos(text: str) -> bool:
    """Whether a text is the output of `mlnx_qos`."""
    return TRUST.search(plain(text)) is not None


@lru_cache(maxsize=RECENT)
def _tool(text: str) -> PortQos:
    """Parse the output of either tool, which is mostly the same for all NICs."""
    return parse_mlnx_qos(text) if is_mlnx_qos(text) else parse_dcb(text)


def parse_mlnx_qos(text: str) -> PortQos:
    """Parse the output of `mlnx_qos`."""
    output = plain(text)
    rows = {match[1]: [int(word) for word in match[2].split()] for match in ROW.finditer(output)}
    trust, cable = TRUST.search(output), CABLE.search(output)
    enabled = rows.get("enabled")
    pfc = None if enabled is None else frozenset(priority for priority, on in enumerate(enabled) if on)
    algorithms = {int(match[1]): match[2] for match in CLASS.finditer(output)}
    weights = {int(match[1]): int(match[3]) for match in CLASS.finditer(output) if match[3] is not None}
    mapping = {
        int(dscp): int(match[1])
        for match in MAP.finditer(output)
        for dscp in match[2].split(",")
        if dscp and int(dscp[:4]) < 64 and len(dscp) < 4
    }
    classes: dict[int, int] = {}  # priority → traffic class; priorities are listed below their class
    for block in output.split("\ntc:")[1:]:
        head = re.match(r" *([0-7])\b", block)
        if head:
            classes |= {int(match[1]): int(head[1]) for match in MEMBER.finditer(block)}
    return PortQos(
        trust=trust[1] if trust else "",
        dscp_to_priority=mapping or None,
        pfc_rx=pfc,
        pfc_tx=pfc,
        weights=weights if algorithms else None,
        strict=frozenset(tc for tc, name in algorithms.items() if name == "strict") if algorithms else None,
        priority_to_class=classes or None,
        cable_m=number(cable[1]) if cable else None,
        priority_to_buffer=dict(enumerate(rows["buffer"])) if "buffer" in rows else None,
    )


PRIORITIES = range(8)
TCLASS = "Global tclass="
DEBUG = "/sys/kernel/debug/mlx5"
CONFIG = "/sys/kernel/config/rdma_cm"
BROADCOM = "/sys/kernel/config/bnxt_re"
IN_EFFECT = re.compile(r"\(([a-z_]+)\)\s*: *(\S+)")


def qos(tree: Tree, cards: Sequence[Card], shown: str, pause: str) -> Mapping[str, PortQos] | Absent:
    """Build the QoS of the NICs whose tool shows it."""
    outputs, pauses = sections(shown), sections(pause)
    found = {}
    for card in cards:
        if card.interface not in outputs:
            continue
        # 802.3x pause in any direction
        states = {value for key, value in pairs(pauses.get(card.interface, "")) if key in {"RX", "TX"}} & {"on", "off"}
        one = replace(_tool(outputs[card.interface]), is_global_pause="on" in states if states else None)
        found[card.interface] = _with_driver(one, tree, card)
    known = {name: one for name, one in found.items() if one != PortQos()}
    return known or Absent("neither mlnx_qos nor dcb shows the QoS of any NIC")


def _with_driver(found: PortQos, tree: Tree, card: Card) -> PortQos:
    """Add the settings from files: the vendor's driver has them in sysfs, the kernel's own in debugfs."""
    ecn, debug = f"{card.net}/ecn", f"{DEBUG}/{card.pci}/cc_params"
    notifies, reacts = _enabled(tree, f"{ecn}/roce_np/enable"), _enabled(tree, f"{ecn}/roce_rp/enable")
    # Both sides of a NIC have to take part in congestion control.
    both = None if notifies is None or reacts is None else sorted(notifies & reacts)
    broadcom = dict(IN_EFFECT.findall(tree.text(f"{BROADCOM}/{card.rdma}/ports/1/cc/apply")))
    if both is None and broadcom.get("ecn_enable"):  # one switch for both sides, on the priority of RoCE
        priority = whole(broadcom.get("roce_prio", "")) if broadcom["ecn_enable"] == "Enabled" else None
        notifies = reacts = frozenset[int]() if priority is None else frozenset({priority})
        both = sorted(notifies)
    classes = found.priority_to_class or {}
    tclass = tree.text(f"{card.folder}/infiniband/{card.rdma}/tc/1/traffic_class")
    return replace(
        found,
        ecn_notifies=notifies,
        ecn_reacts=reacts,
        ecn=None if both is None else {classes.get(priority, priority): Ecn(is_on=True) for priority in both},
        cnp_dscp=_or(_first(tree, f"{ecn}/roce_np/cnp_dscp", f"{debug}/np_cnp_dscp"), broadcom.get("cnp_dscp")),
        cnp_priority=_or(
            _first(tree, f"{ecn}/roce_np/cnp_802p_prio", f"{debug}/np_cnp_prio"), broadcom.get("cnp_prio")
        ),
        data_tos=whole(tclass.removeprefix(TCLASS)),
        cm_tos=whole(tree.text(f"{CONFIG}/{card.rdma}/ports/1/default_roce_tos")),
    )


def _enabled(tree: Tree, folder: str) -> frozenset[int] | None:
    texts = {priority: tree.text(f"{folder}/{priority}") for priority in PRIORITIES}
    if not any(texts.values()):
        return None
    return frozenset(priority for priority, text in texts.items() if text == "1")


def _or(found: int | None, other: str | None) -> int | None:
    return whole(other or "") if found is None else found


def _first(tree: Tree, *paths: str) -> int | None:
    values = (whole(tree.text(path)) for path in paths)
    return next((value for value in values if value is not None), None)
