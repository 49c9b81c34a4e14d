"""What ports count of lossless traffic, and how full its queues are: one command for the whole switch."""

from collections.abc import Iterator, Mapping, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.qos import Buffer
from netkit.platforms.nvue.facts.qos import ROCE, Classes, by_port, classes, commands_for
from netkit.platforms.nvue.facts.shown import Shown, counted, numbers, size, tree, under, unread, whole
from netkit.platforms.view import View


def view(ports: Sequence[str], *, has_aspects: bool) -> View:
    """Return the view; releases that do not show all ports at once are asked for each."""
    counting = commands_for(ports, "roce counters", "roce-counters", has_aspects=has_aspects)

    def parse(*texts: str) -> Facts:
        roce, *rest = texts
        shown = by_port(ports, rest, ("qos", "roce", "counters"), has_aspects=has_aspects)
        if not shown:
            why = unread(counting[0], rest[0] if rest else "")
            return Facts(buffers=why, counters=why)
        return parsed(tree(roce) or {}, shown)

    return View((ROCE, *counting), frozenset({"buffers", "counters"}), parse, is_costly=not has_aspects)


def parsed(roce: Shown, shown: Mapping[str, Shown]) -> Facts:
    """Return counters and buffers. The counts are sums over the lossless priorities, so that there must be one."""
    counters: dict[str, dict[str, int]] = {}
    for port, found in shown.items():
        _count(counters, "ecn_marked", port, under(found, "tx-stats", "tx-ecn-stats"), "ecn-marked-packets")
    priorities = numbers(under(roce, "pfc").get("pfc-priority"))
    if len(priorities) != 1:
        why = Absent(f"{ROCE}: not one lossless priority, so that sums over them tell of none")
        return Facts(buffers=why, counters=counted(ROCE, counters))
    (priority,) = priorities
    found_classes = classes(roce, {})
    for port, found in shown.items():
        _lossless(counters, place(port, priority), found)
        for number, stats in _queues(found_classes, priority, found):
            _queue(counters, place(port, number), stats)
    buffers = {place(port, priority): buffer for port, found in shown.items() if (buffer := _buffer(found)) != Buffer()}
    return Facts(buffers=buffers or Absent(f"{ROCE}: no buffer is shown"), counters=counted(ROCE, counters))


def _lossless(counters: dict[str, dict[str, int]], at: str, found: Shown) -> None:
    """Count what belongs to the lossless priority of a port."""
    received, sent = under(found, "rx-stats", "rx-pfc-stats"), under(found, "tx-stats", "tx-pfc-stats")
    _count(counters, "rx_pause", at, received, "pause-packets")
    _count(counters, "rx_pause_us", at, received, "pause-duration")
    _count(counters, "tx_pause", at, sent, "pause-packets")
    _count(counters, "tx_pause_us", at, sent, "pause-duration")
    _count(counters, "buffer_drops", at, under(found, "rx-stats", "rx-roce-stats"), "no-buffer-discard")


def _queues(found: Classes, priority: int, shown: Shown) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the queues of RoCE data and of CNPs, as far as it is known which ones they are."""
    data = (found.of_priority or {}).get(priority)
    stats = under(shown, "tx-stats")
    if data is not None:
        yield data, _named(under(stats, "tx-roce-stats"), "roce")
    if found.strict and len(found.strict) == 1:
        yield next(iter(found.strict)), _named(under(stats, "tx-cnp-stats"), "cnp")


def _named(stats: Shown, prefix: str) -> dict[str, object]:
    named = {"packets": f"{prefix}-packets", "bytes": f"{prefix}-bytes", "drops": "unicast-no-buffer-discard"}
    return {name: stats.get(key) for name, key in named.items()}


def _queue(counters: dict[str, dict[str, int]], at: str, stats: Mapping[str, object]) -> None:
    for name, key in (("queue_tx_packets", "packets"), ("queue_tx_bytes", "bytes"), ("queue_drops", "drops")):
        _count(counters, name, at, stats, key)


def _count(counters: dict[str, dict[str, int]], name: str, at: str, stats: Shown, key: str) -> None:
    count = whole(stats.get(key))
    if count is not None:
        counters.setdefault(name, {})[at] = count


def _buffer(found: Shown) -> Buffer:
    """Return how full the egress queue of RoCE data is."""
    queue = under(found, "tx-stats", "tx-roce-stats")
    return Buffer(used_bytes=size(queue.get("tc-usage")), peak_bytes=size(queue.get("tc-max-usage")))
