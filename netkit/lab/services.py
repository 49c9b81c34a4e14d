"""What the nodes of a lab share: the hardware model, the traffic between hosts, and the lab's own deviations."""

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from netkit.lab.model import Model
from netkit.lab.model.inputs import KernelPort, NicTraffic
from netkit.lab.reading import NicReading, PortReading
from netkit.lab.state import SwitchState

if TYPE_CHECKING:
    from netkit.lab.live import LiveNode

SMALL_LAB = 20
BFD_MS = 1000
LARGE_BFD_MS = 3000


class Services:
    """One of these per lab; every method may be called from any thread."""

    def __init__(self, model: Model, switches: int) -> None:
        self.model = model
        self.bfd_interval_ms = BFD_MS if switches <= SMALL_LAB else LARGE_BFD_MS
        self._lock = threading.Lock()

    def marking(self, state: SwitchState, kernel_names: Mapping[str, str]) -> str:
        """Return the nftables ruleset that marks congestion on a switch."""
        return ""

    def marks(self, node: "LiveNode") -> Mapping[str, int]:
        """Return how many packets each port of a switch has marked."""
        return {}

    def traffic(self, host: str) -> Mapping[str, NicTraffic]:
        """Return what each NIC of a host counted."""
        return {}

    def told(self, node: "LiveNode", state: SwitchState) -> None:
        """Tell the model and the agents what a switch was told."""
        with self._lock:
            self.model.told(node.name, state, time.monotonic())

    def port_readings(self, device: str, kernel: Mapping[str, KernelPort]) -> tuple[PortReading, ...]:
        """Return what the ports of a switch show."""
        with self._lock:
            return self.model.port_readings(device, kernel, time.monotonic())

    def nic_readings(self, host: str, kernel: Mapping[str, KernelPort]) -> tuple[NicReading, ...]:
        """Return what the NICs of a host show."""
        with self._lock:
            return self.model.nic_readings(host, kernel, self.traffic(host), time.monotonic())

    def clear(self, device: str, port: str) -> None:
        """Reset counters."""
        with self._lock:
            self.model.clear(device, port, time.monotonic())
