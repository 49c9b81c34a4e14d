"""The facts of a device's ports, a row each, and the metrics of a port that the heatmap can show."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from netkit.design import Host, Port, Switch
from netkit.design.fabric import Link
from netkit.facts import COUNTERS, Absent, Facts
from netkit.facts.counter import place
from netkit.facts.device import without_domain
from netkit.facts.optic import Lane, Limits, Module
from netkit.facts.qos import Ecn, PortQos
from netkit.judge import DeviceContext
from netkit.judge.delta import Delta
from netkit.judge.peak import Watermark, peaks
from netkit.report.page.table import Row, Value, merged, name, rounded

VOLUME = frozenset(
    {
        *("rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "queue_tx_packets", "queue_tx_bytes"),
        *("priority_rx_packets", "priority_tx_packets", "received_bits", "rdma_rx_bytes", "rdma_tx_bytes", "fec_bin"),
    }
)
"""Counters of traffic volume, which the utilisation shows already."""
NOTED = tuple(name for name in COUNTERS if name not in VOLUME)
QUEUES = range(8)
PAUSES = ("rx_pause", "tx_pause")
ALL_PAUSES = ("port_rx_pause", "port_tx_pause")


@dataclass(frozen=True, slots=True)
class DesignedPort:
    """A port or NIC as designed."""

    name: str
    kind: str
    peer: str
    peer_port: str
    speed_gbps: float | None


def designed(device: Switch | Host, links: Mapping[tuple[str, str], Link]) -> tuple[DesignedPort, ...]:
    """The ports of a switch, or the NICs of a host."""
    if isinstance(device, Switch):
        return tuple(
            DesignedPort(
                one.name,
                str(one.role) if isinstance(one, Port) else one.kind,
                one.peer,
                one.peer_port,
                one.speed_gbps,
            )
            for one in device.cabled
        )
    ends = {name: links.get((device.name, name)) for name in device.cabled}
    rails = tuple(
        DesignedPort(one.interface, f"rail {one.rail}", one.leaf, one.leaf_port, _speed(ends[one.interface]))
        for one in device.nics
    )
    beside = ((one.network, name, ends[name]) for one in device.attachments for name in one.nics)
    return rails + tuple(
        DesignedPort(name, network, end.peer, end.peer_port, _speed(end)) for network, name, end in beside if end
    )


def _speed(link: Link | None) -> float | None:
    return float(link.speed_gbps) if link else None


def identity(place: DesignedPort) -> Row:
    """The design's columns of a port."""
    return {"port": place.name, "kind": place.kind, "peer": place.peer, "peer_port": place.peer_port}


def rows(seen: DeviceContext, places: Sequence[DesignedPort], lossless: tuple[int, ...]) -> Iterator[Row]:
    counted = counters(seen)
    for port in places:
        found = _of(seen.facts.interfaces, port.name)
        speed = found.speed_gbps if found is not None and found.speed_gbps else port.speed_gbps
        yield merged(
            (
                metrics(seen, port.name, speed, lossless),
                {"speed_gbps": rounded(port.speed_gbps)},
                _neighbor(seen.facts, port),
                *(columns(seen.facts, port.name) for columns in COLUMNS),
                counted.get(port.name, {}),
            )
        )


def counters(seen: DeviceContext) -> Mapping[str, Mapping[str, int]]:
    """The increments of counters over the window, by port, without those at 0."""
    found: dict[str, dict[str, int]] = {}
    for counter in NOTED:
        has_parts = COUNTERS[counter].scope != "port"
        for at, delta in seen.deltas(counter).items():
            if delta.is_known and delta.value:
                port, _, number = at.rpartition("/") if has_parts else (at, "", "")
                label = f"{counter}/{name(number)}" if number else counter
                found.setdefault(port, {})[label] = delta.value
    return found


def _of(fact: "Mapping[str, Any] | Absent", port: str) -> Any:
    return None if isinstance(fact, Absent) else fact.get(port)


def _interface(facts: Facts, port: str) -> Row:
    one = _of(facts.interfaces, port)
    if one is None:
        return {}
    return {
        "up": one.is_up,
        "enabled": one.is_enabled,
        "running_gbps": rounded(one.speed_gbps),
        "mtu_bytes": one.mtu_bytes,
        "fec": name(one.fec) or None,
        "link_up_s": rounded(one.link_up_s),
    }


