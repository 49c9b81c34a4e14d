"""A fabric whose hardware model is configured by the design, and read as in a lab."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from netkit.design import Fabric, Host
from netkit.lab.faults import Faults, InjectedFault
from netkit.lab.model import Model
from netkit.lab.model.wiring import KernelPort, NicSettings, NicTraffic
from netkit.lab.reading import NicReading, SwitchPortReading
from netkit.lab.state import PortState, QosState, SwitchState, WatchdogState
from tests import intents

STARTED_S = 1000.0
SMALL: Mapping[str, Any] = {"units": [{"unit": "1-2", "hosts": 4}]}


def small_fabric(changes: Mapping[str, Any] | None = None) -> Fabric:
    return intents.fabric(intents.values({**SMALL, **(changes or {})}))


def designed_state(fabric: Fabric, name: str, *, has_watchdog: bool = True) -> SwitchState:
    """The configuration of a switch that implements the design."""
    lossless = fabric.lossless
    watchdog = WatchdogState(lossless.watchdog.detection_ms, lossless.watchdog.restoration_ms)
    qos = QosState(
        priority_of_dscp=lossless.dscp_to_priority,
        class_of_priority=lossless.priority_to_class,
        pfc_priorities=frozenset({lossless.roce.priority}),
        watchdog=watchdog if has_watchdog else None,
    )
    switch = fabric.switch(name)
    ports = tuple(PortState(port.name, mtu_bytes=9216, speed_gbps=400, fec="rs", qos=qos) for port in switch.ports)
    return SwitchState(name, ports)


def designed_nic(fabric: Fabric) -> NicSettings:
    lossless = fabric.lossless
    priority = frozenset({lossless.roce.priority})
    return NicSettings(
        priority, lossless.dscp_to_priority, priority, priority, lossless.cnp_dscp, lossless.cnp.priority
    )


@dataclass
class Bed:
    """A model with the kernel state it reads."""

    fabric: Fabric
    faults: Faults = field(default_factory=Faults)
    has_watchdog: bool = True
    kernel: dict[tuple[str, str], KernelPort] = field(default_factory=dict)
    traffic: dict[tuple[str, str], NicTraffic] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = Model(self.fabric, self.faults, STARTED_S)
        for switch in self.fabric.switches:
            state = designed_state(self.fabric, switch.name, has_watchdog=self.has_watchdog)
            self.model.configure_switch(switch.name, state, STARTED_S)
        for host in self.fabric.hosts:
            settings = {nic.interface: designed_nic(self.fabric) for nic in host.nics}
            self.model.configure_host(host.name, settings, STARTED_S)

    def break_(self, name: str, place: str, since_s: float, **options: str | float) -> InjectedFault:
        device, _, port = place.partition(":")
        fault = InjectedFault(name, device, port, since_s, options)
        self.faults.add(fault)
        return fault

    def retell(self, name: str, others: set[str], now_s: float, **changes: Any) -> None:
        """Reconfigure some ports of a switch."""
        state = designed_state(self.fabric, name, has_watchdog=self.has_watchdog)
        ports = tuple(
            replace(each, qos=replace(each.qos, **changes)) if each.name in others else each for each in state.ports
        )
        self.model.configure_switch(name, replace(state, ports=ports), now_s)

    def ports(self, device: str, now_s: float) -> dict[str, SwitchPortReading]:
        given = {
            port.name: self.kernel.get((device, port.name), KernelPort(mtu_bytes=9216, mac="02:00:00:00:00:01"))
            for port in self.fabric.switch(device).ports
        }
        return {reading.name: reading for reading in self.model.port_readings(device, given, now_s)}

    def nics(self, host: str, now_s: float) -> dict[str, NicReading]:
        device = self.fabric.device(host)
        assert isinstance(device, Host)
        names = [nic.interface for nic in device.nics]
        kernel = {name: self.kernel.get((host, name), KernelPort(mtu_bytes=9000)) for name in names}
        traffic = {name: self.traffic.get((host, name), NicTraffic()) for name in names}
        return {reading.interface: reading for reading in self.model.nic_readings(host, kernel, traffic, now_s)}

    def everything(self, now_s: float) -> dict[str, dict[str, SwitchPortReading] | dict[str, NicReading]]:
        """Every reading of the fabric."""
        switches = {switch.name: self.ports(switch.name, now_s) for switch in self.fabric.switches}
        return {**switches, **{host.name: self.nics(host.name, now_s) for host in self.fabric.hosts}}


@dataclass(frozen=True)
class Pauses:
    """The pauses one end counted: received and sent."""

    rx: int
    tx: int
    rx_us: int
    tx_us: int


def pauses(reading: SwitchPortReading | NicReading, priority: int = 3) -> Pauses:
    """The pauses of one priority of a switch port or a NIC."""
    if isinstance(reading, SwitchPortReading):
        row = reading.priorities[priority]
        return Pauses(row.rx_pause, row.tx_pause, row.rx_pause_us, row.tx_pause_us)
    names = (f"{way}_prio{priority}_pause{what}" for what in ("", "_duration") for way in ("rx", "tx"))
    return Pauses(*(reading.ethtool.get(name, 0) for name in names))
