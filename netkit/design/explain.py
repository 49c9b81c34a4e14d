"""Every computed number of a port, with its formula, its inputs and their sources."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design import lossless
from netkit.design.fabric import Fabric, Port, Switch
from netkit.design.notes import CONTROL_DSCP
from netkit.errors import Problem, UsageError
from netkit.hardware import SwitchModel
from netkit.intent.model import Intent


@dataclass(frozen=True, slots=True)
class Number:
    """A number and its derivation."""

    name: str
    value: str
    formula: str
    source: str


def find(fabric: Fabric, place: str) -> tuple[Switch, Port]:
    """The switch and port written as DEVICE:PORT."""
    name, _, port_name = place.partition(":")
    device = fabric.device(name)
    if not isinstance(device, Switch):
        raise UsageError(Problem(f"--explain knows no device {name!r}", "write it as leaf01:swp1s0 or gpu01:rail0"))
    for port in device.ports:
        if port.name == port_name:
            return device, port
    example = device.ports[0].name if device.ports else "none"
    raise UsageError(Problem(f"{name} has no port {port_name!r} in use", f"its first one is {example}"))


def explain(fabric: Fabric, intent: Intent, switch: Switch, port: Port) -> Iterator[Number]:
    profile, cable = port.profile, port.profile.cable
    yield Number(
        "speed", f"{port.speed_gbps} Gb/s", f"breakout {profile.split.mode} of cage {port.cage}", profile.split.source
    )
    yield Number("mtu", f"{profile.mtu_bytes} B", "smallest platform maximum in the fabric", "")
    yield Number("cable", f"{cable.length_m:g} m {cable.media}", "cables in the intent", "")
    yield from _headroom(fabric, switch, port)
    yield from _ecn(intent, port)
    for traffic in fabric.lossless.classes:
        dscps = ",".join(map(str, traffic.dscps)) if len(traffic.dscps) <= 8 else f"the other {len(traffic.dscps)}"
        how = "strict" if traffic.is_strict else f"weight {traffic.weight}"
        extra = ", PFC and ECN" if traffic.is_lossless else ""
        note = "; 48 is CS6 too: BGP and BFD ride this queue" if CONTROL_DSCP in traffic.dscps else ""
        yield Number(f"class {traffic.name}", f"priority {traffic.priority}, {how}{extra}", f"DSCP {dscps}{note}", "")
    watchdog = fabric.lossless.watchdog
    yield Number("watchdog poll", f"{watchdog.poll_ms} ms", "lossless.watchdog.poll_ms", "")
    detection = f"{watchdog.poll_ms} ms × {watchdog.detection_polls} polls"
    yield Number("watchdog detection", f"{watchdog.detection_ms} ms", detection, "")
    restoration = f"{watchdog.poll_ms} ms × {watchdog.restoration_polls} polls"
    yield Number("watchdog restoration", f"{watchdog.restoration_ms} ms", restoration, "")


def _headroom(fabric: Fabric, switch: Switch, port: Port) -> Iterator[Number]:
    room, profile = port.profile.headroom, port.profile
    computed = lossless.compute(switch.model, profile.split, profile.cable.length_m, profile.mtu_bytes)
    if room is None:
        yield Number("headroom", "unknown", "no vendor table, and no cell size for the formula", "")
        return
    row = lossless.vendor_row(switch.model, port.speed_gbps, profile.cable.length_m)
    if room.origin == "intent":
        yield Number(
            "headroom xoff", f"{room.xoff_bytes:,} B", f"lossless.headroom.{port.speed_gbps} in the intent", ""
        )
        if room.size_bytes > room.xoff_bytes:
            size = f"xoff, and beside it what {'the vendor table' if row else 'the formula'} reserves"
            yield Number("headroom size", f"{room.size_bytes:,} B", size, row.source if row else "")
    elif room.origin == "vendor" and row:
        formula = f"vendor table at {port.speed_gbps}G and {row.cable_m:g} m, the shortest listed that is long enough"
        yield Number("headroom xoff", f"{room.xoff_bytes:,} B", formula, row.source)
        yield Number("headroom xon", f"{room.xon_bytes:,} B", "the same row", row.source)
        yield Number("headroom size", f"{room.size_bytes:,} B", "the same row", row.source)
    if computed:
        yield from _formula(switch.model, computed)
    total, limit = _total(fabric, switch)
    yield Number("headroom of the switch", total, limit, switch.model.source("buffer.total_bytes"))


def _formula(model: SwitchModel, computed: lossless.Computation) -> Iterator[Number]:
    for term in computed.terms:
        yield Number(f"  {term.name}", f"{round(term.value_bytes):,} B", term.formula, "")
    cells = f"{model.cell_bytes} B cells, worst frame {computed.method.frame_in_cells} B"
    yield Number("  cell occupancy", f"× {computed.occupancy:.3g}", cells, model.source("buffer.cell_bytes"))
    extra = f"{computed.extra_bytes} B + " if computed.extra_bytes else ""
    formula = f"{extra}occupancy × sum of the terms, rounded up (method {computed.method.name})"
    yield Number("  by formula", f"{computed.xoff_bytes:,} B", formula, computed.method.source)


def _total(fabric: Fabric, switch: Switch) -> tuple[str, str]:
    rooms = [port.profile.headroom for port in switch.ports]
    total = sum(max(room.size_bytes, room.xoff_bytes) for room in rooms if room)
    buffer = switch.model.buffer_bytes
    limit = f"{fabric.lossless.pool_percent} % of {buffer:,} B may be lossless" if buffer else "buffer size unknown"
    return f"{total:,} B", f"{len(switch.ports)} ports; {limit}"


def _ecn(intent: Intent, port: Port) -> Iterator[Number]:
    thresholds, given = port.profile.ecn, port.speed_gbps in intent.lossless.ecn
    for name, value, microseconds in (
        ("ecn min", thresholds.min_bytes, lossless.ECN_MIN_US),
        ("ecn max", thresholds.max_bytes, lossless.ECN_MAX_US),
    ):
        formula = "lossless.ecn in the intent" if given else f"{microseconds} µs × {port.speed_gbps} Gb/s ÷ 8"
        source = "" if given else "at 400G equal to Cumulus Linux's RoCE defaults (RoCE chapter of its user guide)"
        yield Number(name, f"{value:,} B", formula, source)
    yield Number("ecn probability", f"{thresholds.probability_percent} %", "certain at ecn max", "")
