"""`show` of PFC, its watchdog, queues and ECN."""

from typing import Any

from netkit.lab.personalities.eos.reply import EosReply
from netkit.lab.personalities.eos.show_context import Captured, ShowContext, table
from netkit.lab.personalities.eos.switch_state import (
    class_of_dscp,
    is_dynamic,
    is_routed,
    of_class,
    port_qos,
    profile_of,
    watchdog_times,
)
from netkit.lab.reading import SwitchPortReading
from netkit.lab.state import CODE_POINTS, PRIORITIES


def detail(context: ShowContext, captured: Captured) -> EosReply:
    """Show PFC frames per priority."""
    shown = {
        port: {
            "priorities": {
                str(number): {"rxFrames": one.rx_pause, "txFrames": one.tx_pause}
                for number, one in enumerate(reading.priorities)
            }
        }
        for port, reading in context.ports(captured)
    }
    rows = [
        (port, number, frames["rxFrames"], frames["txFrames"])
        for port, one in shown.items()
        for number, frames in one["priorities"].items()
    ]
    return EosReply({"interfaces": shown}, table(("Port", "Priority", "RxPfc", "TxPfc"), rows))


def watchdog(context: ShowContext, captured: Captured) -> EosReply:
    """Show PFC watchdog events; a port is listed from its first storm. A storm persists while stuck > recovered."""
    shown: dict[str, Any] = {}
    for port, reading in context.ports(captured):
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
    return EosReply({"interfaces": shown}, table(("Port", "TxQ", "Total times stuck", "Total times recovered"), rows))


def status(context: ShowContext, captured: Captured) -> EosReply:
    """Show the PFC state. Text only: the JSON form is not known from a switch."""
    times = watchdog_times(context.config)
    head = (
        f"The hardware supports PFC on priorities 0 1 2 3 4 5 6 7\n"
        f"The PFC watchdog timeout is {times.timeout_s:g} second(s)\n"
        f"The PFC watchdog recovery-time is {times.recovery_s:g} second(s)\n"
        f"The PFC watchdog polling-interval is {times.polling_s:g} second(s)\n"
        f"The PFC watchdog action is {times.action}\n"
        f"The PFC watchdog override action drop is {'true' if times.override else 'false'}\n\n"
    )
    rows = [_pfc_row(context, port, reading) for port, reading in context.ports(captured)]
    return EosReply(None, head + table(("Port", "Enabled", "Priorities", "Active", "Watchdog", "Note"), rows))


def _pfc_row(context: ShowContext, port: str, reading: SwitchPortReading) -> tuple[str, ...]:
    section = context.section(port)
    qos = port_qos(context.config, section, is_routed=is_routed(section))
    profile = profile_of(context.config, section)
    is_on = profile.has_pfc and not context.config.has("priority-flow-control", "all", "off")
    return (
        port,
        "Yes" if is_on else "No",
        " ".join(map(str, sorted(profile.no_drop))),
        "Yes" if qos.pfc_priorities and reading.is_up else "No",
        "On" if qos.watchdog else "Off",
        "DCBX disabled",
    )


PFC_VIEWS = (
    ("show priority-flow-control", status),
    ("show priority-flow-control counters detail", detail),
    ("show priority-flow-control counters watchdog", watchdog),
)


NOT_COUNTED = "-"
DISTRIBUTION = ("hash", "dynamic")


def ecn_counters(context: ShowContext, captured: Captured) -> EosReply:
    """Show ECN-marked packets per queue as strings; a dash, not zero, where counting is not configured."""
    shown = {}
    for port, reading in context.ports(captured):
        profile = profile_of(context.config, context.section(port))
        shown[port] = {
            "queueCounters": {
                str(number): str(queue.ecn_marked_packets)
                if profile.queue(number).is_ecn_counted and profile.queue(number).ecn
                else NOT_COUNTED
                for number, queue in enumerate(reading.queues)
            }
        }
    rows = [(port, number, count) for port, one in shown.items() for number, count in one["queueCounters"].items()]
    return EosReply({"intfQueueCounters": shown}, table(("Port", "TxQ", "Marked Packets"), rows))


def queue_detail(context: ShowContext, captured: Captured) -> EosReply:
    shown: dict[str, Any] = {}
    for port, reading in context.ports(captured):
        classes = {
            f"TC{number}": {
                "dropPrecedences": {
                    "DP0": {
                        "enqueuedPackets": queue.tx_packets,
                        "enqueuedBytes": queue.tx_bytes,
                        "droppedPackets": queue.dropped_packets,
                        "droppedBytes": 0,
                    }
                }
            }
            for number, queue in enumerate(reading.queues)
        }
        shown[port] = {"ucastQueues": {"trafficClasses": classes}, "mcastQueues": {"trafficClasses": {}}}
    rows = [
        (port, f"UC{number}", queue.tx_packets, queue.tx_bytes, queue.dropped_packets, 0)
        for port, reading in context.ports(captured)
        for number, queue in enumerate(reading.queues)
    ]
    text = table(("Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes"), rows)
    return EosReply({"egressQueueCounters": {"interfaces": shown}}, text)


def queue_drops(context: ShowContext, captured: Captured) -> EosReply:
    rows = []
    for port, reading in context.ports(captured):
        dropped_in = sum(group.dropped_packets for group in reading.buffers)
        rows.append((port, dropped_in, sum(queue.dropped_packets for queue in reading.queues), 0))
    return EosReply(None, table(("Port", "InDropped", "OutUcDropped", "OutMcDropped"), rows))


def maps(context: ShowContext, _: Captured) -> EosReply:
    classes = class_of_dscp(context.config)
    groups, queues = (
        of_class(context.config, "priority-group"),
        of_class(context.config, "tx-queue", "uc-tx-queue"),
    )
    return EosReply(
        None,
        table(("DSCP", "TC"), [(dscp, classes[dscp]) for dscp in range(CODE_POINTS)])
        + table(("TC", "PG", "TxQ"), [(number, groups[number], queues[number]) for number in range(PRIORITIES)]),
    )


def buffer(context: ShowContext, _: Captured) -> EosReply:
    profile = ("platform", "trident", "mmu", "queue", "profile")
    name = next((rest[0] for rest in context.config.find(*profile) if rest[1:] == ("apply",)), "")
    limit = context.config.one("platform", "trident", "mmu", "headroom-pool", "limit")
    lines = [
        f"Queue profile: {name or 'default'}",
        *(f"  {line}" for line in context.config.section(*profile, name).lines(1)),
        f"Headroom pool limit: {' '.join(reversed(limit)) if limit else 'default'}",
    ]
    return EosReply(None, "".join(f"{line}\n" for line in lines))


def load_balance(context: ShowContext, _: Captured) -> EosReply:
    """Show the load-balancing mode as configured and per port."""
    rows = [(port, DISTRIBUTION[reading.adaptive_routing]) for port, reading in context.ports({})]
    configured = DISTRIBUTION[is_dynamic(context.config)]
    return EosReply(None, f"Load balance distribution: {configured}\n\n{table(('Port', 'Mode'), rows)}")


QUEUE_VIEWS = (
    ("show qos interfaces ecn counters queue", ecn_counters),
    ("show qos maps", maps),
    ("show platform trident mmu queue status", buffer),
    ("show ip hardware fib load-balance distribution", load_balance),
    ("show interfaces counters queue", queue_drops),
    ("show interfaces counters queue detail", queue_detail),
)
