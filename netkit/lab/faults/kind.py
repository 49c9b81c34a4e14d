"""What a fault is, wherever it strikes: its name, what it stands for, where it can be, and what can be set about it."""

from dataclasses import dataclass
from typing import Literal

from netkit.lab.faults.fault import Value

Target = Literal["switch", "switch port", "host", "host NIC"]
Maker = Literal["model", "kernel", "nic", "management"]
"""Who acts it out: the hardware model, the node's kernel, the NIC and its traffic, or the way in to the device."""
SWITCH: Target = "switch"
SWITCH_PORT: Target = "switch port"
HOST: Target = "host"
HOST_NIC: Target = "host NIC"
PORTS = (SWITCH_PORT, HOST_NIC)
DEVICES = (SWITCH, HOST)


@dataclass(frozen=True, slots=True)
class Option:
    """One thing to set about a fault. Its type is that of its default."""

    name: str
    default: Value
    meaning: str
    low: float = 0
    high: float = float("inf")
    choices: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """One fault of the catalogue."""

    name: str
    maker: Maker
    targets: tuple[Target, ...]
    text: str
    """What it stands for, and what one sees."""
    options: tuple[Option, ...] = ()
