"""RDMA between NICs of a lab, for the stand-ins of perftest and nccl-tests: real packets, and a modelled rate."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from netkit.design.fabric import Fabric, Nic
from netkit.lab.model.port import goodput
from netkit.lab.traffic.flow import FlowEnd, FlowReport, TrafficFlow
from netkit.lab.traffic.process import TrafficProcess

SIZE_BYTES = 4096
MOST_PPS, MOST_TOGETHER_PPS = 50.0, 4000.0
"""Packets a second of a flow, and of all flows of a run together: samples of what a NIC would send."""
MOST_S = 2.0
"""How long packets are sent, whatever duration is asked for."""
ARRIVING = 2
"""Packets that may be in flight when they are counted."""
LOOKS, LOOK_S = 5, 0.2
"""How often packets are counted while some have not arrived: on a busy machine they are late, not lost."""
PATIENCE_S = 15.0


@dataclass(frozen=True, slots=True)
class RdmaPath:
    """A NIC that sends, and one that receives."""

    source: FlowEnd
    destination: FlowEnd


class RdmaBench:
    """The RDMA runs of a lab. Every method may be called from any thread."""

    def __init__(
        self,
        fabric: Fabric,
        generator: Callable[[], TrafficProcess | None],
        modelled_share: Callable[[RdmaPath], float],
    ) -> None:
        self._nics = {
            nic.address: (FlowEnd(host.name, nic.interface), nic) for host in fabric.hosts for nic in host.nics
        }
        self.fabric = fabric
        self._generator = generator
        self._modelled_share = modelled_share
        self._lock = threading.Lock()
        self._servers: dict[tuple[str, int], threading.Event] = {}
        self._numbers = count()

    def find(self, address: str) -> tuple[FlowEnd, Nic] | None:
        return self._nics.get(address)

    def rate_gbps(self, nic: Nic) -> int:
        """The rate of a NIC's port."""
        return next(port.speed_gbps for port in self.fabric.switch(nic.leaf).ports if port.name == nic.leaf_port)

    def serve(self, address: str, port: int, patience_s: float = PATIENCE_S) -> bool:
        """Wait for one client; return whether one came."""
        done = threading.Event()
        with self._lock:
            self._servers[address, port] = done
        is_served = done.wait(patience_s)
        with self._lock:
            if self._servers.get((address, port)) is done:
                del self._servers[address, port]
        return is_served

    def connect(self, address: str, port: int) -> threading.Event | None:
        """Take the server that waits at an address, which ends when the event is set; None if there is none."""
        with self._lock:
            return self._servers.pop((address, port), None)

    def measure(self, paths: Sequence[RdmaPath], seconds: float) -> list[float]:
        """Send along all paths at once; return the share of the line rate that each reaches, 0 if nothing arrives."""
        generator = self._generator()
        if generator is None:
            return [0.0] * len(paths)
        duration_s = min(seconds, MOST_S)
        rate_pps = min(MOST_PPS, MOST_TOGETHER_PPS / len(paths))
        names = [f"rdma-{next(self._numbers)}" for _ in paths]
        generator.start(
            TrafficFlow(name, path.source, path.destination, rate_pps, SIZE_BYTES, duration_s + PATIENCE_S)
            for name, path in zip(names, paths, strict=True)
        )
        try:
            time.sleep(duration_s)
            reports = generator.flows()
            lost = {name: _lost(reports[name]) for name in names}
            for _ in range(LOOKS - 1):
                if not any(lost.values()):
                    break
                time.sleep(LOOK_S)
                reports = generator.flows()
                lost = {name: min(lost[name], _lost(reports[name])) for name in names}
        finally:
            generator.stop(names)
        shares = []
        for name, path in zip(names, paths, strict=True):
            reached = reports[name].rate_pps / rate_pps * goodput(lost[name]) * self._modelled_share(path)
            shares.append(reached if reports[name].received else 0.0)
        return shares


def _lost(report: FlowReport) -> float:
    """The part of the packets that did not arrive."""
    return max(0, report.sent - report.received - ARRIVING) / max(1, report.sent)
