"""The QoS that commands set on NICs, in scripts and units of anybody: mlnx_qos, dcb, and values written to sysfs.

Only plain numbers are read, and variables that the same file sets once. What is set to several values is unknown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from netkit.platforms.existing import ExistingNicQos, number

T = TypeVar("T")
VARIABLE = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]*))")
MLNX_QOS = re.compile(r"\bmlnx_qos\b([^;|&\n]*)")
MLNX_OPTION = re.compile(r"\s(?:--(pfc|prio_tc|tsa|tcbw|dscp2prio)[=\s]|-([fpst])\s)\s*[\"']?([a-z0-9,]+)")
MLNX_SHORT = {"f": "pfc", "p": "prio_tc", "s": "tsa", "t": "tcbw"}
DCB = re.compile(r"\bdcb\s+(?:-\S+\s+)*(?:app|pfc|ets)\s+(?:add|replace|set)\b([^;|&\n]*)")
DCB_OPTION = re.compile(r"\b(prio-pfc|dscp-prio|prio-tc|tc-tsa|tc-bw)((?:\s+\w+:\w+)+)")
WRITTEN = re.compile(r"\becho\s+[\"']?(\d+)[\"']?\s*(?:>|\|\s*(?:sudo\s+)?tee)\s*[\"']?([^\s\"';|&]+)")
FIRMWARE = re.compile(r"\b(CNP_DSCP|CNP_802P_PRIO)_P\d+=(\d+)\b")
RDMA_CM = re.compile(r"\bcma_roce_tos\b[^;|&\n]*\s-t\s+(\d+)")
CNP_DSCP, CNP_PRIORITY = ("roce_np/cnp_dscp", "np_cnp_dscp"), ("roce_np/cnp_802p_prio", "np_cnp_prio")
TRAFFIC_CLASS = ("/traffic_class", "/default_roce_tos")
CLASS_SELECTOR, ASSURED = re.compile(r"CS([0-7])"), re.compile(r"AF([1-4])([1-3])")
EXPEDITED = 46
ECN_BITS = 2
PRIORITIES = range(8)
DSCPS = range(64)


def nic_qos(texts: Iterable[str], traffic_class: str) -> ExistingNicQos:
    """Read the commands of scripts; `traffic_class` is what NCCL marks with."""
    text = "\n".join(texts).replace("\\\n", " ")
    mlnx, dcb = list(_mlnx(text)), list(_dcb(text))
    pauses = [*_rows(mlnx, "pfc"), *_rows(dcb, "prio-pfc")]
    written = WRITTEN.findall(text)
    cnp = [(key, number(value)) for key, value in FIRMWARE.findall(text)]
    marks = [*_to(written, TRAFFIC_CLASS), *map(number, RDMA_CM.findall(text)), number(traffic_class)]
    return ExistingNicQos(
        priority=agreed(lossless for row in pauses if (lossless := _on(row)) is not None),
        dscp=agreed(mark >> ECN_BITS for mark in marks if mark is not None and mark >> ECN_BITS in DSCPS),
        cnp_dscp=_first(_to(written, CNP_DSCP), (value for key, value in cnp if key == "CNP_DSCP")),
        cnp_priority=_first(_to(written, CNP_PRIORITY), (value for key, value in cnp if key != "CNP_DSCP")),
        dscp_to_priority=dict(_dscp_map(mlnx, dcb)),
        weights=_weights(
            [*_rows(mlnx, "tcbw"), *_rows(dcb, "tc-bw")],
            agreed(map(_items, (*_rows(mlnx, "tsa"), *_rows(dcb, "tc-tsa")))),
        ),
    )


def with_variables(variables: Mapping[str, str], text: str) -> str:
    """Replace the variables that are set once."""
    once = {
        name: value.partition(" #")[0].strip().strip("'\"")
        for name, value in variables.items()
        if not re.search(rf"(?<![\w$}}{{]){name}\b", text)
    }
    return VARIABLE.sub(lambda match: once.get(match[1] or match[2], match[0]), text)


def agreed(values: Iterable[T]) -> T | None:
    """Return the value that all have."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _first(*sources: Iterable[int | None]) -> int | None:
    found = (agreed(value for value in source if value is not None) for source in sources)
    return next((one for one in found if one is not None), None)


Option = tuple[str, dict[str, str]]
"""An option, and its value by priority, class or DSCP."""


def _mlnx(text: str) -> Iterator[Option]:
    for command in MLNX_QOS.findall(text):
        for long, short, value in MLNX_OPTION.findall(command):
            words = value.split(",")
            name = long or MLNX_SHORT[short]
            if name == "dscp2prio" and words[0] == "set" and len(words) == 3:
                yield name, {words[1]: words[2]}
            elif name != "dscp2prio" and len(words) == len(PRIORITIES):
                yield name, {str(index): word for index, word in enumerate(words)}


def _dcb(text: str) -> Iterator[Option]:
    for command in DCB.findall(text):
        for name, pairs in DCB_OPTION.findall(command):
            row = dict(pair.split(":") for pair in pairs.split())
            every = row.pop("all", None)
            yield name, row if every is None else {str(index): every for index in PRIORITIES} | row


def _rows(options: Iterable[Option], name: str) -> Iterator[dict[str, str]]:
    return (row for option, row in options if option == name)


def _items(row: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(row.items()))


def _on(row: Mapping[str, str]) -> int | None:
    """Return the priority with PFC; None without one, and with several."""
    found = [number(priority) for priority, state in row.items() if state in {"1", "on"}]
    return found[0] if len(found) == 1 else None


def _to(written: Iterable[tuple[str, str]], targets: tuple[str, ...]) -> Iterator[int | None]:
    return (number(value) for value, target in written if target.endswith(targets))


def _dscp_map(mlnx: Iterable[Option], dcb: Iterable[Option]) -> Iterator[tuple[int, int]]:
    for row in (*_rows(mlnx, "dscp2prio"), *_rows(dcb, "dscp-prio")):
        for code, text in row.items():
            dscp, priority = _dscp(code), number(text)
            if dscp in DSCPS and priority is not None and priority in PRIORITIES:
                yield dscp, priority


def _dscp(text: str) -> int:
    """Return the code point of a number or a name as dcb takes it; -1 for others."""
    if match := CLASS_SELECTOR.fullmatch(text):
        return 8 * int(match[1])
    if match := ASSURED.fullmatch(text):
        return 8 * int(match[1]) + 2 * int(match[2])
    found = EXPEDITED if text == "EF" else number(text)
    return -1 if found is None else found


def _weights(shares: Iterable[Mapping[str, str]], algorithms: tuple[tuple[str, str], ...] | None) -> dict[int, int]:
    row, kinds = dict(agreed(map(_items, shares)) or ()), dict(algorithms or ())
    pairs = ((number(one), number(share)) for one, share in row.items() if kinds.get(one) != "strict")
    return {one: share for one, share in pairs if one is not None and share}
