"""A snapshot of a healthy fabric: every fact that checks use, generated from the design."""

from collections.abc import Iterable, Iterator, Mapping

from netkit.design import Fabric, Host, Port, Switch
from netkit.design.expectation import Expectation, expectations
from netkit.facts import COUNTERS, Counters, Facts, Observation, Sample, Snapshot
from netkit.facts.counter import place
from netkit.facts.device import Interface, Neighbor, System
from netkit.facts.host import BgpSession
from netkit.facts.optic import Lane, Limits, Line, Module, Quantity
from netkit.facts.qos import Watchdog

BEGAN_S, WINDOW_S = 1_000_000.0, 30.0
LANES = 4
RX_DBM, TX_DBM, BIAS_MA, TEMPERATURE_C, VOLTAGE_V = 0.5, 1.0, 60.0, 48.0, 3.3
MODULE_LIMITS: Mapping[Quantity, Limits] = {
    "rx_dbm": Limits(-8.0, -6.0, 4.0, 5.0),
    "tx_dbm": Limits(-5.0, -3.0, 4.0, 5.0),
    "bias_ma": Limits(10.0, 20.0, 120.0, 130.0),
    "temperature_c": Limits(-5.0, 0.0, 70.0, 75.0),
    "voltage_v": Limits(2.97, 3.13, 3.46, 3.63),
}
BYTES_A_SECOND = 40_000_000_000
MOVING = {"rx_bytes": BYTES_A_SECOND, "tx_bytes": BYTES_A_SECOND, "rx_packets": 10_000_000, "tx_packets": 10_000_000}
PRIORITY_COUNTERS = ("rx_pause", "tx_pause", "buffer_drops", "watchdog_detected")
QUEUE_COUNTERS = ("queue_tx_packets", "queue_tx_bytes", "queue_drops", "queue_ecn_marked")
QUEUES = 8


def snapshot(fabric: Fabric) -> Snapshot:
    """A snapshot of all switches."""
    expected = expectations(fabric)
    seen = {switch.name: _observation(fabric, switch, expected[switch.name]) for switch in fabric.switches}
    return Snapshot(fabric.name, BEGAN_S + WINDOW_S, seen)


def _observation(fabric: Fabric, switch: Switch, expected: Expectation) -> Observation:
    samples = tuple(Sample(at_s, _counters(fabric, switch, at_s)) for at_s in (BEGAN_S, BEGAN_S + WINDOW_S))
    facts = Facts(
        system=System(switch.name, switch.version, switch.model.name, f"S{switch.number}", BEGAN_S),
        interfaces={
            port.name: Interface(
                is_up=True,
                is_enabled=True,
                speed_gbps=port.speed_gbps,
                mtu_bytes=port.profile.mtu_bytes,
                fec=port.profile.fec,
            )
            for port in switch.ports
        },
        neighbors={port.name: (Neighbor(port.peer, port.peer_port),) for port in switch.ports},
        modules={port.name: _module(switch, port) for port in switch.ports},
        lines={port.name: Line("rs", 1e-9, 1e-15) for port in switch.ports},
        sessions={port.name: _session(port) for port in switch.fabric_ports},
        routes=_routes(switch, expected),
        watchdogs={
            place(port.name, priority): Watchdog(is_on=True)
            for port in switch.ports
            for priority in fabric.lossless.lossless_priorities
        },
        counters=samples[-1].counters,
    )
    return Observation(switch.name, switch.platform, facts, samples)


def host(seen: Host) -> Observation:
    """What a run would have seen of a host: its ports and what they count."""
    names = [nic.interface for nic in seen.nics]
    samples = tuple(Sample(at_s, _host_counters(names, at_s)) for at_s in (BEGAN_S, BEGAN_S + WINDOW_S))
    facts = Facts(interfaces=dict.fromkeys(names, Interface(is_up=True)), counters=samples[-1].counters)
    return Observation(seen.name, "linux", facts, samples)


def _host_counters(names: list[str], at_s: float) -> Counters:
    found = {name: dict.fromkeys(names, 0) for name, kind in COUNTERS.items() if kind.scope == "port"}
    return found | {name: dict.fromkeys(names, rate * int(at_s - BEGAN_S)) for name, rate in MOVING.items()}


def _routes(switch: Switch, expected: Expectation) -> Mapping[str, tuple[str, ...]]:
    """A route to every prefix a switch must reach, over the expected number of ports."""
    ports = tuple(port.name for port in switch.fabric_ports)
    return {prefix: ports[:width] for prefix, width in expected.widths.items()}


def _module(switch: Switch, port: Port) -> Module:
    return Module(
        kind="optic",
        identifier="OSFP 800GBASE-2xDR4",
        vendor="ACME",
        part="O-800",
        serial=f"{switch.name}-{port.cage}",
        firmware="1.0",
        temperature_c=TEMPERATURE_C,
        voltage_v=VOLTAGE_V,
        lanes={number: Lane(RX_DBM, TX_DBM, BIAS_MA) for number in range(1, LANES + 1)},
        limits=MODULE_LIMITS,
    )


def _session(port: Port) -> BgpSession:
    return BgpSession(
        is_established=True,
        state="Established",
        peer_asn=port.peer_asn,
        received_prefixes=100,
        is_bfd_up=True,
        is_draining=False,
    )


def _counters(fabric: Fabric, switch: Switch, at_s: float) -> Counters:
    names = [port.name for port in switch.ports]
    seconds = int(at_s - BEGAN_S)
    found = {name: dict.fromkeys(names, 0) for name, kind in COUNTERS.items() if kind.scope == "port"}
    found |= {name: dict.fromkeys(names, rate * seconds) for name, rate in MOVING.items()}
    lossless = fabric.lossless.lossless_priorities
    found |= {name: dict.fromkeys(_places(names, lossless), 0) for name in PRIORITY_COUNTERS}
    return found | {name: dict.fromkeys(_places(names, range(QUEUES)), 0) for name in QUEUE_COUNTERS}


def _places(names: list[str], numbers: Iterable[int]) -> Iterator[str]:
    return (place(name, number) for name in names for number in numbers)
