"""The NICs of a host: families, firmware parameters (which survive a reboot), runtime settings (which do not)."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from netkit.design.fabric import Host, Nic
from netkit.lab.model.nic import FIRMWARE
from netkit.lab.node import Node
from netkit.lab.personality import Call
from netkit.lab.reading import NicReading

FILE = "firmware.json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A firmware parameter: a number in a range, or one of several names."""

    name: str
    default: int
    high: int = 1
    names: tuple[str, ...] = ()

    def read(self, text: str) -> int | None:
        """Parse a value; None if it is invalid."""
        if text.isdecimal():
            return int(text) if self.low <= int(text) <= self.high else None
        name = text.upper()
        return self.names.index(name) if name and name in self.names else None

    @property
    def low(self) -> int:
        """The smallest number; 0 is not a value where the first name is empty."""
        return 1 if self.names and not self.names[0] else 0

    def show(self, value: int) -> str:
        """Format a value as mlxconfig does."""
        return f"{self.names[value]}({value})" if self.names else str(value)


BOOLEAN = ("FALSE", "TRUE")
PARAMETERS: Mapping[str, Parameter] = {
    parameter.name: parameter
    for parameter in (
        Parameter("LINK_TYPE_P1", 2, 2, ("", "IB", "ETH")),
        Parameter("ROCE_CC_PRIO_MASK_P1", 255, 255),
        Parameter("CNP_DSCP_P1", 48, 63),
        Parameter("CNP_802P_PRIO_P1", 6, 7),
        Parameter("ROCE_ADAPTIVE_ROUTING_EN", 0, names=BOOLEAN),
        Parameter("PCI_WR_ORDERING", 0, names=("PER_MKEY", "FORCE_RELAX")),
        Parameter("USER_PROGRAMMABLE_CC", 0, names=BOOLEAN),
        Parameter("TX_SCHEDULER_LOCALITY_MODE", 0, 2, ("DEVICE_DEFAULT", "STATIC_MODE", "ACCUMULATIVE_MODE")),
        Parameter("ROCE_CC_STEERING_EXT", 0, 2, ("DEVICE_DEFAULT", "DISABLED", "ENABLED")),
        Parameter("ROCE_RTT_RESP_DSCP_P1", 0, 63),
        Parameter("ROCE_RTT_RESP_DSCP_MODE_P1", 0, names=("DEVICE_DEFAULT", "FIXED_VALUE")),
        Parameter("MULTIPATH_DSCP", 0, names=("DEVICE_DEFAULT", "DISABLED")),
        Parameter("ADVANCED_PCI_SETTINGS", 0, names=BOOLEAN),
        Parameter("MAX_ACC_OUT_READ", 0, 128),
        Parameter("ATS_ENABLED", 0, names=BOOLEAN),
        Parameter("SRIOV_EN", 0, names=BOOLEAN),
        Parameter("NUM_OF_VFS", 8, 127),
        Parameter("LLDP_NB_DCBX_P1", 0, names=BOOLEAN),
        Parameter("LLDP_NB_RX_MODE_P1", 0, 2, ("OFF", "MAC", "ALL")),
        Parameter("LLDP_NB_TX_MODE_P1", 0, 2, ("OFF", "MAC", "ALL")),
    )
}
"""The parameters a RoCE host may set. The defaults are those of the lab's NICs and may differ from real ones."""
SECOND_PORT = 2
OF_FIRST_PORT = ("LINK_TYPE_P1", "ROCE_CC_PRIO_MASK_P1", "CNP_DSCP_P1", "CNP_802P_PRIO_P1")


def parameters_of(host: Host) -> Mapping[str, Parameter]:
    """The parameters of a host's NICs: those with two ports have some for each."""
    if not any(port_of(nic.pci) == SECOND_PORT for nic in host.nics):
        return PARAMETERS
    second = (replace(PARAMETERS[name], name=f"{name[:-1]}{SECOND_PORT}") for name in OF_FIRST_PORT)
    return {**PARAMETERS, **{parameter.name: parameter for parameter in second}}


def port_of(pci: str) -> int:
    """Which port of its card is at a PCI address."""
    return SECOND_PORT if pci.endswith(".1") else 1


Values = Mapping[str, int]


