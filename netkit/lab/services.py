"""What the nodes of a lab share: the hardware model, the traffic between hosts, their RDMA runs, and the faults."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from netkit.design.fabric import Fabric, Host, Nic
from netkit.lab import netlink
from netkit.lab.faults import Faults
from netkit.lab.model import Model
from netkit.lab.model.port import goodput
from netkit.lab.model.wiring import KernelPort, LinkEnd, NicSettings, NicTraffic
from netkit.lab.reading import NicReading, SwitchPortReading
from netkit.lab.traffic import flow, marking
from netkit.lab.traffic.engine import TrafficProcess
from netkit.lab.traffic.flow import FlowEnd, FlowReport, Loss, NicConfig, TrafficFlow
from netkit.lab.traffic.marking import PortMarks, Sent

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


SMALL_LAB = 20
BFD_MS = 1000
LARGE_BFD_MS = 3000
FRESH_S = 0.5
LOSSES: dict[str, Loss] = {"sent": "sent", "received": "received"}


class LabServices:
    """The services all nodes of a lab share; every method is thread-safe."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.faults = Faults()
        self.model = Model(fabric, self.faults, time.monotonic())
        self.bfd_interval_ms = BFD_MS if len(fabric.switches) <= SMALL_LAB else LARGE_BFD_MS
        self._traffic = TrafficProcess()
        self.generator: TrafficProcess | None = None
        """The traffic process, once the hosts are attached."""
        self.rdma = RdmaBench(fabric, lambda: self.generator, self._modelled_share)
        self._counters: tuple[float, Mapping[FlowEnd, NicTraffic]] = (-FRESH_S, {})
        self._configs: dict[FlowEnd, NicConfig] = {}

    def start_traffic(self, namespaces: Mapping[str, str]) -> None:
        """Open the NICs of all hosts and start the steady exchange; `namespaces` are files, by host."""
        self.generator = self._traffic
        for host in self.fabric.hosts:
            self.generator.attach(host.name, namespaces[host.name], flow.addresses(host))
        for end, config in self._configs.items():
            self.generator.configure(end, config)
        self.generator.start(flow.steady(self.fabric))

    def set_load(self, *, is_on: bool) -> None:
        """Start or stop the job that all devices show: modelled load, and the steady exchange of real packets."""
        self.model.set_load(time.monotonic(), is_on=is_on)
        if self.generator is not None and is_on:
            self.generator.start(flow.steady(self.fabric))
        elif self.generator is not None:
            self.generator.stop(name for name in self.generator.flows() if name.startswith(flow.STEADY))

    def _modelled_share(self, path: RdmaPath) -> float:
        source, destination = (LinkEnd(end.host, end.interface) for end in (path.source, path.destination))
        return self.model.transfer_share(source, destination, time.monotonic())

    def egress_counters(self, namespace: str, kernel_names: Mapping[str, str]) -> Mapping[str, tuple[PortMarks, Sent]]:
        """Per port of a switch: packets marked, and packets sent by class."""
        counts = netlink.counters(namespace, marking.TABLE)
        marks = marking.marks(counts, kernel_names)
        sent = marking.sent(counts, kernel_names)
        return {port: (marks[port], sent[port]) for port in kernel_names}

    def traffic(self, host: str) -> Mapping[str, NicTraffic]:
        """The counters of each NIC of a host, at most half a second old."""
        if self.generator is None:
            return {}
        read_s, counters = self._counters
        if time.monotonic() - read_s >= FRESH_S:
            counters = self.generator.all_traffic()
            self._counters = (time.monotonic(), counters)
        return {end.interface: traffic for end, traffic in counters.items() if end.host == host}

    def configure_host(self, host: Host, settings: Mapping[str, NicSettings], data_tos: Mapping[str, int]) -> None:
        """Pass the settings of a host's NICs to the model and to the traffic."""
        self.model.configure_host(host.name, settings, time.monotonic())
        for interface, nic_settings in settings.items():
            end = FlowEnd(host.name, interface)
            fault = self.faults.of("cnp-loss", host.name, interface)
            lost = LOSSES[fault.text("direction")] if fault else ""
            config = NicConfig(nic_settings, data_tos[interface], loses_cnps=lost)
            if self._configs.get(end) != config:
                self._configs[end] = config
                if self.generator is not None:
                    self.generator.configure(end, config)

    def port_readings(
        self, device: str, kernel: Mapping[str, KernelPort], drained: frozenset[str] = frozenset()
    ) -> tuple[SwitchPortReading, ...]:
        """Read the ports of a switch; modelled traffic avoids drained ports."""
        self.model.avoid(device, drained, time.monotonic())
        return self.model.port_readings(device, kernel, time.monotonic())

    def nic_readings(self, host: str, kernel: Mapping[str, KernelPort], only: str = "") -> tuple[NicReading, ...]:
        """Read the NICs of a host, or only the one of an interface."""
        return self.model.nic_readings(host, kernel, self.traffic(host), time.monotonic(), only)
