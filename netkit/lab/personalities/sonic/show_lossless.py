"""`show` commands on what keeps a fabric lossless: PFC, watchdog, queues, priority groups, ECN."""

import json

from netkit.lab.personalities.sonic.columns import columns, pairs
from netkit.lab.personalities.sonic.command import Command, Commands, Line, UsageError
from netkit.lab.personalities.sonic.counters import GROUP, PORT, QUEUE
from netkit.lab.personalities.sonic.show_interfaces import chosen, number, readings
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import text
from netkit.lab.personality import Call
from netkit.lab.reading import PortReading
from netkit.lab.state import PRIORITIES

FIRST_WITH_ECN_COUNTERS = 202505
NUMBERS = range(PRIORITIES)


def counts_ecn(system: System) -> bool:
    """Whether the branch counts ECN marks of queues, and is told to."""
    return _counts(system, "WRED_ECN_QUEUE")


def counts_ecn_of_ports(system: System) -> bool:
    """Whether the branch counts ECN marks of ports, and is told to."""
    return _counts(system, "WRED_ECN_PORT")


def _counts(system: System, group: str) -> bool:
    status = text(system.running, "FLEX_COUNTER_TABLE", group, "FLEX_COUNTER_STATUS")
    return system.branch >= FIRST_WITH_ECN_COUNTERS and status == "enable"


def _pfc_counters(system: System, call: Call, line: Line) -> None:
    for word in ("Rx", "Tx"):
        rows = []
        for reading in readings(system, line):
            since = system.cleared.since(call.user, "pfc", reading)
            rows.append((reading.name, *(number(since[f"{PORT}PFC_{n}_{word.upper()}_PKTS"]) for n in NUMBERS)))
        call.out(columns((f"Port {word}", *(f"PFC{n}" for n in NUMBERS)), rows) + "\n")


def _pfc_priority(system: System, call: Call, line: Line) -> None:
    rows = [(name, text(system.running, "PORT_QOS_MAP", name, "pfc_enable", "N/A")) for name in chosen(system, line)]
    call.out("\n" + columns(("Interface", "Lossless priorities"), rows, right=False) + "\n")


def _pfc_asymmetric(system: System, call: Call, line: Line) -> None:
    call.out("\n" + columns(("Interface", "Asymmetric"), [(name, "off") for name in chosen(system, line)], right=False))


def _queue_counters(system: System, call: Call, line: Line) -> None:
    rows = [row for reading in readings(system, line) for row in _queue_rows(system, call, reading)]
    if line.has("--json"):
        call.out(json.dumps(_queue_json(rows), indent=4, sort_keys=True) + "\n")
        return
    titles = ("Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes")
    call.out(f"For namespace :\n{columns(titles, rows)}\n")


def _queue_rows(system: System, call: Call, reading: PortReading) -> list[tuple[str, ...]]:
    since = system.cleared.since(call.user, "queue", reading)
    names = ("PACKETS", "BYTES", "DROPPED_PACKETS")
    return [
        (reading.name, f"UC{n}", *(number(since[f"queue{n}:{QUEUE}{name}"]) for name in names), "N/A")
        for n in range(len(reading.queues))
    ]


def _queue_json(rows: list[tuple[str, ...]]) -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = {}
    for port, queue, packets, size, dropped, dropped_size in rows:
        found.setdefault(port, {})[queue] = {
            "dropbytes": dropped_size,
            "droppacket": dropped,
            "totalbytes": size,
            "totalpacket": packets,
        }
    return found


def _wred_counters(system: System, call: Call, line: Line) -> None:
    if system.branch < FIRST_WITH_ECN_COUNTERS:
        raise UsageError('No such command "wredcounters".')
    rows = []
    for reading in readings(system, line):
        since = system.cleared.since(call.user, "queue", reading)
        for n in range(len(reading.queues)):
            marked = number(since[f"queue{n}:{QUEUE}WRED_ECN_MARKED_PACKETS"]) if counts_ecn(system) else "N/A"
            rows.append((reading.name, f"UC{n}", "N/A", "N/A", marked, "N/A"))
    titles = ("Port", "TxQ", "WredDrp/pkts", "WredDrp/bytes", "EcnMarked/pkts", "EcnMarked/bytes")
    call.out(columns(titles, rows) + "\n")


def _queue_watermark(system: System, call: Call, line: Line) -> None:
    rows = [(one.name, *(queue.peak_bytes for queue in one.queues)) for one in readings(system, line)]
    call.out("Egress shared pool occupancy per unicast queue:\n")
    call.out(columns(("Port", *(f"UC{n}" for n in NUMBERS)), rows))


def _group_shared(system: System, call: Call, line: Line) -> None:
    rows = [(one.name, *(group.peak_bytes for group in one.buffers)) for one in readings(system, line)]
    call.out("Ingress shared pool occupancy per PG:\n" + columns(("Port", *(f"PG{n}" for n in NUMBERS)), rows))


def _group_headroom(system: System, call: Call, line: Line) -> None:
    rows = [(one.name, *(group.headroom_peak_bytes for group in one.buffers)) for one in readings(system, line)]
    call.out("Ingress headroom per PG:\n" + columns(("Port", *(f"PG{n}" for n in NUMBERS)), rows))


def _group_drops(system: System, call: Call, line: Line) -> None:
    rows = []
    for one in readings(system, line):
        since = system.cleared.since(call.user, "group", one)
        rows.append((one.name, *(since[f"group{n}:{GROUP}DROPPED_PACKETS"] for n in range(len(one.buffers)))))
    call.out("Ingress PG dropped packets:\n" + columns(("Port", *(f"PG{n}" for n in NUMBERS)), rows))


def ecn(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    """Print every WRED profile."""
    for name, row in sorted(system.running.get("WRED_PROFILE", {}).items()):
        call.out(f"Profile: {name}\n{pairs([(leaf, str(value)) for leaf, value in row.items()])}\n")


def _buffer_configuration(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    for word, table in (("Pool", "BUFFER_POOL"), ("Profile", "BUFFER_PROFILE")):
        for name, row in sorted(system.running.get(table, {}).items()):
            call.out(f"{word}: {name}\n{pairs([(leaf, str(value)) for leaf, value in row.items()])}\n")


COMMANDS: Commands = {
    ("pfc", "counters"): Command(_pfc_counters),
    ("pfc", "priority"): Command(_pfc_priority, 1),
    ("pfc", "asymmetric"): Command(_pfc_asymmetric, 1),
    ("queue", "counters"): Command(_queue_counters, 1, frozenset({"--json"})),
    ("queue", "wredcounters"): Command(_wred_counters, 1),
    ("queue", "watermark", "unicast"): Command(_queue_watermark),
    ("queue", "persistent-watermark", "unicast"): Command(_queue_watermark),
    ("priority-group", "watermark", "shared"): Command(_group_shared),
    ("priority-group", "watermark", "headroom"): Command(_group_headroom),
    ("priority-group", "persistent-watermark", "shared"): Command(_group_shared),
    ("priority-group", "persistent-watermark", "headroom"): Command(_group_headroom),
    ("priority-group", "drop", "counters"): Command(_group_drops),
    ("ecn",): Command(ecn),
    ("buffer", "configuration"): Command(_buffer_configuration),
}
