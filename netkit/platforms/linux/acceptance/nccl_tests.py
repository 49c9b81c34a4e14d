"""Parser of nccl-tests: the table of all_reduce_perf and similar tests, of any version, and their JSON.

Columns are found by their headings: older versions have no root, and an `error` that is not a count.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from netkit.facts.snapshot import Collective, Trial
from netkit.platforms.linux.facts.reading import member, members, number, whole, word

TOOL = "nccl-tests"
RANK = re.compile(
    r"^#\s+Rank\s+([0-9]{1,7})\s+(?:Group\s+([0-9]{1,7})\s+)?(?:Pid\s+[0-9]{1,10}\s+)?on\s+(\S{1,253}) device\b"
)
BEGIN = re.compile(r"^# (?:nccl-tests version|Collective test starting|nThread )")
TEST = re.compile(
    r"\b((?:all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|sendrecv|gather|scatter)_perf)\b"
)
VERSION = re.compile(r"(?:^# nccl-tests version |NCCL version )([0-9][\w.]{0,30})")
OUTSIDE = re.compile(r"^#? Out of bounds values : ([0-9]{1,18}) ")
MEAN = re.compile(r"^#? Avg bus bandwidth\s*: (\S{1,24})")
FAILED = re.compile(r"Test (?:NCCL |CUDA )?failure|Test timeout|\bunhandled (?:system|cuda) error")
SIZE = ("size", "bytes")
"""The heading of the first column, now and in the first versions."""
PREFIX = re.compile(r"^(?:\[[0-9]{1,6},[0-9]{1,6}\](?:<std\w{3}>)?:|[0-9]{1,6}:) ?")
"""Prefixes with the rank that mpirun and srun can add to lines."""


@dataclass(slots=True)
class _Run:
    """A run under construction."""

    test: str = ""
    version: str = ""
    failure: str = ""
    hosts: list[str] = field(default_factory=list)
    ranks: int = 0
    numbers: set[int] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    header: list[str] = field(default_factory=list)
    rows: dict[int, Collective] = field(default_factory=dict)
    outside: int | None = None
    mean: float | None = None
    is_over: bool = False


def trials(text: str) -> tuple[Trial, ...]:
    """Parse every run in a text."""
    runs = [_Run()]
    for raw in text.splitlines():
        line = PREFIX.sub("", raw)
        run = runs[-1]
        if (run.rows or run.is_over) and (BEGIN.match(line) or RANK.match(line)):
            run = _Run()
            runs.append(run)
        _read(run, line)
    return tuple(_trial(run) for run in runs if run.header or run.ranks or run.failure)


def _read(run: _Run, line: str) -> None:
    if line.startswith(("#", " Out of bounds", " Avg bus")):
        _read_comment(run, line)
    elif run.header:
        _read_row(run, line.split())
    match = TEST.search(line)
    run.test = run.test or (match[1] if match else "")
    version = VERSION.search(line)
    run.version = run.version or (version[1] if version else "")
    if FAILED.search(line):
        run.failure = run.failure or line.strip()[:160]


def _read_comment(run: _Run, line: str) -> None:
    rank, outside, mean = RANK.match(line), OUTSIDE.match(line), MEAN.match(line)
    words = line[1:].split()
    if rank:
        if int(rank[1]) in run.numbers:
            run.failure = run.failure or "its processes did not find each other: several call themselves rank 0"
        run.numbers.add(int(rank[1]))
        run.ranks += 1
        run.hosts += [] if rank[3] in run.hosts else [rank[3]]
        run.groups.add(rank[2] or "0")
    elif {"algbw", "busbw"} <= set(words) and words[0] in SIZE:
        run.header = words
    elif outside:
        run.outside = int(outside[1])
    elif mean:
        run.mean, run.is_over = number(mean[1]), True


def _read_row(run: _Run, cells: Sequence[str]) -> None:
    has_all = len(run.header) <= len(cells) <= len(run.header) + 1  # a timestamp has a blank in it
    size = whole(cells[0]) if has_all else None
    if size is None:
        return
    columns: dict[str, list[str]] = {}
    for name, cell in zip(run.header, cells, strict=False):
        columns.setdefault(name, []).append(cell)
    out, *rest = (number(cell) for cell in columns["busbw"])
    wrong = [count for cell in columns.get("#wrong", []) if (count := number(cell)) is not None]
    run.rows[size] = Collective(size, out, next(iter(rest), None), int(sum(wrong)) if wrong else None)


def _trial(run: _Run) -> Trial:
    unended = "" if run.is_over else "it ended before its last line"
    return Trial(
        tool=TOOL,
        test=run.test,
        ends=tuple(run.hosts),
        version=run.version,
        failure=run.failure or unended,
        ranks=run.ranks,
        groups=max(1, len(run.groups)),
        collectives=tuple(run.rows[size] for size in sorted(run.rows)),
        mean_gbytes_s=run.mean,
        out_of_bounds=run.outside,
    )


def of_document(found: Mapping[str, Any]) -> Trial:
    """Parse the JSON of option -J, without the environment, which may hold secrets."""
    devices = members(member(found, "config").get("devices", []))
    hosts = tuple(dict.fromkeys(filter(None, (word(one, "hostname") for one in devices))))
    rows = tuple(row for one in members(found.get("results", [])) if (row := _document_row(one)) is not None)
    args = found.get("args")
    texts = (one for one in (args if isinstance(args, list) else [args]) if isinstance(one, str))
    test = TEST.search(" ".join(texts))
    return Trial(
        tool=TOOL,
        test=test[1] if test else "",
        ends=hosts,
        version=str(whole(found.get("nccl_version")) or ""),
        failure="" if "average_bus_bandwidth" in found else "it ended before its last line",
        ranks=len(devices),
        groups=max(1, len({str(one.get("group", 0)) for one in devices})),
        collectives=tuple(sorted(rows, key=lambda row: row.size_bytes)),
        mean_gbytes_s=number(member(found, "average_bus_bandwidth").get("bandwidth")),
        out_of_bounds=whole(member(found, "out_of_bounds").get("count")),
    )


def _document_row(found: Mapping[str, Any]) -> Collective | None:
    size = whole(found.get("size"))
    if size is None:
        return None
    out, inside = (member(found, way) for way in ("out_of_place", "in_place"))
    wrong = [count for way in (out, inside) if (count := number(way.get("nwrong"))) is not None]
    total = int(sum(wrong)) if wrong else None
    return Collective(size, number(out.get("bus_bw")), number(inside.get("bus_bw")), total)
