"""QoS of ports, from the RoCE mode and from the profiles, with PFC watchdogs, queues and buffers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.qos import Buffer, Ecn, PortQos, Watchdog
from netkit.platforms.nvue.facts.interface import PORT
from netkit.platforms.nvue.facts.json_access import (
    Parts,
    PortPart,
    Shown,
    counted,
    index,
    inner,
    numbers,
    objects,
    real,
    size,
    switched,
    tree,
    under,
    unread,
    whole,
    word,
)
from netkit.platforms.view import View

ROCE = "nv show qos roce -o json"
QOS = "nv show qos -o json"
"""All of QoS. The RoCE mode is read separately: it is not documented that this includes it."""
PROFILE = "default-global"
WHOLE_PERCENT = 100
"""With a smaller sum the RoCE mode does not show all classes."""
DWRR = re.compile(r"DWRR-([0-9]{1,3})%", re.IGNORECASE)
METERS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Classes:
    """The traffic class of each priority, and the scheduling of the classes; None if unknown."""

    of_priority: Mapping[int, int] | None = None
    weights: Mapping[int, int] | None = None
    strict: frozenset[int] | None = None


def qos_view(ports: Sequence[str], *, has_aspects: bool) -> View:
    """Build the view; releases without an aspect view are asked port by port."""
    statuses = commands_for(ports, "roce status", "roce-status", has_aspects=has_aspects)
    marks = commands_for(ports, "congestion-control", "congestion-control", has_aspects=has_aspects)

    def parse(*texts: str) -> Facts:
        roce, qos, *rest = texts
        status = by_port(ports, rest[: len(statuses)], ("qos", "roce", "status"), has_aspects=has_aspects)
        marking = by_port(ports, rest[len(statuses) :], ("qos", "congestion-control"), has_aspects=has_aspects)
        return qos_facts(roce, qos, status, marking)

    return View((ROCE, QOS, *statuses, *marks), frozenset({"qos"}), parse, is_costly=not has_aspects)


def commands_for(ports: Sequence[str], path: str, aspect: str, *, has_aspects: bool) -> tuple[str, ...]:
    """The one command that shows an aspect of all ports, or one command for each port."""
    if has_aspects:
        return (f"nv show interface qos-{aspect} -o json",)
    return tuple(f"nv show interface {port} qos {path} -o json" for port in ports)


def by_port(
    ports: Sequence[str], texts: Sequence[str], path: tuple[str, ...], *, has_aspects: bool
) -> dict[str, Shown]:
    """Split output by port; an aspect may be nested as in the full tree."""
    if has_aspects:
        return {port: inner(one, *path) for port, one in objects(tree(texts[0])) if PORT.fullmatch(port)}
    return {port: one for port, text in zip(ports, texts, strict=True) if (one := tree(text)) is not None}


def qos_facts(roce_text: str, qos_text: str, status: Mapping[str, Shown], marking: Mapping[str, Shown]) -> Facts:
    qos = tree(qos_text) or {}
    roce = tree(roce_text) or under(qos, "roce")
    if not roce and not status:
        return Facts(qos=unread(ROCE, roce_text))
    found, dscps = classes(roce, qos), _dscps(roce, under(qos, "mapping", PROFILE))
    ports = {
        port: _port(status.get(port, {}), marking.get(port), roce, dscps, found) for port in sorted({*status, *marking})
    }
    return Facts(qos=ports or Absent(f"{ROCE}: no port shows its QoS"))


def _port(
    status: Shown, marking: Shown | None, roce: Shown, dscps: Mapping[int, int] | None, found: Classes
) -> PortQos:
    pfc = under(status, "pfc")
    trust = word(under(status, "trust"), "trust-mode") or word(under(roce, "trust"), "trust-mode")
    if marking is not None:
        ecn = {
            number: _thresholds(row)
            for name, row in objects(under(marking, "traffic-class"))
            if (number := index(name)) is not None and switched(row.get("ecn"))
        }
    else:  # the summary of a port has one set of thresholds for all classes
        summary = under(status, "congestion-control")
        ecn = dict.fromkeys(sorted(numbers(summary.get("enabled-tc"))), _thresholds(summary))
    has_ecn = marking is not None or "enabled-tc" in under(status, "congestion-control")
    return PortQos(
        trust="dscp" if "dscp" in trust.split(",") else trust,  # with both, PCP is for packets that are not IP
        dscp_to_priority=dscps,
        pfc_rx=_paused(pfc, "rx-enabled"),
        pfc_tx=_paused(pfc, "tx-enabled"),
        weights=found.weights,
        strict=found.strict,
        priority_to_class=found.of_priority,
        ecn=ecn if has_ecn else None,
        cable_m=_meters(pfc.get("cable-length")) or _meters(under(roce, "pfc").get("cable-length")),
    )


def _paused(pfc: Shown, key: str) -> frozenset[int] | None:
    """Parse the priorities with PFC in one direction."""
    is_on = switched(pfc.get(key))
    if is_on is None or "pfc-priority" not in pfc:
        return None
    return numbers(pfc["pfc-priority"]) if is_on else frozenset()


def _meters(value: object) -> float | None:
    found = METERS.match(word({"": value}, ""))
    return float(found[0]) if found else None


def _thresholds(row: Shown) -> Ecn:
    return Ecn(
        is_on=True,
        min_bytes=size(row.get("min-threshold")),
        max_bytes=size(row.get("max-threshold")),
        probability_percent=real(row.get("probability")),
    )


def _dscps(roce: Shown, mapping: Shown) -> dict[int, int] | None:
    """Map DSCP to priority, from the RoCE mode and from the QoS mapping, which lists every DSCP."""
    found: dict[int, int] = {}
    for _, row in objects(roce.get("prio-map")):
        priority = index(word(row, "switch-prio", "switch-priority"))
        if priority is not None:
            found |= dict.fromkeys(sorted(numbers(row.get("dscp"))), priority)
    for name, row in objects(mapping.get("dscp")):
        dscp, priority = index(name), index(row.get("switch-priority"))
        if dscp is not None and priority is not None:
            found[dscp] = priority
    return dict(sorted(found.items())) or None


def classes(roce: Shown, qos: Shown) -> Classes:
    """Parse traffic classes from the RoCE mode and from the profiles, which list every class."""
    queues, scheduler = under(qos, "egress-queue-mapping", PROFILE), under(qos, "egress-scheduler", PROFILE)
    of_priority, weights, strict = _roce_classes(roce)
    for name, row in objects(queues.get("switch-priority")):
        priority, chosen = index(name), index(row.get("traffic-class"))
        if priority is not None and chosen is not None:
            of_priority[priority] = chosen
    for name, row in objects(scheduler.get("traffic-class")):
        number, percent = index(name), whole(row.get("bw-percent"))
        if number is None:
            continue
        weights.pop(number, None)
        strict.discard(number)
        if row.get("mode") == "strict":
            strict.add(number)
        elif percent is not None:
            weights[number] = percent
    is_whole = bool(under(scheduler, "traffic-class")) or sum(weights.values()) == WHOLE_PERCENT
    return Classes(
        dict(sorted(of_priority.items())) or None,
        dict(sorted(weights.items())) if is_whole else None,
        frozenset(strict) if weights or strict else None,
    )


def _roce_classes(roce: Shown) -> tuple[dict[int, int], dict[int, int], set[int]]:
    of_priority: dict[int, int] = {}
    weights: dict[int, int] = {}
    strict: set[int] = set()
    for _, row in objects(roce.get("sp-map")):
        chosen, scheduler = index(row.get("traffic-class")), word(row, "scheduler-weight")
        if chosen is None:
            continue
        of_priority |= dict.fromkeys(numbers(row.get("switch-prio", row.get("switch-priority"))), chosen)
        share = DWRR.fullmatch(scheduler)
        if share:
            weights[chosen] = int(share[1])
        elif scheduler.startswith("strict"):
            strict.add(chosen)
    return of_priority, weights, strict


WATCHDOG = "qos pfc-watchdog"
ACTION = "drop"
"""The only action of a watchdog of Cumulus Linux."""


def watchdog_part(lossless: Sequence[int]) -> PortPart:
    def parse(ports: Parts, texts: Sequence[str]) -> Facts:
        roce, qos = (tree(text) or {} for text in texts[:2])
        of_priority = classes(roce, qos).of_priority or {}
        return watchdog_facts(under(qos, "pfc-watchdog"), {at: of_priority.get(at, at) for at in lossless}, ports)

    return PortPart(WATCHDOG, frozenset({"watchdogs", "counters"}), parse, (ROCE, QOS))


def watchdog_facts(timing: Shown, class_of: Mapping[int, int], ports: Parts) -> Facts:
    watchdogs: dict[str, Watchdog] = {}
    detected: dict[str, int] = {}
    for port, shown in ports.items():
        is_on = switched(shown.get("state"))
        rows = {number: row for name, row in objects(shown.get("status")) if (number := index(name)) is not None}
        for priority, traffic_class in class_of.items():
            row, at = rows.get(traffic_class, {}), place(port, priority)
            count = whole(row.get("deadlock-count"))
            if is_on is not None and (row or not is_on):
                watchdogs[at] = _watchdog(row, timing, is_on=is_on)
            if count is not None:
                detected[at] = count
    return Facts(
        watchdogs=watchdogs or Absent(f"{WATCHDOG}: no port shows a lossless class"),
        counters=counted(WATCHDOG, {"watchdog_detected": detected}),
    )


def _watchdog(row: Shown, timing: Shown, *, is_on: bool) -> Watchdog:
    """Parse one watchdog: it detects after `robustness` polls, and restores after one poll without pauses."""
    poll_ms = whole(timing.get("polling-interval"))
    polls = whole(timing.get("robustness"))
    return Watchdog(
        is_on=is_on,
        is_stormed=word(row, "status").upper() == "DEADLOCK",
        detection_ms=None if poll_ms is None or polls is None else poll_ms * polls,
        restoration_ms=poll_ms,
        action=ACTION if is_on else "",
    )


# Group of the output → counter → key. Priority groups have the numbers of priorities.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "pfc-stats": {
        "rx_pause": "rx-pause-frames",
        "rx_pause_us": "rx-pause-duration",
        "tx_pause": "tx-pause-frames",
        "tx_pause_us": "tx-pause-duration",
    },
    "egress-queue-stats": {
        "queue_tx_packets": "tx-frames",
        "queue_tx_bytes": "tx-bytes",
        "queue_drops": "tx-uc-buffer-discards",
        "queue_ecn_marked": "ecn-marked-frames",
    },
    "ingress-buffer-stats": {"buffer_drops": "rx-buffer-discards"},
}


def queue_part(path: str) -> PortPart:
    """Build the part for queue counters; the path depends on the release."""

    def parse(ports: Parts, _texts: Sequence[str]) -> Facts:
        counters: dict[str, dict[str, int]] = {}
        for port, shown in ports.items():
            for name, at, count in _queue_counts(port, shown):
                counters.setdefault(name, {})[at] = count
        return Facts(counters=counted(path, counters))

    return PortPart(path, frozenset({"counters"}), parse)


def _queue_counts(port: str, shown: Shown) -> Iterator[tuple[str, str, int]]:
    for group, names in GROUPS.items():
        for number, row in objects(shown.get(group)):
            at = index(number)
            for name, key in names.items():
                count = whole(row.get(key))
                if at is not None and count is not None:
                    yield name, place(port, at), count
    marked = whole(under(shown, "port-stats", "ecn-marked-packets").get("transmit"))
    if marked is not None:
        yield "ecn_marked", port, marked


def roce_view(ports: Sequence[str], *, has_aspects: bool) -> View:
    """Build the view; releases without an aspect view are asked port by port."""
    counting = commands_for(ports, "roce counters", "roce-counters", has_aspects=has_aspects)

    def parse(*texts: str) -> Facts:
        roce, *rest = texts
        shown = by_port(ports, rest, ("qos", "roce", "counters"), has_aspects=has_aspects)
        if not shown:
            why = unread(counting[0], rest[0] if rest else "")
            return Facts(buffers=why, counters=why)
        return roce_facts(tree(roce) or {}, shown)

    return View((ROCE, *counting), frozenset({"buffers", "counters"}), parse, is_costly=not has_aspects)


def roce_facts(roce: Shown, shown: Mapping[str, Shown]) -> Facts:
    """Parse RoCE counters and buffers, which are sums over the lossless priorities: there must be exactly one."""
    counters: dict[str, dict[str, int]] = {}
    for port, found in shown.items():
        _count(counters, "ecn_marked", port, under(found, "tx-stats", "tx-ecn-stats"), "ecn-marked-packets")
    priorities = numbers(under(roce, "pfc").get("pfc-priority"))
    if len(priorities) != 1:
        why = Absent(f"{ROCE}: not exactly one lossless priority, so that the sums cannot be attributed")
        return Facts(buffers=why, counters=counted(ROCE, counters))
    (priority,) = priorities
    known = classes(roce, {})
    strict = known.strict or frozenset()
    cnp_queue = next(iter(strict)) if len(strict) == 1 else None  # of several it is not known which one CNPs use
    queues = {"roce": (known.of_priority or {}).get(priority), "cnp": cnp_queue}
    buffers: dict[str, Buffer] = {}
    for port, found in shown.items():
        at = place(port, priority)
        _count_lossless(counters, at, found)
        for kind, queue in queues.items():
            stats = under(found, "tx-stats", f"tx-{kind}-stats")
            if queue is not None:
                _count(counters, "queue_tx_packets", place(port, queue), stats, f"{kind}-packets")
                _count(counters, "queue_tx_bytes", place(port, queue), stats, f"{kind}-bytes")
                _count(counters, "queue_drops", place(port, queue), stats, "unicast-no-buffer-discard")
        egress = under(found, "tx-stats", "tx-roce-stats")
        buffer = Buffer(used_bytes=size(egress.get("tc-usage")), peak_bytes=size(egress.get("tc-max-usage")))
        if buffer != Buffer():
            buffers[at] = buffer
    return Facts(buffers=buffers or Absent(f"{ROCE}: shows no buffers"), counters=counted(ROCE, counters))


def _count_lossless(counters: dict[str, dict[str, int]], at: str, found: Shown) -> None:
    received, sent = under(found, "rx-stats", "rx-pfc-stats"), under(found, "tx-stats", "tx-pfc-stats")
    _count(counters, "rx_pause", at, received, "pause-packets")
    _count(counters, "rx_pause_us", at, received, "pause-duration")
    _count(counters, "tx_pause", at, sent, "pause-packets")
    _count(counters, "tx_pause_us", at, sent, "pause-duration")
    _count(counters, "buffer_drops", at, under(found, "rx-stats", "rx-roce-stats"), "no-buffer-discard")


def _count(counters: dict[str, dict[str, int]], name: str, at: str, stats: Shown, key: str) -> None:
    count = whole(stats.get(key))
    if count is not None:
        counters.setdefault(name, {})[at] = count
