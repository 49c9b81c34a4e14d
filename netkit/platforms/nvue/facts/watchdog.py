"""The PFC watchdog of each port."""

from collections.abc import Mapping, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.qos import Watchdog
from netkit.platforms.nvue.facts.part import Parts, PortPart
from netkit.platforms.nvue.facts.qos import QOS, ROCE, classes
from netkit.platforms.nvue.facts.shown import Shown, counted, index, objects, switched, tree, under, whole, word

OWN = "qos pfc-watchdog"
ACTION = "drop"
"""All that a watchdog of Cumulus Linux does."""


def part(lossless: Sequence[int]) -> PortPart:
    """Return what to ask, and of which priorities it tells."""

    def parse(ports: Parts, texts: Sequence[str]) -> Facts:
        roce, qos = (tree(text) or {} for text in texts[:2])
        of_priority = classes(roce, qos).of_priority or {}
        return parsed(under(qos, "pfc-watchdog"), {at: of_priority.get(at, at) for at in lossless}, ports)

    return PortPart(OWN, frozenset({"watchdogs", "counters"}), parse, (ROCE, QOS))


def parsed(timing: Shown, class_of: Mapping[int, int], ports: Parts) -> Facts:
    """Return the watchdog of each lossless priority, and how often it met a storm."""
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
        watchdogs=watchdogs or Absent(f"{OWN}: no port shows a lossless class"),
        counters=counted(OWN, {"watchdog_detected": detected}),
    )


def _watchdog(row: Shown, timing: Shown, *, is_on: bool) -> Watchdog:
    """Return one watchdog: it detects after some polls, and ends with the first poll that meets no pause."""
    poll_ms = whole(timing.get("polling-interval"))
    polls = whole(timing.get("robustness"))
    return Watchdog(
        is_on=is_on,
        is_stormed=word(row, "status").upper() == "DEADLOCK",
        detection_ms=None if poll_ms is None or polls is None else poll_ms * polls,
        restoration_ms=poll_ms,
        action=ACTION if is_on else "",
    )
