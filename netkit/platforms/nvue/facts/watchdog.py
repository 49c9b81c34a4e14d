"""The PFC watchdog of each port: NVUE tells it port by port only."""

from collections.abc import Mapping, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.qos import Watchdog
from netkit.platforms.nvue.facts.qos import QOS, ROCE, classes
from netkit.platforms.nvue.facts.shown import Shown, counted, index, objects, switched, tree, under, unread, whole, word
from netkit.platforms.view import View

OWN = "nv show interface PORT qos pfc-watchdog -o json"
ACTION = "drop"
"""All that a watchdog of Cumulus Linux does."""


def view(ports: Sequence[str], lossless: Sequence[int]) -> View:
    """Return the view."""
    own = tuple(OWN.replace("PORT", port) for port in ports)

    def parse(roce_text: str, qos_text: str, *texts: str) -> Facts:
        ports_shown = {
            port: shown for port, text in zip(ports, texts, strict=True) if (shown := tree(text)) is not None
        }
        if not ports_shown:
            why = unread(own[0], texts[0])
            return Facts(watchdogs=why, counters=why)
        qos = tree(qos_text) or {}
        of_priority = classes(tree(roce_text) or {}, qos).of_priority or {}
        return parsed(under(qos, "pfc-watchdog"), {at: of_priority.get(at, at) for at in lossless}, ports_shown)

    return View((ROCE, QOS, *own), frozenset({"watchdogs", "counters"}), parse, is_costly=True)


def parsed(timing: Shown, class_of: Mapping[int, int], ports: Mapping[str, Shown]) -> Facts:
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
