"""What the active faults do to one end's module and line."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from netkit.lab.faults.fault import Fault


@dataclass(frozen=True, slots=True)
class Ailment:
    """How a module differs from a healthy one. Lane 0 means all lanes."""

    tx_loss_db: float = 0
    tx_lane: int = 0
    rx_loss_db: float = 0
    rx_lane: int = 0
    temperature_c: float = 0
    firmware: str = ""
    rx_ber: float = 0


HEALTHY = Ailment()


def of_module(faults: Iterable[Fault]) -> Ailment:
    """Return what the faults of one end make of its module."""
    ailment = HEALTHY
    for fault in faults:
        ailment = _with(ailment, fault)
    return ailment


def _with(ailment: Ailment, fault: Fault) -> Ailment:
    match fault.name:
        case "dim-optic":
            return replace(ailment, tx_loss_db=fault.number("db"), tx_lane=int(fault.number("lane")))
        case "dirty-lane":
            lane, ber = int(fault.number("lane")), fault.number("ber")
            return replace(ailment, rx_loss_db=fault.number("db"), rx_lane=lane, rx_ber=ber)
        case "hot-optic":
            return replace(ailment, temperature_c=fault.number("celsius"))
        case "mixed-optic-firmware":
            return replace(ailment, firmware=fault.text("firmware"))
    return ailment
