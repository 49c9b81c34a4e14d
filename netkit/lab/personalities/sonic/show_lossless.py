"""PFC, its watchdog, queues, priority groups and ECN: `show`, `pfcwd`, `counterpoll`, `ecnconfig` and `sonic-clear`."""

import json

from netkit.lab.personalities.sonic.command_line import (
    Commands,
    SonicArguments,
    SonicCommand,
    SonicUsageError,
    columns,
    pairs,
)
from netkit.lab.personalities.sonic.counters import GROUP, PORT, QUEUE
from netkit.lab.personalities.sonic.show_commands import chosen, number, readings
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personalities.sonic.tables import Row, natural, text
from netkit.lab.personality import Call
from netkit.lab.reading import PortReading
from netkit.lab.state import PRIORITIES

FIRST_WITH_ECN_COUNTERS = 202505
NUMBERS = range(PRIORITIES)


def counts_ecn(system: SonicSystem) -> bool:
    """Whether the branch counts ECN marks of queues, and is told to."""
    return _counts(system, "WRED_ECN_QUEUE")


def counts_ecn_of_ports(system: SonicSystem) -> bool:
    """Whether the branch counts ECN marks of ports, and is told to."""
    return _counts(system, "WRED_ECN_PORT")


def _counts(system: SonicSystem, group: str) -> bool:
    status = text(system.running, "FLEX_COUNTER_TABLE", group, "FLEX_COUNTER_STATUS")
    return system.branch >= FIRST_WITH_ECN_COUNTERS and status == "enable"


