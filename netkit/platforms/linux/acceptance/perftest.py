"""Parsers of perftest (ib_write_bw, ib_read_lat and similar tests) and iperf3, including their JSON."""

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from netkit.facts.snapshot import Stream, Transfer, Trial
from netkit.platforms.linux.facts.reading import member, members, number, whole, word

TOOL = "perftest"
TITLE = re.compile(r"(RDMA_Write|RDMA_Read|Send|Atomic)([\w ]{0,60})[ _](BW|Latency)[ _]Test")
VERBS = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send", "Atomic": "atomic"}
DEVICE = re.compile(r"\bDevice\s*: ([\w.-]{1,64})")
GID = re.compile(r"^ ?GID: ((?:[0-9]{1,3}:){15}[0-9]{1,3})\s*$", re.MULTILINE)
COLUMN = re.compile(
    r"#\w+|BW (?:peak|average)\[[^\]]{1,12}\]|BW Port\d\[[^\]]{1,12}\]|MsgRate(?: Port\d)?\[\w+\]"
    r"|t_\w+\[usec\]|[0-9.]+% percentile\[usec\]|tps average|\w+\[%\]"
)
GBPS = {"Gb/sec": 1.0, "MiB/sec": 8 * 2**20 / 1e9, "MB/sec": 8 * 2**20 / 1e9}
"""Unit → Gb/s; perftest's MB are powers of two."""
NOISE = re.compile(r"^(?:-+|#|\s*$|WARNING|Conflicting CPU|\s*(?:local|remote) address| ?GID:)")
FAILED = re.compile(r"ouldn't|nable to|ailed|not found|error|refused|imeout|rror:", re.IGNORECASE)
LATENCY = {"t_min[usec]": "least", "t_typical[usec]": "typical", "t_avg[usec]": "mean", "99% percentile[usec]": "p99"}


def trials(text: str) -> tuple[Trial, ...]:
    """Parse every run in a text; each starts with its title."""
    titles = list(TITLE.finditer(text))
    stops = [*(title.start() for title in titles[1:]), len(text)]
    found = tuple(_trial(title, text[title.start() : stop]) for title, stop in zip(titles, stops, strict=False))
    return found or ((Trial(tool=TOOL, failure=why),) if (why := _failure(text)) else ())


def _trial(title: re.Match[str], text: str) -> Trial:
    rows = _rows(text)
    device = DEVICE.search(text)
    gids = ([int(one) for one in found.split(":")] for found in GID.findall(text))
    mapped = (gid for gid in gids if gid[:12] == [*[0] * 10, 255, 255] and max(gid) < 256)
    return Trial(
        tool=TOOL,
        test=_test(title),
        ends=tuple(dict.fromkeys(str(IPv4Address(bytes(gid[12:]))) for gid in mapped))[:2],  # the own address first
        failure="" if rows else _failure(text) or "it ended without a result",
        nic=device[1] if device else "",
        is_both_ways="Bidirectional" in title[2],
        transfers=rows,
    )


def _test(title: re.Match[str]) -> str:
    return f"ib_{VERBS[title[1]]}_{'bw' if title[3] == 'BW' else 'lat'}"


def _rows(text: str) -> tuple[Transfer, ...]:
    columns: list[str] = []
    found = {}
    for line in text.splitlines():
        if line.lstrip().startswith("#bytes"):
            columns = COLUMN.findall(line)
        elif columns:
            row = _row(columns, line.split())
            found.update({row.size_bytes: row} if row else {})
    return tuple(found[size] for size in sorted(found))


def _row(columns: Sequence[str], cells: Sequence[str]) -> Transfer | None:
    values = dict(zip(columns, map(number, cells), strict=False))
    size = values.get("#bytes")
    if size is None or len(cells) < len(columns):
        return None
    gbps = {}
    for name, value in values.items():  # a column such as `BW peak[Gb/sec]`
        title, _, unit = name.partition("[")
        scale = GBPS.get(unit.rstrip("]"))
        if value is not None and scale:
            gbps[title] = round(value * scale, 3)
    peak, mean = gbps.get("BW peak"), gbps.get("BW average")
    least, typical, mean_us, p99 = (values.get(name) for name in LATENCY)
    row = Transfer(int(size), mean, peak, least, typical, mean_us, p99)
    return None if row == Transfer(int(size)) else row


def _failure(text: str) -> str:
    """Find the first line with an error."""
    lines = [line.strip() for line in text.splitlines() if not NOISE.match(line) and FAILED.search(line)]
    return lines[0][:160] if lines else ""


def of_document(found: Mapping[str, Any]) -> Trial:
    """Parse the JSON of --out_json."""
    about, result = member(found, "test_info"), member(found, "results")
    title = TITLE.search(word(about, "test"))
    row = _document_row(result)
    return Trial(
        tool=TOOL,
        test=_test(title) if title else "",
        nic=word(about, "Device"),
        failure="" if row else "it holds no result",
        is_both_ways=bool(title and "Bidirectional" in title[2]),
        transfers=(row,) if row else (),
    )


def _document_row(found: Mapping[str, Any]) -> Transfer | None:
    """Parse the single size of a document. It has no unit, so bandwidth is computed from the message rate."""
    size, rate = whole(found.get("MsgSize")), number(found.get("MsgRate"))
    mean, peak = number(found.get("BW_average")), number(found.get("BW_peak"))
    if size is None:
        return None
    gbps = round(rate * size * 8 / 1e3, 3) if rate else None  # millions of messages per second
    scale = gbps / mean if gbps and mean else 0.0
    times = (number(found.get(name)) for name in ("t_min", "t_typical", "t_avg", "percentile_99"))
    row = Transfer(size, gbps, round(peak * scale, 3) if peak and scale else None, *times)
    return None if row == Transfer(size) else row


IPERF3 = "iperf3"


def of_iperf3(found: Mapping[str, Any]) -> Trial:
    start, end = member(found, "start"), member(found, "end")
    test = member(start, "test_start")
    connected = next(iter(members(start.get("connected", []))), {})
    ends = [host for key in ("local_host", "remote_host") if (host := word(connected, key))]
    stream = _stream(test, end)
    return Trial(
        tool=IPERF3,
        test=IPERF3,
        at_s=number(member(start, "timestamp").get("timesecs")),
        ends=tuple(reversed(ends) if test.get("reverse") == 1 else ends),
        version=word(start, "version").removeprefix("iperf "),
        failure=word(found, "error") or ("" if stream else "it holds no result"),
        is_both_ways=test.get("bidir") == 1,
        streams=(stream,) if stream and not word(found, "error") else (),
    )


def _stream(test: Mapping[str, Any], end: Mapping[str, Any]) -> Stream | None:
    """Parse the received traffic, or the sent traffic if the receiver reports none."""
    sums = [member(end, key) for key in ("sum_received", "sum", "sum_sent")]
    total = next((one for one in sums if number(one.get("bits_per_second")) is not None), None)
    if total is None:
        return None
    tos = whole(test.get("tos"))
    return Stream(
        dscp=tos >> 2 if tos is not None and tos < 256 else None,
        gbps=round((number(total.get("bits_per_second")) or 0.0) / 1e9, 6),
        seconds=number(total.get("seconds")) or number(test.get("duration")) or 0.0,
        protocol=word(test, "protocol"),
        retransmits=whole(member(end, "sum_sent").get("retransmits")),
        lost_percent=number(member(end, "sum").get("lost_percent")),
    )
