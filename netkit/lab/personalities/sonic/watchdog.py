"""`pfcwd` and `show pfcwd`: the PFC watchdog's settings and what it did."""

from netkit.lab.personalities.sonic.columns import columns
from netkit.lab.personalities.sonic.command import Command, Commands, Line, UsageError
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import Row, natural, text
from netkit.lab.personality import Call

DEFAULT_MS, PORTS_PER_STEP = 200, 32
"""SONiC's own defaults: a step of detection for each 32 ports, restoration twice as long."""


def _stats(system: System, call: Call, line: Line) -> None:
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


def watched_queues(system: System, port: str) -> list[int]:
    """Return the queues the watchdog looks after: those of the port's row, once the port has times."""
    row = system.running.get("PFC_WD", {}).get(port, {})
    queues = text(system.running, "PORT_QOS_MAP", port, "pfcwd_sw_enable")
    return [int(queue) for queue in queues.split(",") if queue] if "detection_time" in row else []


def _config(system: System, call: Call, line: Line) -> None:
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


def _start(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    if len(line.arguments) < 2:
        raise UsageError("give ports (or `all`) and a detection time")
    *ports, detection_ms = line.arguments
    row: Row = {
        "action": line.options.get("--action", line.options.get("-a", "drop")),
        "detection_time": detection_ms,
        "restoration_time": line.options.get(
            "--restoration-time", line.options.get("-r", str(2 * int(detection_ms) if detection_ms.isdigit() else 0))
        ),
    }
    _write(system, ports, row)


def _start_default(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    if text(system.running, "DEVICE_METADATA", "localhost", "default_pfcwd_status") != "enable":
        return
    ports = [name for name in system.running.get("PORT", {}) if _is_lossless(system, name)]
    step_ms = DEFAULT_MS * -(-len(ports) // PORTS_PER_STEP)
    row: Row = {"action": "drop", "detection_time": str(step_ms), "restoration_time": str(2 * step_ms)}
    _write(system, ports, row, poll_ms=step_ms)


def _is_lossless(system: System, port: str) -> bool:
    return bool(text(system.running, "PORT_QOS_MAP", port, "pfc_enable"))


def _write(system: System, ports: list[str], row: Row, *, poll_ms: int = 0) -> None:
    tables = system.edited()
    rows = tables.setdefault("PFC_WD", {})
    for name in ports if ports != ["all"] else list(system.running.get("PORT", {})):
        rows[name] = dict(row)
    if poll_ms:
        rows["GLOBAL"] = {"POLL_INTERVAL": str(poll_ms)}
    system.write(tables)


def _stop(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    tables = system.edited()
    rows = tables.get("PFC_WD", {})
    for name in line.arguments or [name for name in rows if name != "GLOBAL"]:
        if rows.pop(name, None) is None:
            raise UsageError(f"{name} has no watchdog")
    if not rows:
        tables.pop("PFC_WD", None)
    system.write(tables)


def _interval(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    tables = system.edited()
    tables.setdefault("PFC_WD", {})["GLOBAL"] = {"POLL_INTERVAL": line.first("poll_interval")}
    system.write(tables)


_MANY = 1000
_START_OPTIONS = frozenset({"--action", "-a", "--restoration-time", "-r"})

SHOW: Commands = {
    ("pfcwd", "stats"): Command(_stats, _MANY),
    ("pfcwd", "config"): Command(_config, _MANY),
}
COMMANDS: Commands = {
    ("show", "stats"): Command(_stats, _MANY),
    ("show", "config"): Command(_config, _MANY),
    ("start",): Command(_start, _MANY, valued=_START_OPTIONS),
    ("start_default",): Command(_start_default),
    ("stop",): Command(_stop, _MANY),
    ("interval",): Command(_interval, 1),
}