class NicFirmware:
    """The firmware parameters of all NICs by PCI address. Only values that were set are stored."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._next: dict[str, dict[str, int]] = {}
        self._current: dict[str, dict[str, int]] = {}

    def power_up(self) -> None:
        """Activate the stored values on every NIC."""
        try:
            self._next = json.loads(self._file.read_text(encoding="utf-8"))
        except OSError:
            self._next = {}
        self._current = {pci: dict(values) for pci, values in self._next.items()}

    def reset(self, pci: str) -> None:
        """Activate the stored values on one NIC."""
        self._current[pci] = dict(self._next.get(pci, {}))

    def current(self, pci: str, name: str) -> int:
        return self._current.get(pci, {}).get(name, PARAMETERS[name.replace(f"_P{SECOND_PORT}", "_P1")].default)

    def next(self, pci: str, name: str) -> int:
        """The value after the next reset."""
        return self._next.get(pci, {}).get(name, PARAMETERS[name.replace(f"_P{SECOND_PORT}", "_P1")].default)

    def set(self, pci: str, values: Values) -> None:
        """Store values for the next reset."""
        self._next.setdefault(pci, {}).update(values)
        self._file.write_text(json.dumps(self._next, indent=1) + "\n", encoding="utf-8")


PRIORITIES = 8
CODE_POINTS = 64
Eight = tuple[int, ...]
CODE_POINT_DEFAULTS = tuple(dscp // 8 for dscp in range(CODE_POINTS))
BUFFER_BYTES = (130944, 130944, 0, 0, 0, 0, 0, 0)
MAX_BUFFER_BYTES = 2069280


@dataclass(frozen=True, slots=True)
class VolatileNicSettings:
    """NIC settings that a reboot, a driver reload or a reset of the card clears."""

    is_os_controlled: bool = False
    trust: str = "pcp"
    priority_of_dscp: tuple[int, ...] = CODE_POINT_DEFAULTS
    pfc: Eight = (0,) * PRIORITIES
    buffer_of_priority: Eight = (0,) * PRIORITIES
    buffer_bytes: Eight = BUFFER_BYTES
    class_of_priority: Eight = (1, 0, 2, 3, 4, 5, 6, 7)
    algorithms: tuple[str, ...] = ("vendor",) * PRIORITIES
    weights_percent: Eight = (0,) * PRIORITIES
    rate_limits_gbps: Eight = (0,) * PRIORITIES
    cable_length_m: int = 7
    rx_pause: bool = True
    tx_pause: bool = True
    adaptive_retransmission: bool = True
    adaptive_routing_forced: bool = False
    priority_of_port: tuple[tuple[str, str], ...] = ()
    """UDP port → priority, as `dcb app` sets it."""
    cnp_dscp: int | None = None
    """Set by `nicctl`; AMD's NICs send no CNPs before."""


@dataclass(slots=True)
class RailCard:
    """A rail NIC and its runtime settings."""

    nic: Nic
    state: VolatileNicSettings = field(default_factory=VolatileNicSettings)
    relaxed_ordering: bool = True
    max_read_request_bytes: int = 4096
    has_access_control: bool = False

    def power_up(self) -> None:
        """Clear the runtime settings."""
        self.state, self.relaxed_ordering, self.max_read_request_bytes = VolatileNicSettings(), True, 4096

    @property
    def interface(self) -> str:
        return self.nic.interface

    @property
    def rdma(self) -> str:
        return self.nic.rdma

    @property
    def pci(self) -> str:
        return self.nic.pci


class HostMachine:
    """The NICs and firmware that the tools of a host act on."""

    def __init__(self, node: Node) -> None:
        if not isinstance(node.device, Host):
            raise TypeError(f"{node.name} is not a host")
        self.node = node
        self.host = node.device
        self.cards: Mapping[str, RailCard] = {nic.interface: RailCard(nic) for nic in self.host.nics}
        self.firmware = NicFirmware(node.saved)
        self.family = family_of(self.host)

    def power_up(self) -> None:
        """Activate the firmware parameters and clear all runtime settings."""
        self.firmware.power_up()
        for card in self.cards.values():
            card.power_up()

    def find(self, text: str) -> RailCard | None:
        """Find a NIC by interface, RDMA device, PCI address or mst device."""
        name = text.removesuffix("/1")
        for card in self.cards.values():
            if name in {card.interface, card.rdma, card.pci, card.pci.removeprefix("0000:")}:
                return card
        return None

    def running_firmware(self, reading: NicReading) -> str:
        """The firmware of a NIC: that of its family, or of a fault."""
        own = self.family.firmware
        return own if own and reading.firmware == FIRMWARE else reading.firmware

    def reading(self, card: RailCard) -> NicReading:
        (reading,) = self.node.nics(card.interface)
        return reading


Tool = Callable[[HostMachine, Call], int]