def _neighbor(facts: Facts, place: DesignedPort) -> Row:
    """The LLDP neighbour where it differs from the design."""
    found = _of(facts.neighbors, place.name)
    if not found:
        return {} if isinstance(facts.neighbors, Absent) else {"neighbor_seen": False}
    label = found[0].description if ":" in found[0].port and found[0].description else found[0].port
    is_peer = place.peer == without_domain(found[0].system, lambda one: one == place.peer)
    system = None if is_peer else name(found[0].system)
    return {
        "neighbor_seen": True,
        "neighbor": system,
        "neighbor_port": None if label == place.peer_port else name(label),
    }


def _module(facts: Facts, port: str) -> Row:
    one = _of(facts.modules, port)
    if one is None:
        return {}
    if not one.is_present:
        return {"module": "none"}
    texts = {label: name(getattr(one, label)) or None for label in ("vendor", "part", "serial", "firmware")}
    lanes = tuple(one.lanes.values())
    return {
        "module": name(one.identifier or one.kind),
        **texts,
        "temperature_c": rounded(one.temperature_c),
        "voltage_v": rounded(one.voltage_v),
        "rx_dbm": _light(lanes),
        "tx_dbm": _end(lanes, "tx_dbm", min),
        "bias_ma": _end(lanes, "bias_ma", max),
    }


def _light(lanes: Sequence[Lane]) -> Value:
    """The received power of all lanes as text; one value if they are equal."""
    found = [lane.rx_dbm for lane in lanes]
    texts = ["–" if value is None else f"{value:.1f}" for value in found]  # the precision of modules
    if not any(value is not None for value in found):
        return None
    return texts[0] if len(set(texts)) == 1 else " ".join(texts)


def _end(lanes: Sequence[Lane], quantity: str, end: Callable[[list[float]], float]) -> Value:
    """The lowest or highest value of all lanes."""
    found = [value for lane in lanes if (value := getattr(lane, quantity)) is not None]
    return rounded(end(found), 3) if found else None


def _line(facts: Facts, port: str) -> Row:
    one = _of(facts.lines, port)
    return {} if one is None else {"ber": rounded(one.ber, 3), "effective_ber": rounded(one.effective_ber, 3)}


def _session(facts: Facts, port: str) -> Row:
    one = _of(facts.sessions, port)
    if one is None:
        return {}
    return {
        "bgp": name(one.state) or ("Established" if one.is_established else "down"),
        "peer_asn": one.peer_asn,
        "prefixes": one.received_prefixes,
        "bfd_up": one.is_bfd_up,
        "draining": one.is_draining,
        "session_drops": one.drops,
    }


def _qos(facts: Facts, port: str) -> Row:
    one: PortQos | None = _of(facts.qos, port)
    if one is None:
        return {}
    return {
        "trust": name(one.trust) or None,
        "pfc_rx": _numbers(one.pfc_rx),
        "pfc_tx": _numbers(one.pfc_tx),
        "strict": _numbers(one.strict),
        "ets": None if one.weights is None else " ".join(f"{key}:{weight}%" for key, weight in one.weights.items()),
        "ecn_thresholds": None if one.ecn is None else _ecn(one.ecn),
        "cnp_dscp": one.cnp_dscp,
        "cable_m": rounded(one.cable_m),
    }


def _numbers(found: frozenset[int] | None) -> str | None:
    return None if found is None else " ".join(map(str, sorted(found))) or "none"


def _ecn(found: Mapping[int, Ecn]) -> str:
    texts = []
    for key, one in sorted(found.items()):
        if one.is_on:
            has_limits = one.min_bytes is not None and one.max_bytes is not None
            texts.append(f"{key}: {f'{one.min_bytes}–{one.max_bytes} B' if has_limits else 'on'}")
    return "; ".join(texts) or "off"


def _watchdog(facts: Facts, port: str) -> Row:
    found = {} if isinstance(facts.watchdogs, Absent) else facts.watchdogs
    mine = [(place, one) for place, one in found.items() if place.rpartition("/")[0] == port]
    if not mine:
        return {}
    stormed = [place.rpartition("/")[2] for place, one in mine if one.is_stormed]
    state = "on" if all(one.is_on for _, one in mine) else "off"
    return {"watchdog": f"storm on {' '.join(stormed)}" if stormed else state}


def _adaptive(facts: Facts, port: str) -> Row:
    found = _of(facts.adaptive_routing, port)
    return {} if found is None else {"adaptive_routing": found}


def _nic(facts: Facts, port: str) -> Row:
    one = _of(facts.nics, port)
    if one is None:
        return {}
    texts = {f"nic_{label}": name(getattr(one, label)) or None for label in ("pci", "rdma", "part", "firmware")}
    pci = None if one.pci_gt_s is None or one.pci_width is None else f"{one.pci_gt_s:g} GT/s ×{one.pci_width}"
    return {**texts, "nic_link": pci}


