"""What ports count by priority and by queue."""

from collections.abc import Iterator, Mapping, Sequence

from netkit.facts import Facts
from netkit.facts.counter import place
from netkit.platforms.nvue.facts.part import Parts, PortPart
from netkit.platforms.nvue.facts.shown import Shown, counted, index, objects, under, whole

# Group of the answer → counter → key. Priority groups are numbered as the priorities are.
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


def part(path: str) -> PortPart:
    """Return what to ask; where the path is depends on the release."""

    def parse(ports: Parts, _texts: Sequence[str]) -> Facts:
        counters: dict[str, dict[str, int]] = {}
        for port, shown in ports.items():
            for name, at, count in _counts(port, shown):
                counters.setdefault(name, {})[at] = count
        return Facts(counters=counted(path, counters))

    return PortPart(path, frozenset({"counters"}), parse)


def _counts(port: str, shown: Shown) -> Iterator[tuple[str, str, int]]:
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