def _pfc_counters(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    for word in ("Rx", "Tx"):
        rows = []
        for reading in readings(system, line):
            since = system.cleared.since(call.user, "pfc", reading)
            rows.append((reading.name, *(number(since[f"{PORT}PFC_{n}_{word.upper()}_PKTS"]) for n in NUMBERS)))
        call.out(columns((f"Port {word}", *(f"PFC{n}" for n in NUMBERS)), rows) + "\n")


def _pfc_priority(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    rows = [(name, text(system.running, "PORT_QOS_MAP", name, "pfc_enable", "N/A")) for name in chosen(system, line)]
    call.out("\n" + columns(("Interface", "Lossless priorities"), rows, right=False) + "\n")


def _pfc_asymmetric(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    call.out("\n" + columns(("Interface", "Asymmetric"), [(name, "off") for name in chosen(system, line)], right=False))


def _queue_counters(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    rows = [row for reading in readings(system, line) for row in _queue_rows(system, call, reading)]
    if line.has("--json"):
        call.out(json.dumps(_queue_json(rows), indent=4, sort_keys=True) + "\n")
        return
    titles = ("Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes")
    call.out(f"For namespace :\n{columns(titles, rows)}\n")


def _queue_rows(system: SonicSystem, call: Call, reading: PortReading) -> list[tuple[str, ...]]:
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


def _wred_counters(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    if system.branch < FIRST_WITH_ECN_COUNTERS:
        raise SonicUsageError('No such command "wredcounters".')
    rows = []
    for reading in readings(system, line):
        since = system.cleared.since(call.user, "queue", reading)
        for n in range(len(reading.queues)):
            marked = number(since[f"queue{n}:{QUEUE}WRED_ECN_MARKED_PACKETS"]) if counts_ecn(system) else "N/A"
            rows.append((reading.name, f"UC{n}", "N/A", "N/A", marked, "N/A"))
    titles = ("Port", "TxQ", "WredDrp/pkts", "WredDrp/bytes", "EcnMarked/pkts", "EcnMarked/bytes")
    call.out(columns(titles, rows) + "\n")


def _queue_watermark(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    rows = [(one.name, *(queue.peak_bytes for queue in one.queues)) for one in readings(system, line)]
    call.out("Egress shared pool occupancy per unicast queue:\n")
    call.out(columns(("Port", *(f"UC{n}" for n in NUMBERS)), rows))


def _group_shared(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    rows = [(one.name, *(group.peak_bytes for group in one.buffers)) for one in readings(system, line)]
    call.out("Ingress shared pool occupancy per PG:\n" + columns(("Port", *(f"PG{n}" for n in NUMBERS)), rows))


def _group_headroom(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    rows = [(one.name, *(group.headroom_peak_bytes for group in one.buffers)) for one in readings(system, line)]
    call.out("Ingress headroom per PG:\n" + columns(("Port", *(f"PG{n}" for n in NUMBERS)), rows))


def _group_drops(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    rows = []
    for one in readings(system, line):
        since = system.cleared.since(call.user, "group", one)
        rows.append((one.name, *(since[f"group{n}:{GROUP}DROPPED_PACKETS"] for n in range(len(one.buffers)))))
    call.out("Ingress PG dropped packets:\n" + columns(("Port", *(f"PG{n}" for n in NUMBERS)), rows))


def ecn(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    """Print every WRED profile."""
    for name, row in sorted(system.running.get("WRED_PROFILE", {}).items()):
        call.out(f"Profile: {name}\n{pairs([(leaf, str(value)) for leaf, value in row.items()])}\n")


def _buffer_configuration(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    for word, table in (("Pool", "BUFFER_POOL"), ("Profile", "BUFFER_PROFILE")):
        for name, row in sorted(system.running.get(table, {}).items()):
            call.out(f"{word}: {name}\n{pairs([(leaf, str(value)) for leaf, value in row.items()])}\n")


QUEUE_COMMANDS: Commands = {
    ("pfc", "counters"): SonicCommand(_pfc_counters),
    ("pfc", "priority"): SonicCommand(_pfc_priority, 1),
    ("pfc", "asymmetric"): SonicCommand(_pfc_asymmetric, 1),
    ("queue", "counters"): SonicCommand(_queue_counters, 1, frozenset({"--json"})),
    ("queue", "wredcounters"): SonicCommand(_wred_counters, 1),
    ("queue", "watermark", "unicast"): SonicCommand(_queue_watermark),
    ("queue", "persistent-watermark", "unicast"): SonicCommand(_queue_watermark),
    ("priority-group", "watermark", "shared"): SonicCommand(_group_shared),
    ("priority-group", "watermark", "headroom"): SonicCommand(_group_headroom),
    ("priority-group", "persistent-watermark", "shared"): SonicCommand(_group_shared),
    ("priority-group", "persistent-watermark", "headroom"): SonicCommand(_group_headroom),
    ("priority-group", "drop", "counters"): SonicCommand(_group_drops),
    ("ecn",): SonicCommand(ecn),
    ("buffer", "configuration"): SonicCommand(_buffer_configuration),
}


DEFAULT_MS, PORTS_PER_STEP = 200, 32
"""SONiC's own defaults: a step of detection for each 32 ports, restoration twice as long."""


def _stats(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    titles = (
        "QUEUE",
        "STATUS",
        "STORM DETECTED/RESTORED",
        "TX OK/DROP",
        "RX OK/DROP",
        "TX LAST OK/DROP",
        "RX LAST OK/DROP",
    )
    rows = []
    for reading in system.node.ports():
        for queue in watched_queues(system, reading.name):
            found = reading.watchdogs[queue]
            if line.arguments and reading.name not in line.arguments:
                continue
            storms = f"{found.storms_detected}/{found.storms_restored}"
            status = "stormed" if found.is_stormed else "operational"
            sent = reading.queues[queue].tx_packets if found.storms_detected else 0
            rows.append(
                (f"{reading.name}:{queue}", status, storms, f"{sent}/{found.dropped_packets}", "0/0", "0/0", "0/0")
            )
    call.out(columns(titles, rows))


def watched_queues(system: SonicSystem, port: str) -> list[int]:
    """Return the queues the watchdog looks after: those of the port's row, once the port has times."""
    row = system.running.get("PFC_WD", {}).get(port, {})
    queues = text(system.running, "PORT_QOS_MAP", port, "pfcwd_sw_enable")
    return [int(queue) for queue in queues.split(",") if queue] if "detection_time" in row else []


def _config(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    rows = system.running.get("PFC_WD", {})
    poll = text(system.running, "PFC_WD", "GLOBAL", "POLL_INTERVAL")
    if poll:
        call.out(f"Changed polling interval to {poll}ms\n")
    shown = []
    for name in sorted(rows, key=natural):
        row = rows[name]
        if name != "GLOBAL" and (not line.arguments or name in line.arguments):
            times = (row.get("detection_time", "N/A"), row.get("restoration_time", "infinite"))
            shown.append((name, row.get("action", "N/A"), *times))
    call.out(columns(("PORT", "ACTION", "DETECTION TIME", "RESTORATION TIME"), shown))


def _start(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    if len(line.arguments) < 2:
        raise SonicUsageError("give ports (or `all`) and a detection time")
    *ports, detection_ms = line.arguments
    row: Row = {
        "action": line.options.get("--action", line.options.get("-a", "drop")),
        "detection_time": detection_ms,
        "restoration_time": line.options.get(
            "--restoration-time", line.options.get("-r", str(2 * int(detection_ms) if detection_ms.isdigit() else 0))
        ),
    }
    _write(system, ports, row)


def _start_default(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    if text(system.running, "DEVICE_METADATA", "localhost", "default_pfcwd_status") != "enable":
        return
    ports = [name for name in system.running.get("PORT", {}) if _is_lossless(system, name)]
    step_ms = DEFAULT_MS * -(-len(ports) // PORTS_PER_STEP)
    row: Row = {"action": "drop", "detection_time": str(step_ms), "restoration_time": str(2 * step_ms)}
    _write(system, ports, row, poll_ms=step_ms)


def _is_lossless(system: SonicSystem, port: str) -> bool:
    return bool(text(system.running, "PORT_QOS_MAP", port, "pfc_enable"))


def _write(system: SonicSystem, ports: list[str], row: Row, *, poll_ms: int = 0) -> None:
    tables = system.edited()
    rows = tables.setdefault("PFC_WD", {})
    for name in ports if ports != ["all"] else list(system.running.get("PORT", {})):
        rows[name] = dict(row)
    if poll_ms:
        rows["GLOBAL"] = {"POLL_INTERVAL": str(poll_ms)}
    system.write(tables)


def _stop(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    tables = system.edited()
    rows = tables.get("PFC_WD", {})
    for name in line.arguments or [name for name in rows if name != "GLOBAL"]:
        if rows.pop(name, None) is None:
            raise SonicUsageError(f"{name} has no watchdog")
    if not rows:
        tables.pop("PFC_WD", None)
    system.write(tables)


def _interval(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    tables = system.edited()
    tables.setdefault("PFC_WD", {})["GLOBAL"] = {"POLL_INTERVAL": line.first("poll_interval")}
    system.write(tables)


_MANY = 1000
_START_OPTIONS = frozenset({"--action", "-a", "--restoration-time", "-r"})

SHOW: Commands = {
    ("pfcwd", "stats"): SonicCommand(_stats, _MANY),
    ("pfcwd", "config"): SonicCommand(_config, _MANY),
}
WATCHDOG_COMMANDS: Commands = {
    ("show", "stats"): SonicCommand(_stats, _MANY),
    ("show", "config"): SonicCommand(_config, _MANY),
    ("start",): SonicCommand(_start, _MANY, valued=_START_OPTIONS),
    ("start_default",): SonicCommand(_start_default),
    ("stop",): SonicCommand(_stop, _MANY),
    ("interval",): SonicCommand(_interval, 1),
}


GROUPS = {
    "port": "PORT",
    "queue": "QUEUE",
    "port-buffer-drop": "PORT_BUFFER_DROP",
    "pg-drop": "PG_DROP",
    "rif": "RIF",
    "acl": "ACL",
    "wredqueue": "WRED_ECN_QUEUE",
    "wredport": "WRED_ECN_PORT",
    "pfcwd": "PFCWD",
}
"""The words people type; `watermark` stands for three."""
WATERMARKS = ("QUEUE_WATERMARK", "PG_WATERMARK", "BUFFER_POOL_WATERMARK")
STATS = {
    "QUEUE_STAT": "QUEUE",
    "PORT_STAT": "PORT",
    "PORT_BUFFER_DROP": "PORT_BUFFER_DROP",
    "RIF_STAT": "RIF",
    "QUEUE_WATERMARK_STAT": "QUEUE_WATERMARK",
    "PG_WATERMARK_STAT": "PG_WATERMARK",
    "PG_DROP_STAT": "PG_DROP",
    "BUFFER_POOL_WATERMARK_STAT": "BUFFER_POOL_WATERMARK",
    "ACL": "ACL",
    "PFCWD": "PFCWD",
    "WRED_ECN_QUEUE_STAT": "WRED_ECN_QUEUE",
    "WRED_ECN_PORT_STAT": "WRED_ECN_PORT",
}


def _show(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    found = system.running.get("FLEX_COUNTER_TABLE", {})
    rows = []
    for title, group in STATS.items():
        if group in found:
            row = found[group]
            interval = row.get("POLL_INTERVAL", "default")
            rows.append((title, interval, row.get("FLEX_COUNTER_STATUS", "disable")))
    call.out(columns(("Type", "Interval (in ms)", "Status"), rows, right=False))


def _set(groups: tuple[str, ...], leaf: str, value: str = "") -> SonicCommand:
    def action(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
        tables = system.edited()
        for group in groups:
            row = tables.setdefault("FLEX_COUNTER_TABLE", {}).setdefault(group, {})
            row[leaf] = value or line.first("poll_interval")
        system.write(tables)

    return SonicCommand(action, 0 if value else 1)


def _polling() -> Commands:
    commands: dict[tuple[str, ...], SonicCommand] = {("show",): SonicCommand(_show)}
    for word, groups in {**{word: (group,) for word, group in GROUPS.items()}, "watermark": WATERMARKS}.items():
        for status in ("enable", "disable"):
            commands[word, status] = _set(groups, "FLEX_COUNTER_STATUS", status)
        commands[word, "interval"] = _set(groups, "POLL_INTERVAL")
    return commands


def _clear(kind: str) -> SonicCommand:
    def action(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
        system.cleared.note(call.user, kind, system.node.ports())
        call.out("Cleared counters\n")

    return SonicCommand(action)


def _clear_watermark(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    # A watermark is a peak the chip holds: clearing it is done there, for every user.
    system.node.clear_counters()


def _ecnconfig(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    changes = {leaf: line.options[option] for option, leaf in THRESHOLDS.items() if option in line.options}
    if line.has("-l", "--list"):
        ecn(system, call, line)
        return
    name = line.options.get("-p", line.options.get("--profile"))
    if name is None or not changes:
        raise SonicUsageError("give -l, or -p with a threshold")
    tables = system.edited()
    if name not in tables.get("WRED_PROFILE", {}):
        raise SonicUsageError(f"{name} is no profile")
    tables["WRED_PROFILE"][name].update(changes)
    system.write(tables)


THRESHOLDS = {
    f"-{color[0]}{short}": f"{color}_{leaf}"
    for color in ("green", "yellow", "red")
    for short, leaf in (("min", "min_threshold"), ("max", "max_threshold"), ("drop", "drop_probability"))
}

COUNTERPOLL: Commands = _polling()
CLEAR: Commands = {
    ("counters",): _clear("counters"),
    ("pfccounters",): _clear("pfc"),
    ("queuecounters",): _clear("queue"),
    ("priority-group", "drop", "counters"): _clear("group"),
    ("queue", "watermark", "unicast"): SonicCommand(_clear_watermark),
    ("priority-group", "watermark", "shared"): SonicCommand(_clear_watermark),
    ("priority-group", "watermark", "headroom"): SonicCommand(_clear_watermark),
}
ECNCONFIG: Commands = {
    (): SonicCommand(_ecnconfig, 0, frozenset({"-l", "--list"}), frozenset({"-p", "--profile", *THRESHOLDS})),
}
