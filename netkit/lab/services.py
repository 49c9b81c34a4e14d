"""What the nodes of a lab share: the hardware model, the traffic between hosts, and the faults."""

import time
from collections.abc import Mapping

from netkit.design.fabric import Fabric, Host
from netkit.lab import netlink
from netkit.lab.faults import Faults
from netkit.lab.faults.bench import loss
from netkit.lab.model import Model
from netkit.lab.model.wiring import KernelPort, LinkEnd, NicSettings, NicTraffic
from netkit.lab.rdma import RdmaBench, RdmaPath
from netkit.lab.reading import NicReading, SwitchPortReading
from netkit.lab.state import SwitchState
from netkit.lab.traffic import flow, marking
from netkit.lab.traffic.flow import FlowEnd, NicConfig
from netkit.lab.traffic.marking import PortMarks, Sent
from netkit.lab.traffic.process import TrafficProcess

SMALL_LAB = 20
BFD_MS = 1000
LARGE_BFD_MS = 3000
FRESH_S = 0.5


class LabServices:
    """The services all nodes of a lab share; every method is thread-safe."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.faults = Faults()
        self.model = Model(fabric, self.faults, time.monotonic())
        self.bfd_interval_ms = BFD_MS if len(fabric.switches) <= SMALL_LAB else LARGE_BFD_MS
        self._traffic: TrafficProcess | None = None
        self.rdma = RdmaBench(fabric, lambda: self._traffic, self._modelled_share)
        self._counters: tuple[float, Mapping[FlowEnd, NicTraffic]] = (-FRESH_S, {})
        self._configs: dict[FlowEnd, NicConfig] = {}

    def start_traffic(self, namespaces: Mapping[str, str]) -> None:
        """Open the NICs of all hosts and start the steady exchange; `namespaces` are files, by host."""
        self._traffic = TrafficProcess()
        for host in self.fabric.hosts:
            self._traffic.attach(host.name, namespaces[host.name], flow.addresses(host))
        for end, config in self._configs.items():
            self._traffic.configure(end, config)
        self._traffic.start(flow.steady(self.fabric))

    def set_load(self, *, is_on: bool) -> None:
        """Start or stop the job that all devices show: modelled load, and the steady exchange of real packets."""
        self.model.set_load(time.monotonic(), is_on=is_on)
        if self._traffic is not None and is_on:
            self._traffic.start(flow.steady(self.fabric))
        elif self._traffic is not None:
            self._traffic.stop(name for name in self._traffic.flows() if name.startswith(flow.STEADY))

    def incast(self, target: FlowEnd, duration_s: float) -> None:
        """Model an incast to one NIC: where no switch marks it, queues fill and pauses spread."""
        self.model.incast(target.host, target.interface, duration_s, time.monotonic())

    def calm(self) -> None:
        """End every modelled incast."""
        self.model.calm(time.monotonic())

    @property
    def generator(self) -> TrafficProcess | None:
        """The traffic process, once it runs."""
        return self._traffic

    def _modelled_share(self, path: RdmaPath) -> float:
        source, destination = (LinkEnd(end.host, end.interface) for end in (path.source, path.destination))
        return self.model.transfer_share(source, destination, time.monotonic())

    def marking(self, state: SwitchState, kernel_names: Mapping[str, str]) -> str:
        """The nftables ruleset that marks congestion on a switch."""
        return marking.ruleset(state, kernel_names)

    def egress_counters(self, namespace: str, kernel_names: Mapping[str, str]) -> Mapping[str, tuple[PortMarks, Sent]]:
        """Per port of a switch: packets marked, and packets sent by class."""
        counts = netlink.counters(namespace, marking.TABLE)
        marks = marking.marks(counts, kernel_names)
        sent = marking.sent(counts, kernel_names)
        return {port: (marks[port], sent[port]) for port in kernel_names}

    def traffic(self, host: str) -> Mapping[str, NicTraffic]:
        """The counters of each NIC of a host, at most half a second old."""
        if self._traffic is None:
            return {}
        read_s, counters = self._counters
        if time.monotonic() - read_s >= FRESH_S:
            counters = self._traffic.all_traffic()
            self._counters = (time.monotonic(), counters)
        return {end.interface: traffic for end, traffic in counters.items() if end.host == host}

    def configure_switch(self, device: str, state: SwitchState) -> None:
        self.model.configure_switch(device, state, time.monotonic())

    def configure_host(self, host: Host, settings: Mapping[str, NicSettings], data_tos: Mapping[str, int]) -> None:
        """Pass the settings of a host's NICs to the model and to the traffic."""
        self.model.configure_host(host.name, settings, time.monotonic())
        for interface, nic_settings in settings.items():
            end = FlowEnd(host.name, interface)
            lost = loss(self.faults, host.name, interface)
            config = NicConfig(nic_settings, data_tos[interface], loses_cnps=lost)
            if self._configs.get(end) != config:
                self._configs[end] = config
                if self._traffic is not None:
                    self._traffic.configure(end, config)

    def port_readings(
        self, device: str, kernel: Mapping[str, KernelPort], drained: frozenset[str] = frozenset()
    ) -> tuple[SwitchPortReading, ...]:
        """Read the ports of a switch; modelled traffic avoids drained ports."""
        self.model.avoid(device, drained, time.monotonic())
        return self.model.port_readings(device, kernel, time.monotonic())

    def nic_readings(self, host: str, kernel: Mapping[str, KernelPort], only: str = "") -> tuple[NicReading, ...]:
        """Read the NICs of a host, or only the one of an interface."""
        return self.model.nic_readings(host, kernel, self.traffic(host), time.monotonic(), only)

    def rebooted(self, device: str) -> None:
        """Reset a device's counters, as a power cut does."""
        self.model.rebooted(device, time.monotonic())

    def clear(self, device: str, port: str) -> None:
        self.model.clear(device, port, time.monotonic())