def split_options(arguments: Sequence[str], valued: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """Split a command line into words and options with their values; that of a flag is empty."""
    words, options, rest = list[str](), dict[str, str](), list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in valued and (equals or rest):
            options[name] = value if equals else rest.pop(0)
        elif word.startswith("-"):
            options[word] = ""
        else:
            words.append(word)
    return words, options


@dataclass(frozen=True, slots=True)
class NicFamily:
    """The differences between the NICs of vendors."""

    driver: str
    vendor: str
    device: str
    title: str
    """The name that lspci prints."""
    product: str
    part: str
    firmware: str
    rdma_type: str
    traffic_classes: int = 8
    """0: dcb neither shows nor sets them."""
    cnp_priority: int = 6
    """The priority of its CNPs by default."""
    hw_counters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """A counter of this family → the ConnectX counters that it sums up."""
    statistics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same for `ethtool -S`."""

    @property
    def is_mellanox(self) -> bool:
        return self.driver == "mlx5_core"

    def counted(self, names: Mapping[str, tuple[str, ...]], counts: Mapping[str, int]) -> Mapping[str, int]:
        """Counters by the names of this family."""
        return counts if self.is_mellanox else {own: sum(counts.get(one, 0) for one in of) for own, of in names.items()}


MELLANOX = NicFamily(
    driver="mlx5_core",
    vendor="15b3",
    device="1021",
    title="Mellanox Technologies MT2910 Family [ConnectX-7]",
    product="NVIDIA ConnectX-7 HHHL Adapter Card",
    part="",
    firmware="",
    rdma_type="MT4129",
)
BROADCOM = NicFamily(
    driver="bnxt_en",
    vendor="14e4",
    device="1760",
    title="Broadcom Inc. and subsidiaries BCM57608 10Gb/25Gb/50Gb/100Gb/200Gb/400Gb Ethernet",
    product="Broadcom P1400GD 1x400G",
    part="BCM957608-P1400GDF00",
    firmware="231.2.63.0",
    rdma_type="BCM57608",
    traffic_classes=3,
    cnp_priority=7,
    hw_counters={
        "tx_cnp_pkts": ("np_cnp_sent",),
        "rx_cnp_pkts": ("rp_cnp_handled", "rp_cnp_ignored"),
        "rx_ecn_marked_pkts": ("np_ecn_marked_roce_packets",),
        "oos_drop_count": ("out_of_sequence",),
        "seq_err_naks_rcvd": ("packet_seq_err",),
        "to_retransmits": ("local_ack_timeout_err",),
        "max_retry_exceeded": ("req_transport_retries_exceeded",),
        "dup_req": ("duplicate_request",),
        "rx_roce_only_bytes": ("rx_vport_rdma_unicast_bytes",),
        "tx_roce_only_bytes": ("tx_vport_rdma_unicast_bytes",),
    },
    statistics={
        "rx_bytes": ("rx_bytes_phy",),
        "tx_bytes": ("tx_bytes_phy",),
        "link_down_events": ("link_down_events_phy",),
        "rx_bits": ("rx_bits_phy",),
        "rx_corrected_bits": ("rx_corrected_bits_phy",),
        **{f"rx_pfc_ena_frames_pri{one}": (f"rx_prio{one}_pause",) for one in range(PRIORITIES)},
        **{f"tx_pfc_ena_frames_pri{one}": (f"tx_prio{one}_pause",) for one in range(PRIORITIES)},
        **{f"pfc_pri{one}_rx_duration_us": (f"rx_prio{one}_pause_duration",) for one in range(PRIORITIES)},
        **{f"pfc_pri{one}_tx_duration_us": (f"tx_prio{one}_pause_duration",) for one in range(PRIORITIES)},
        **{f"rx_packets_pri{one}": (f"rx_prio{one}_packets",) for one in range(PRIORITIES)},
        **{f"tx_packets_pri{one}": (f"tx_prio{one}_packets",) for one in range(PRIORITIES)},
    },
)
AMD = NicFamily(
    driver="ionic",
    vendor="1dd8",
    device="1002",
    title="AMD Pensando Systems DSC Ethernet Controller",
    product="AMD Pensando Pollara 400 1x400G",
    part="POLLARA-1Q400P",
    firmware="1.117.1",
    rdma_type="ionic",
    traffic_classes=0,
    hw_counters={
        "tx_rdma_cnp_pkts": ("np_cnp_sent",),
        "rx_rdma_cnp_pkts": ("rp_cnp_handled", "rp_cnp_ignored"),
        "rx_rdma_ecn_pkts": ("np_ecn_marked_roce_packets",),
        "req_rx_pkt_seq_err": ("packet_seq_err",),
        "tx_rdma_ack_timeout": ("local_ack_timeout_err",),
        "req_tx_retry_excd_err": ("req_transport_retries_exceeded",),
        "rx_rdma_ucast_bytes": ("rx_vport_rdma_unicast_bytes",),
        "tx_rdma_ucast_bytes": ("tx_vport_rdma_unicast_bytes",),
    },
    statistics={
        "rx_packets": ("rx_packets_phy",),
        "tx_packets": ("tx_packets_phy",),
        "rx_bytes": ("rx_bytes_phy",),
        "tx_bytes": ("tx_bytes_phy",),
    },
)


def family_of(host: Host) -> NicFamily:
    """The family of a host's NICs, by the name of their model."""
    kind = host.model.nic
    return BROADCOM if kind.startswith("BCM") else AMD if kind.startswith("Pollara") else MELLANOX
