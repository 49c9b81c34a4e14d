"""OpenConfig's counters: of every server that speaks it, whatever the platform.

The leaves of interfaces and of queues are those of openconfig-interfaces and openconfig-qos. Pauses by priority and FEC
are where Cumulus Linux documents them; OpenConfig has none, and MAC pauses of a whole port are not PFC.
"""

import re
from collections.abc import Mapping

from netkit.facts import counter
from netkit.platforms.agents import Sums
from netkit.platforms.gnmi.message import Path, PathElement

SHAPES: Mapping[tuple[str, ...], str] = {
    ("interfaces", "interface", "state", "counters"): "",
    ("interfaces", "interface", "ethernet", "state", "counters"): "ethernet/",
    ("interfaces", "interface", "ethernet", "phy", "state"): "phy/",
    ("qos", "interfaces", "interface", "output", "queues", "queue", "state"): "queue/",
    ("qos", "interfaces", "interface", "state", "switch-priority", "counters"): "priority/",
}
"""Names of the steps of a path → what netkit puts before the leaf at its end."""
NUMBERED = ("queue", "switch-priority")
"""Lists whose entries belong to one queue or priority of a port."""
COUNTERS: Mapping[str, Sums] = {
    "rx_bytes": (("in-octets",),),
    "tx_bytes": (("out-octets",),),
    "rx_packets": (("in-pkts",), ("in-unicast-pkts", "in-multicast-pkts", "in-broadcast-pkts")),
    "tx_packets": (("out-pkts",), ("out-unicast-pkts", "out-multicast-pkts", "out-broadcast-pkts")),
    "rx_errors": (("in-errors",),),
    "tx_errors": (("out-errors",),),
    "rx_drops": (("in-discards",),),
    "tx_drops": (("out-discards",),),
    "carrier_changes": (("carrier-transitions",), ("ethernet/carrier-transitions",)),
    "rx_pause": (("priority/in-pause-pkts",),),
    "tx_pause": (("priority/out-pause-pkts",),),
    "queue_tx_packets": (("queue/transmit-pkts",),),
    "queue_tx_bytes": (("queue/transmit-octets",),),
    "queue_drops": (("queue/dropped-pkts",), ("queue/no-buffer-uc-dropped-pkts",)),
    "queue_ecn_marked": (("queue/ecn-marked-pkts",),),
    "fec_uncorrectable": (("phy/rs-fec-uncorrectable-blocks",),),
    "corrected_bits": (("phy/corrected-bits",),),
    "received_bits": (("phy/received-bits",),),
}
NUMBER = re.compile(r"(?:.*\D)?(\d{1,2})", re.ASCII)
"""Queues are called 3, UC3, TC-3: the number at the end is theirs."""
LAST = 7


def place(path: Path, names: Mapping[str, str]) -> tuple[str, str] | None:
    """Return how netkit calls the leaf at a path, and where it counts; None when it is no counter."""
    if len(path) < 2:
        return None
    prefix = SHAPES.get(tuple(_plain(one.name) for one in path[:-1]))
    port = next((_key(one) for one in path if _plain(one.name) == "interface"), "")
    if prefix is None or not port:
        return None
    port = names.get(port, port)
    numbered = next((one for one in path if _plain(one.name) in NUMBERED), None)
    number = _number(numbered) if numbered else None
    if numbered and number is None:
        return None
    return prefix + _plain(path[-1].name), counter.place(port, number) if number is not None else port


def _plain(name: str) -> str:
    """Return a name without the module it is from."""
    return name.rpartition(":")[2]


def _key(step: PathElement) -> str:
    return step.keys.get("name") or step.keys.get("interface-id") or ""


def _number(step: PathElement) -> int | None:
    found = next((match for key in step.keys.values() if (match := NUMBER.fullmatch(key))), None)
    return int(found[1]) if found and int(found[1]) <= LAST else None
