"""Priority flow control and its watchdog."""

from collections.abc import Iterator
from typing import Any

from netkit.lab.personalities.eos import qos
from netkit.lab.personalities.eos.patterns import Captured
from netkit.lab.personalities.eos.reply import Reply
from netkit.lab.personalities.eos.switch_state import is_routed
from netkit.lab.personalities.eos.views.lens import Lens
from netkit.lab.personalities.eos.views.table import table
from netkit.lab.reading import PortReading


def counters(lens: Lens, captured: Captured) -> Reply:
    """Show pause frames per port."""
    shown = {
        port: {
            "rxFrames": sum(one.rx_pause for one in reading.priorities),
            "txFrames": sum(one.tx_pause for one in reading.priorities),
        }
        for port, reading in lens.ports(captured)
    }
    rows = [(port, one["rxFrames"], one["txFrames"]) for port, one in shown.items()]
    return Reply({"interfaceCounters": shown}, table(("Port", "RxPfc", "TxPfc"), rows))


def detail(lens: Lens, captured: Captured) -> Reply:
    """Show pause frames per priority."""
    shown = {
        port: {
            "priorities": {
                str(number): {"rxFrames": one.rx_pause, "txFrames": one.tx_pause}
                for number, one in enumerate(reading.priorities)
            }
        }
        for port, reading in lens.ports(captured)
    }
    rows = [
        (port, number, frames["rxFrames"], frames["txFrames"])
        for port, one in shown.items()
        for number, frames in one["priorities"].items()
    ]
    return Reply({"interfaces": shown}, table(("Port", "Priority", "RxPfc", "TxPfc"), rows))


def watchdog(lens: Lens, captured: Captured) -> Reply:
    """Show storms; a port shows up with its first one. More begun than ended is a storm that goes on."""
    shown: dict[str, Any] = {}
    for port, reading in lens.ports(captured):
        queues = {
            str(number): {"stuckCount": one.storms_detected, "recoveryCount": one.storms_restored}
            for number, one in enumerate(reading.watchdogs)
            if one.storms_detected
        }
        if queues:
            shown[port] = {"txQueues": queues}
    rows = [
        (port, number, counts["stuckCount"], counts["recoveryCount"])
        for port, one in shown.items()
        for number, counts in one["txQueues"].items()
    ]
    return Reply({"interfaces": shown}, table(("Port", "TxQ", "Total times stuck", "Total times recovered"), rows))


def status(lens: Lens, captured: Captured) -> Reply:
    """Show where PFC is on. The JSON of this command is not known from a switch; its text is."""
    times = qos.watchdog_times(lens.config)
    head = (
        f"The hardware supports PFC on priorities 0 1 2 3 4 5 6 7\n"
        f"The PFC watchdog timeout is {times.timeout_s:g} second(s)\n"
        f"The PFC watchdog recovery-time is {times.recovery_s:g} second(s)\n"
        f"The PFC watchdog polling-interval is {times.polling_s:g} second(s)\n"
        f"The PFC watchdog action is {times.action}\n"
        f"The PFC watchdog override action drop is {'true' if times.override else 'false'}\n\n"
    )
    rows = [(port, *columns) for port, reading in lens.ports(captured) for columns in [_columns(lens, port, reading)]]
    return Reply(None, head + table(("Port", "Enabled", "Priorities", "Active", "Watchdog", "Note"), rows))


def _columns(lens: Lens, port: str, reading: PortReading) -> tuple[str, ...]:
    section = lens.section(port)
    told = qos.port_qos(lens.config, section, is_routed=is_routed(section))
    profile = qos.profile_of(lens.config, section)
    is_on = profile.has_pfc and not lens.config.has("priority-flow-control", "all", "off")
    return (
        "Yes" if is_on else "No",
        " ".join(map(str, sorted(profile.no_drop))),
        "Yes" if told.pfc_priorities and reading.is_up else "No",
        "On" if told.watchdog else "Off",
        "DCBX disabled",
    )


def _spread(form: str, show: Any) -> Iterator[tuple[str, Any]]:
    yield f"show priority-flow-control{form}", show
    yield f"show interfaces priority-flow-control{form}", show
    yield f"show interfaces <ports> priority-flow-control{form}", show
    yield f"show priority-flow-control interfaces <ports>{form}", show


VIEWS = (
    *_spread("", status),
    *_spread(" status", status),
    *_spread(" counters", counters),
    *_spread(" counters detail", detail),
    *_spread(" counters watchdog", watchdog),
)
