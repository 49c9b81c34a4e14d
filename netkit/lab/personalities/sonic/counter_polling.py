"""`counterpoll`, `sonic-clear` and `ecnconfig`."""

from netkit.lab.personalities.sonic.columns import columns
from netkit.lab.personalities.sonic.command import Command, Commands, Line, UsageError
from netkit.lab.personalities.sonic.show_lossless import ecn
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personality import Call

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


def _show(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    found = system.running.get("FLEX_COUNTER_TABLE", {})
    rows = []
    for title, group in STATS.items():
        if group in found:
            row = found[group]
            interval = row.get("POLL_INTERVAL", "default")
            rows.append((title, interval, row.get("FLEX_COUNTER_STATUS", "disable")))
    call.out(columns(("Type", "Interval (in ms)", "Status"), rows, right=False))


def _set(groups: tuple[str, ...], leaf: str, value: str = "") -> Command:
    def action(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
        tables = system.edited()
        for group in groups:
            row = tables.setdefault("FLEX_COUNTER_TABLE", {}).setdefault(group, {})
            row[leaf] = value or line.first("poll_interval")
        system.write(tables)

    return Command(action, 0 if value else 1)


def _polling() -> Commands:
    commands: dict[tuple[str, ...], Command] = {("show",): Command(_show)}
    for word, groups in {**{word: (group,) for word, group in GROUPS.items()}, "watermark": WATERMARKS}.items():
        for status in ("enable", "disable"):
            commands[word, status] = _set(groups, "FLEX_COUNTER_STATUS", status)
        commands[word, "interval"] = _set(groups, "POLL_INTERVAL")
    return commands


def _clear(kind: str) -> Command:
    def action(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
        system.cleared.note(call.user, kind, system.node.ports())
        call.out("Cleared counters\n")

    return Command(action)


def _clear_watermark(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    # A watermark is a peak the chip holds: clearing it is done there, for every user.
    system.node.clear_counters()


def _ecnconfig(system: System, call: Call, line: Line) -> None:
    changes = {leaf: line.options[option] for option, leaf in THRESHOLDS.items() if option in line.options}
    if line.has("-l", "--list"):
        ecn(system, call, line)
        return
    name = line.options.get("-p", line.options.get("--profile"))
    if name is None or not changes:
        raise UsageError("give -l, or -p with a threshold")
    tables = system.edited()
    if name not in tables.get("WRED_PROFILE", {}):
        raise UsageError(f"{name} is no profile")
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
    ("queue", "watermark", "unicast"): Command(_clear_watermark),
    ("priority-group", "watermark", "shared"): Command(_clear_watermark),
    ("priority-group", "watermark", "headroom"): Command(_clear_watermark),
}
ECNCONFIG: Commands = {
    (): Command(_ecnconfig, 0, frozenset({"-l", "--list"}), frozenset({"-p", "--profile", *THRESHOLDS})),
}
