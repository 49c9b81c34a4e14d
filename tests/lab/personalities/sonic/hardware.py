"""Hardware readings of ports, with every number different from its neighbors."""

from dataclasses import replace

from netkit.design.fabric import Switch
from netkit.lab.reading import (
    BufferReading,
    FecReading,
    LaneReading,
    ModuleThresholds,
    PriorityReading,
    QueueReading,
    SwitchPortReading,
    TrafficReading,
    TransceiverReading,
    WatchdogReading,
)

OPTIC = TransceiverReading(
    kind="optic",
    identifier="OSFP",
    vendor="Acme",
    part="800G-X",
    serial="S1",
    firmware="1.2.3",
    revision="A1",
    media="800G-2xDR4",
    length_m=30.0,
    temperature_c=45.5,
    voltage_v=3.301,
    lanes=tuple(LaneReading(-1.0 - lane / 10, 1.0 + lane / 10, 80.0 + lane) for lane in range(4)),
    temperature_limits=ModuleThresholds(-10, 0, 70, 80),
    voltage_limits=ModuleThresholds(2.97, 3.135, 3.465, 3.63),
    rx_limits=ModuleThresholds(-8.9, -5.9, 4.0, 5.0),
    tx_limits=ModuleThresholds(-5.9, -2.9, 4.0, 5.0),
    bias_limits=ModuleThresholds(10, 15, 125, 130),
    first_lane=5,
)
COPPER = replace(
    OPTIC,
    kind="copper",
    firmware="",
    lanes=(),
    temperature_limits=None,
    voltage_limits=None,
    rx_limits=None,
    tx_limits=None,
    bias_limits=None,
)


def reading(name: str, *, is_up: bool = True, module: TransceiverReading | None = OPTIC) -> SwitchPortReading:
    return SwitchPortReading(
        name=name,
        is_enabled=True,
        is_up=is_up,
        speed_gbps=400,
        mtu_bytes=9216,
        carrier_changes=4,
        link_up_s=60.0,
        traffic=TrafficReading(10_001, 1002, 3, 4, 50_005, 6006, 7, 8),
        priorities=tuple(PriorityReading(1200 + number, 1300 + number) for number in range(8)),
        queues=tuple(QueueReading(100 + n, 2000 + n, 30 + n, 40 + n, 50 + n, 60 + n) for n in range(8)),
        buffers=tuple(BufferReading(10 + n, 20 + n, 30 + n, 40 + n, 50 + n) for n in range(8)),
        watchdogs=tuple(WatchdogReading(number == 3, 2 * number, number, 300 * number) for number in range(8)),
        fec=FecReading("rs", 130_402, 3, 1.5e-9, 0.0, (1_000_000, 4, 2, 1, *(0 for _ in range(12)))),
        module=module,
        adaptive_routing=False,
        mac="02:00:00:00:00:01",
    )


def readings(switch: Switch) -> tuple[SwitchPortReading, ...]:
    """All ports of a switch: the first has no link, the second is copper."""
    names = [port.name for port in switch.ports]
    shown = [reading(name) for name in names]
    shown[0] = reading(names[0], is_up=False)
    shown[1] = reading(names[1], module=COPPER)
    return tuple(shown)
