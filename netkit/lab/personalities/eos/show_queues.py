"""`show` of PFC, its watchdog, queues and ECN."""

from collections.abc import Iterator
from typing import Any

from netkit.lab.personalities.eos.configuration import EosSection
from netkit.lab.personalities.eos.reply import EosReply
from netkit.lab.personalities.eos.show_context import Captured, Lens, table
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


def detail(lens: Lens, captured: Captured) -> EosReply:
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
    return EosReply({"interfaces": shown}, table(("Port", "Priority", "RxPfc", "TxPfc"), rows))


def watchdog(lens: Lens, captured: Captured) -> EosReply:
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
    return EosReply({"interfaces": shown}, table(("Port", "TxQ", "Total times stuck", "Total times recovered"), rows))


def status(lens: Lens, captured: Captured) -> EosReply:
    """Show where PFC is on. The JSON of this command is not known from a switch; its text is."""
    times = watchdog_times(lens.config)
    head = (
        f"The hardware supports PFC on priorities 0 1 2 3 4 5 6 7\n"
        f"The PFC watchdog timeout is {times.timeout_s:g} second(s)\n"
        f"The PFC watchdog recovery-time is {times.recovery_s:g} second(s)\n"
        f"The PFC watchdog polling-interval is {times.polling_s:g} second(s)\n"
        f"The PFC watchdog action is {times.action}\n"
        f"The PFC watchdog override action drop is {'true' if times.override else 'false'}\n\n"
    )
    rows = [(port, *columns) for port, reading in lens.ports(captured) for columns in [_columns(lens, port, reading)]]
    return EosReply(None, head + table(("Port", "Enabled", "Priorities", "Active", "Watchdog", "Note"), rows))


def _columns(lens: Lens, port: str, reading: SwitchPortReading) -> tuple[str, ...]:
    section = lens.section(port)
    told = port_qos(lens.config, section, is_routed=is_routed(section))
    profile = profile_of(lens.config, section)
    is_on = profile.has_pfc and not lens.config.has("priority-flow-control", "all", "off")
    return (
        "Yes" if is_on else "No",
        " ".join(map(str, sorted(profile.no_drop))),
        "Yes" if told.pfc_priorities and reading.is_up else "No",
        "On" if told.watchdog else "Off",
        "DCBX disabled",
    )


PFC_VIEWS = (
    ("show priority-flow-control", status),
    ("show priority-flow-control counters detail", detail),
    ("show priority-flow-control counters watchdog", watchdog),
)


NOT_COUNTED = "-"
DISTRIBUTION = ("hash", "dynamic")


def ecn_counters(lens: Lens, captured: Captured) -> EosReply:
    """Show marked packets per queue, as words; a dash where counting is not configured, which is not zero."""
    shown = {}
    for port, reading in lens.ports(captured):
        profile = profile_of(lens.config, lens.section(port))
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


def queue_detail(lens: Lens, captured: Captured) -> EosReply:
    """Show drops per queue."""
    shown: dict[str, Any] = {}
    for port, reading in lens.ports(captured):
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
        for port, reading in lens.ports(captured)
        for number, queue in enumerate(reading.queues)
    ]
    text = table(("Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes"), rows)
    return EosReply({"egressQueueCounters": {"interfaces": shown}}, text)


def queue_drops(lens: Lens, captured: Captured) -> EosReply:
    """Show drops per port."""
    rows = []
    for port, reading in lens.ports(captured):
        inward = sum(group.dropped_packets for group in reading.buffers)
        rows.append((port, inward, sum(queue.dropped_packets for queue in reading.queues), 0))
    return EosReply(None, table(("Port", "InDropped", "OutUcDropped", "OutMcDropped"), rows))


def maps(lens: Lens, _: Captured) -> EosReply:
    """Show the maps."""
    classes = class_of_dscp(lens.config)
    groups, queues = (
        of_class(lens.config, "priority-group"),
        of_class(lens.config, "tx-queue", "uc-tx-queue"),
    )
    return EosReply(
        None,
        table(("DSCP", "TC"), [(dscp, classes[dscp]) for dscp in range(CODE_POINTS)])
        + table(("TC", "PG", "TxQ"), [(number, groups[number], queues[number]) for number in range(PRIORITIES)]),
    )


def buffer(lens: Lens, _: Captured) -> EosReply:
    """Show the buffer profile that is applied."""
    name = lens.config.word("platform", "trident", "mmu", "queue", "profile")
    section = lens.config.section("platform", "trident", "mmu", "queue", "profile", _applied_profile(lens))
    limit = lens.config.one("platform", "trident", "mmu", "headroom-pool", "limit")
    lines = [f"Queue profile: {_applied_profile(lens) or 'default'}" if name else "Queue profile: default"]
    lines += _settings(section)
    lines += [f"Headroom pool limit: {' '.join(reversed(limit))}" if limit else "Headroom pool limit: default"]
    return EosReply(None, "".join(f"{line}\n" for line in lines))


def _applied_profile(lens: Lens) -> str:
    start = ("platform", "trident", "mmu", "queue", "profile")
    return next((rest[0] for rest in lens.config.find(*start) if rest[1:] == ("apply",)), "")


def _settings(section: EosSection) -> Iterator[str]:
    yield from (f"  {line}" for line in section.lines(1))


def load_balance(lens: Lens, _: Captured) -> EosReply:
    """Show how flows are spread over equal paths: as configured, and as each port does it."""
    rows = [(port, DISTRIBUTION[reading.adaptive_routing]) for port, reading in lens.ports({})]
    configured = DISTRIBUTION[is_dynamic(lens.config)]
    return EosReply(None, f"Load balance distribution: {configured}\n\n{table(('Port', 'Mode'), rows)}")


QUEUE_VIEWS = (
    ("show qos interfaces ecn counters queue", ecn_counters),
    ("show qos maps", maps),
    ("show platform trident mmu queue status", buffer),
    ("show ip hardware fib load-balance distribution", load_balance),
    ("show interfaces counters queue", queue_drops),
    ("show interfaces counters queue detail", queue_detail),
)
