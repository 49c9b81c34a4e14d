"""iperf3: its JSON, of one process whose streams are all marked alike."""

from collections.abc import Mapping
from typing import Any

from netkit.facts.snapshot import Stream, Trial
from netkit.platforms.linux.facts.reading import member, members, number, whole, word

TOOL = "iperf3"


def of_document(found: Mapping[str, Any]) -> Trial:
    """Return the run that a document tells."""
    start, end = member(found, "start"), member(found, "end")
    test = member(start, "test_start")
    connected = next(iter(members(start.get("connected", []))), {})
    ends = [host for key in ("local_host", "remote_host") if (host := word(connected, key))]
    stream = _stream(test, end)
    return Trial(
        tool=TOOL,
        test=TOOL,
        at_s=number(member(start, "timestamp").get("timesecs")),
        ends=tuple(reversed(ends) if test.get("reverse") == 1 else ends),
        version=word(start, "version").removeprefix("iperf "),
        failure=word(found, "error") or ("" if stream else "it holds no result"),
        is_both_ways=test.get("bidir") == 1,
        streams=(stream,) if stream and not word(found, "error") else (),
    )


def _stream(test: Mapping[str, Any], end: Mapping[str, Any]) -> Stream | None:
    """Return what arrived, or what was sent where the receiver told nothing."""
    sums = [member(end, key) for key in ("sum_received", "sum", "sum_sent")]
    told = next((one for one in sums if number(one.get("bits_per_second")) is not None), None)
    if told is None:
        return None
    tos = whole(test.get("tos"))
    return Stream(
        dscp=tos >> 2 if tos is not None and tos < 256 else None,
        gbps=round((number(told.get("bits_per_second")) or 0.0) / 1e9, 6),
        seconds=number(told.get("seconds")) or number(test.get("duration")) or 0.0,
        protocol=word(test, "protocol"),
        retransmits=whole(member(end, "sum_sent").get("retransmits")),
        lost_percent=number(member(end, "sum").get("lost_percent")),
    )
