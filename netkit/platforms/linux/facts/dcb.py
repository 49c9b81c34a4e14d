"""What `dcb` of iproute2 prints of app, pfc, ets and buffer, with numbers instead of names."""

import re
from collections.abc import Mapping

from netkit.facts.qos import PortQos
from netkit.platforms.linux.facts.reading import whole

APP_SHOWN = "app was shown"
"""Said after it: without entries it is empty."""
ROWS = ("dscp-prio", "prio-pfc", "tc-tsa", "tc-bw", "prio-tc", "prio-buffer")
PAIR = re.compile(r"([0-9]{1,2}):(\S+)")


def parse(text: str) -> PortQos:
    """Return the QoS it shows."""
    rows = _rows(text)
    if not {"prio-pfc", "prio-tc"} & set(rows):
        return PortQos()
    pfc = frozenset(index for index, word in rows["prio-pfc"].items() if word == "on") if "prio-pfc" in rows else None
    algorithms = rows.get("tc-tsa", {})
    weights = _numbers(rows.get("tc-bw", {}))
    mapping = _numbers(rows.get("dscp-prio", {}))
    return PortQos(
        # The driver trusts DSCP from the first entry on, and PCP again when the last one is gone.
        trust="dscp" if mapping else "pcp" if APP_SHOWN in text else "",
        dscp_to_priority=mapping or None,
        pfc_rx=pfc,
        pfc_tx=pfc,
        weights={tc: weight for tc, weight in weights.items() if algorithms.get(tc) == "ets"} if algorithms else None,
        strict=frozenset(tc for tc, name in algorithms.items() if name == "strict") if algorithms else None,
        priority_to_class=_numbers(rows["prio-tc"]) if "prio-tc" in rows else None,
        priority_to_buffer=_numbers(rows["prio-buffer"]) if "prio-buffer" in rows else None,
    )


def _rows(text: str) -> dict[str, dict[int, str]]:
    found = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" ")
        if name in ROWS:
            found[name] = {int(index): value for index, value in PAIR.findall(rest)}
    return found


def _numbers(row: Mapping[int, str]) -> dict[int, int]:
    read = {index: whole(word) for index, word in row.items()}
    return {index: value for index, value in read.items() if value is not None}
