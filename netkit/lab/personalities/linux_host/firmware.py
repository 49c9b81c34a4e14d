"""What NIC firmware keeps over a reboot: `mlxconfig` changes the next values, a reset makes them current."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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


class Firmware:
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

    def forget(self, pci: str) -> None:
        """Go back to the defaults with the next reset."""
        self._next[pci] = {}
        self.set(pci, {})
