"""What NIC firmware keeps over a reboot: `mlxconfig` changes the next values, a reset makes them current."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from netkit.design.fabric import Host, Nic
from netkit.lab.node import Node
from netkit.lab.personality import Call
from netkit.lab.reading import NicReading

FILE = "firmware.json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One value: numbers of a range, or names with numbers."""

    name: str
    default: int
    high: int = 1
    names: tuple[str, ...] = ()

    def read(self, text: str) -> int | None:
        """Return the number a text means; None when it is none of this parameter."""
        if text.isdecimal():
            return int(text) if self.low <= int(text) <= self.high else None
        upper = text.upper()
        return self.names.index(upper) if upper in self.names and upper else None

    @property
    def low(self) -> int:
        """Return the smallest number: an unnamed first place is no value."""
        return 1 if self.names and not self.names[0] else 0

    def show(self, value: int) -> str:
        """Return a value as the tool prints it."""
        return f"{self.names[value]}({value})" if self.names else str(value)


SWITCH = ("FALSE", "TRUE")
PARAMETERS: Mapping[str, Parameter] = {
    parameter.name: parameter
    for parameter in (
        Parameter("LINK_TYPE_P1", 2, 2, ("", "IB", "ETH")),
        Parameter("ROCE_CC_PRIO_MASK_P1", 255, 255),
        Parameter("CNP_DSCP_P1", 48, 63),
        Parameter("CNP_802P_PRIO_P1", 6, 7),
        Parameter("ROCE_ADAPTIVE_ROUTING_EN", 0, names=SWITCH),
        Parameter("PCI_WR_ORDERING", 0, names=("PER_MKEY", "FORCE_RELAX")),
        Parameter("USER_PROGRAMMABLE_CC", 0, names=SWITCH),
        Parameter("TX_SCHEDULER_LOCALITY_MODE", 0, 2, ("DEVICE_DEFAULT", "STATIC_MODE", "ACCUMULATIVE_MODE")),
        Parameter("ROCE_CC_STEERING_EXT", 0, 2, ("DEVICE_DEFAULT", "DISABLED", "ENABLED")),
        Parameter("ROCE_RTT_RESP_DSCP_P1", 0, 63),
        Parameter("ROCE_RTT_RESP_DSCP_MODE_P1", 0, names=("DEVICE_DEFAULT", "FIXED_VALUE")),
        Parameter("MULTIPATH_DSCP", 0, names=("DEVICE_DEFAULT", "DISABLED")),
        Parameter("ADVANCED_PCI_SETTINGS", 0, names=SWITCH),
        Parameter("MAX_ACC_OUT_READ", 0, 128),
        Parameter("ATS_ENABLED", 0, names=SWITCH),
        Parameter("SRIOV_EN", 0, names=SWITCH),
        Parameter("NUM_OF_VFS", 8, 127),
        Parameter("LLDP_NB_DCBX_P1", 0, names=SWITCH),
        Parameter("LLDP_NB_RX_MODE_P1", 0, 2, ("OFF", "MAC", "ALL")),
        Parameter("LLDP_NB_TX_MODE_P1", 0, 2, ("OFF", "MAC", "ALL")),
    )
}
"""The ones a RoCE host may want to touch. Defaults are those of the lab's NICs, not a statement about real ones."""

Values = Mapping[str, int]


class NicFirmware:
    """The kept values of all NICs of a host, by PCI address; only what differs from the defaults is written down."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._next: dict[str, dict[str, int]] = {}
        self._current: dict[str, dict[str, int]] = {}

    def power_up(self) -> None:
        """Make what was set last what holds, on every NIC."""
        try:
            self._next = json.loads(self._file.read_text(encoding="utf-8"))
        except OSError:
            self._next = {}
        self._current = {pci: dict(values) for pci, values in self._next.items()}

    def reset(self, pci: str) -> None:
        """Make what was set last what holds, on one NIC."""
        self._current[pci] = dict(self._next.get(pci, {}))

    def current(self, pci: str, name: str) -> int:
        """Return what holds."""
        return self._current.get(pci, {}).get(name, PARAMETERS[name].default)

    def next(self, pci: str, name: str) -> int:
        """Return what will hold after the next reset."""
        return self._next.get(pci, {}).get(name, PARAMETERS[name].default)

    def set(self, pci: str, values: Values) -> None:
        """Keep values for the next reset."""
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
    """The volatile settings of a NIC: gone with a reboot, a driver reload or a reset of the card."""

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


@dataclass(slots=True)
class RailCard:
    """One rail NIC, and how its tools left it."""

    nic: Nic
    state: VolatileNicSettings = field(default_factory=VolatileNicSettings)
    relaxed_ordering: bool = True
    max_read_request_bytes: int = 4096
    has_access_control: bool = False

    def power_up(self) -> None:
        """Forget what the tools changed."""
        self.state, self.relaxed_ordering, self.max_read_request_bytes = VolatileNicSettings(), True, 4096

    @property
    def interface(self) -> str:
        """Return the name of the network interface."""
        return self.nic.interface

    @property
    def rdma(self) -> str:
        """Return the name of the RDMA device."""
        return self.nic.rdma

    @property
    def pci(self) -> str:
        """Return the PCI address, with its domain."""
        return self.nic.pci


class HostMachine:
    """What the tools of a host act on."""

    def __init__(self, node: Node) -> None:
        if not isinstance(node.device, Host):
            raise TypeError(f"{node.name} is not a host")
        self.node = node
        self.host = node.device
        self.cards: Mapping[str, RailCard] = {nic.interface: RailCard(nic) for nic in self.host.nics}
        self.firmware = NicFirmware(node.saved)

    def power_up(self) -> None:
        """Begin with what the firmware keeps; everything else is forgotten."""
        self.firmware.power_up()
        for card in self.cards.values():
            card.power_up()

    def find(self, text: str) -> RailCard | None:
        """Return the NIC a tool means by an interface, an RDMA device, a PCI address or an mst device."""
        name = text.removesuffix("/1")
        for card in self.cards.values():
            if name in {card.interface, card.rdma, card.pci, card.pci.removeprefix("0000:")}:
                return card
        return None

    def reading(self, card: RailCard) -> NicReading:
        """Return what the hardware of a NIC shows."""
        (reading,) = self.node.nics(card.interface)
        return reading


Tool = Callable[[HostMachine, Call], int]