COLUMNS: tuple[Callable[[Facts, str], Row], ...] = (
    _interface,
    _module,
    _line,
    _session,
    _qos,
    _watchdog,
    _adaptive,
    _nic,
)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of every port."""

    name: str
    title: str
    unit: str
    text: str
    scale: Literal["log", "linear", "margin"]
    """The mapping of values to colours; for a margin, small values are bad."""
    most: float
    """The value of the strongest colour; for a margin, of the weakest."""


METRICS = (
    Metric("pause", "Pause rate", "/s", "pause frames sent and received, all lossless priorities", "log", 1e5),
    Metric("ecn", "ECN marks", "/s", "packets marked with CE; at a NIC, marked packets received", "log", 1e6),
    Metric("load", "Utilisation", "%", "of the port's speed, in the busier direction", "linear", 100.0),
    Metric(
        "queue",
        "Queue peak",
        "%",
        "longest lossless queue in the window, relative to the ECN maximum threshold",
        "linear",
        100.0,
    ),
    Metric(
        "headroom", "Headroom peak", "%", "most headroom of a lossless priority used in the window", "linear", 100.0
    ),
    Metric("margin", "Optic margin", "dB", "weakest lane's optical power above the module's low alarm", "margin", 8.0),
)


def metrics(seen: DeviceContext, port: str, speed_gbps: float | None, lossless: tuple[int, ...]) -> Row:
    """The metrics of a port, None where the device does not report, and its peaks in bytes."""
    return {
        "pause": rounded(_pauses(seen, port, lossless), 3),
        "ecn": rounded(_marks(seen, port), 3),
        "load": rounded(_load(seen, port, speed_gbps), 3),
        **_filled(seen, port, lossless),
        "margin": rounded(margin_db(seen.facts, port), 3),
    }


def _pauses(seen: DeviceContext, port: str, lossless: tuple[int, ...]) -> float | None:
    by_priority = _rate(seen.delta(name, place(port, number)) for name in PAUSES for number in lossless)
    return by_priority if by_priority is not None else _rate(seen.delta(name, port) for name in ALL_PAUSES)


def _marks(seen: DeviceContext, port: str) -> float | None:
    by_queue = _rate(seen.delta("queue_ecn_marked", place(port, number)) for number in QUEUES)
    if by_queue is not None:
        return by_queue
    of_port = _rate([seen.delta("ecn_marked", port)])
    return of_port if of_port is not None else _rate([seen.delta("ecn_received", port)])


def _load(seen: DeviceContext, port: str, speed_gbps: float | None) -> float | None:
    known = [one for one in (seen.delta(name, port) for name in ("rx_bytes", "tx_bytes")) if one.is_known]
    if not known or not speed_gbps:
        return None
    return max(one.per_s for one in known) * 8 / (speed_gbps * 1e9) * 100


def _filled(seen: DeviceContext, port: str, lossless: tuple[int, ...]) -> Row:
    """The peaks within the window: in bytes by priority, and the worst as a share of its limit."""
    if port not in seen.ports:
        return {}
    profile, row = seen.ports[port].profile, dict[str, Value]()
    limits: tuple[tuple[str, Watermark, int | None], ...] = (
        ("queue", "peak_bytes", profile.ecn.max_bytes),
        ("headroom", "headroom_peak_bytes", profile.headroom.xoff_bytes if profile.headroom else None),
    )
    for kind, watermark, limit in limits:
        found = peaks(seen, port, lossless, watermark)
        if found and limit:
            row[kind] = rounded(100 * max(found.values()) / limit, 3)
        row.update({f"{kind}_peak_bytes/{number}": value for number, value in found.items()})
    return row


def _rate(deltas: "Iterator[Delta] | list[Delta]") -> float | None:
    known = [one.per_s for one in deltas if one.is_known]
    return sum(known) if known else None


def margin_db(facts: Facts, port: str) -> float | None:
    """How far the weakest lane is above its module's low alarm; None if unknown."""
    module = None if isinstance(facts.modules, Absent) else facts.modules.get(port)
    return min(_margins(module), default=None) if module is not None and module.is_present else None


def _margins(module: Module) -> Iterator[float]:
    for lane in module.lanes.values():
        readings: Mapping[str, float | None] = {"rx_dbm": lane.rx_dbm, "tx_dbm": lane.tx_dbm}
        for side in ("rx_dbm", "tx_dbm"):
            value, least = readings[side], module.limits.get(side, Limits()).low_alarm
            if value is not None and least is not None:
                yield value - least
