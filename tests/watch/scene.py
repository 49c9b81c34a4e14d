"""A small fabric that is watched, and the counters of its devices."""

from collections.abc import Iterator, Mapping

from netkit.facts import Sample
from netkit.facts.qos import Buffer
from netkit.watch.board import Board, Outline
from netkit.watch.feed import Condition
from netkit.watch.port_severity import Wire
from netkit.watch.session import RecordedEvent, take

BEGAN_S = 1_700_000_000.0
WIRES = (
    Wire("leaf01", "swp1s0", "host", "rail 0", 400, "gpu01", "rail0", 150_000, 80_000),
    Wire("leaf01", "swp1s1", "host", "rail 0", 400, "gpu02", "rail0", 150_000, 80_000),
    Wire("leaf01", "swp33s0", "fabric", "rail 0", 400, "spine01", "swp1s0"),
    Wire("spine01", "swp1s0", "fabric", "spines", 400, "leaf01", "swp33s0"),
    Wire("gpu01", "rail0", "nic", "rail 0", 400, "leaf01", "swp1s0"),
    Wire("gpu02", "rail0", "nic", "rail 0", 400, "leaf01", "swp1s1"),
)
OUTLINE = Outline("small", WIRES, (3,), lab="t")
Rates = Mapping[str, float]


def counters(rates: Mapping[str, Rates], seconds: float) -> Mapping[str, Mapping[str, int]]:
    """Counter values after a number of seconds: counter → place → increase per second."""
    return {
        name: {place: int(1000 + rate * seconds) for place, rate in places.items()} for name, places in rates.items()
    }


def sample(at_s: float, counts: Mapping[str, Mapping[str, int]], buffers: Mapping[str, Buffer] | None = None) -> Sample:
    """A sample at this many seconds after the start."""
    return Sample(BEGAN_S + at_s, counts, buffers=buffers or {})


def ports(device: str) -> tuple[str, ...]:
    return tuple(wire.port for wire in WIRES if wire.device == device)


def storm_at(second: int) -> Iterator[RecordedEvent]:
    """Yield a second of a fabric in which a NIC starts to pause its leaf after ten, and a spine loses a path after 20.

    The leaf marks in bursts; the second host is unreachable for a while.
    """
    for device in OUTLINE.devices:
        if device == "gpu02" and 12 <= second < 17:
            if second == 12:
                yield RecordedEvent(BEGAN_S + second, device, Condition("gone", "connection refused", 1.0, 4.0))
            continue
        yield RecordedEvent(
            BEGAN_S + second + 0.05, device, sample(second, _counts(device, second), _buffers(device, second))
        )


def _buffers(device: str, second: int) -> Mapping[str, Buffer]:
    """Queue lengths of the leaf: bursts at the paused port, headroom in use at the other one."""
    if device != "leaf01":
        return {}
    held_s = max(0, second - 10)
    burst = 600_000 if second > 13 else 240_000 if second > 11 else 0
    return {
        "swp1s0/3": Buffer(120_000 if held_s else 0, burst, 0),
        "swp1s1/3": Buffer(0, 0, min(held_s, 18) * 3_000),
        "swp1s1/0": Buffer(9_000, 9_000_000 + second),
    }


def _counts(device: str, second: int) -> Mapping[str, Mapping[str, int]]:
    held_s = max(0, second - 10)
    marked = sum(500 for one in range(second + 1) if one % 5 == 0)
    lost = max(0, second - 20) * 7 if device == "spine01" else 0
    paused = {"leaf01 swp1s0": 600_000, "spine01 swp1s0": 60_000}
    pauses = {"gpu01 rail0": 600_000, "leaf01 swp1s1": 80_000, "leaf01 swp33s0": 60_000}
    names = {port: f"{device} {port}" for port in ports(device)}
    return {
        "rx_bytes": dict.fromkeys(names, second * 10000000000),
        "tx_bytes": dict.fromkeys(names, second * 5000000000),
        "rx_pause_us": {f"{port}/3": held_s * paused.get(name, 0) for port, name in names.items()},
        "tx_pause_us": {f"{port}/3": held_s * pauses.get(name, 0) for port, name in names.items()},
        "rx_pause": {f"{port}/3": held_s * paused.get(name, 0) // 250 for port, name in names.items()},
        "queue_ecn_marked": {f"{port}/3": marked if device == "leaf01" else 0 for port in names},
        "queue_drops": {f"{port}/{queue}": lost if queue == 3 else 0 for port in names for queue in (0, 3)},
        "rx_drops": dict.fromkeys(names, 0),
    }


def storm(seconds: int) -> Iterator[RecordedEvent]:
    """Yield this many seconds of it."""
    for second in range(seconds + 1):
        yield from storm_at(second)


def board(seconds: int, outline: Outline = OUTLINE) -> Board:
    """The board after this many seconds of it."""
    found = Board(outline)
    for event in storm(seconds):
        take(found, event)
    return found
