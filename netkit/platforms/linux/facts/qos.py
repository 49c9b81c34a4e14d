"""QoS of NICs: parsers of `mlnx_qos`, of iproute2's `dcb -N`, and of the driver's files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from netkit.facts import Absent
from netkit.facts.qos import Ecn, PortQos
from netkit.platforms.linux.facts.reading import RECENT, Card, Tree, number, pairs, plain, sections, whole

APP_SHOWN = "app was shown"
"""Printed after `dcb app show`, whose output is empty without entries."""
ROWS = ("dscp-prio", "prio-pfc", "tc-tsa", "tc-bw", "prio-tc", "prio-buffer")
PAIR = re.compile(r"([0-9]{1,2}):(\S+)")


def parse_dcb(text: str) -> PortQos:
    """Parse the output of `dcb` for app, pfc, ets and buffer."""
    rows: dict[str, dict[int, str]] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" ")
        if name in ROWS:
            rows[name] = {int(index): value for index, value in PAIR.findall(rest)}
    if not {"prio-pfc", "prio-tc"} & set(rows):
        return PortQos()
    pfc = frozenset(index for index, word in rows["prio-pfc"].items() if word == "on") if "prio-pfc" in rows else None
    algorithms = rows.get("tc-tsa", {})
    weights = _numbers(rows.get("tc-bw", {}))
    mapping = _numbers(rows.get("dscp-prio", {}))
    return PortQos(
        # The driver trusts DSCP as soon as there is an entry, and PCP again after the last one is removed.
        trust="dscp" if mapping else "pcp" if APP_SHOWN in text else "",
        dscp_to_priority=mapping or None,
        pfc_rx=pfc,
        pfc_tx=pfc,
        weights={tc: weight for tc, weight in weights.items() if algorithms.get(tc) == "ets"} if algorithms else None,
        strict=frozenset(tc for tc, name in algorithms.items() if name == "strict") if algorithms else None,
        priority_to_class=_numbers(rows["prio-tc"]) if "prio-tc" in rows else None,
        priority_to_buffer=_numbers(rows["prio-buffer"]) if "prio-buffer" in rows else None,
    )


def _numbers(row: Mapping[int, str]) -> dict[int, int]:
    read = {index: whole(word) for index, word in row.items()}
    return {index: value for index, value in read.items() if value is not None}


TRUST = re.compile(r"^Priority trust state: *(\S+)", re.MULTILINE)
MAP = re.compile(r"^\s*prio:([0-7]) dscp:([0-9,]*)", re.MULTILINE)
ROW = re.compile(r"^\s*(enabled|buffer)((?:\s+[0-9]){8})\s*$", re.MULTILINE)
CABLE = re.compile(r"^Cable len: *(\S+)", re.MULTILINE)
CLASS = re.compile(r"^tc: *([0-7])\b.*?tsa: *([a-z]+)(?:.*?bw: *([0-9]{1,3})%)?", re.MULTILINE)
MEMBER = re.compile(r"^\s+priority: *([0-7])\s*$", re.MULTILINE)


def is_mlnx_qos(text: str) -> bool:
    """Whether a text is the output of `mlnx_qos`."""
    return TRUST.search(plain(text)) is not None


@lru_cache(maxsize=RECENT)
def _tool(text: str) -> PortQos:
    """Parse the output of either tool, which is mostly the same for all NICs."""
    return parse_mlnx_qos(text) if is_mlnx_qos(text) else parse_dcb(text)


def parse_mlnx_qos(text: str) -> PortQos:
    """Parse the output of `mlnx_qos`."""
    output = plain(text)
    rows = {match[1]: [int(word) for word in match[2].split()] for match in ROW.finditer(output)}
    trust, cable = TRUST.search(output), CABLE.search(output)
    enabled = rows.get("enabled")
    pfc = None if enabled is None else frozenset(priority for priority, on in enumerate(enabled) if on)
    algorithms = {int(match[1]): match[2] for match in CLASS.finditer(output)}
    weights = {int(match[1]): int(match[3]) for match in CLASS.finditer(output) if match[3] is not None}
    mapping = {
        int(dscp): int(match[1])
        for match in MAP.finditer(output)
        for dscp in match[2].split(",")
        if dscp and int(dscp[:4]) < 64 and len(dscp) < 4
    }
    classes: dict[int, int] = {}  # priority → traffic class; priorities are listed below their class
    for block in output.split("\ntc:")[1:]:
        head = re.match(r" *([0-7])\b", block)
        if head:
            classes |= {int(match[1]): int(head[1]) for match in MEMBER.finditer(block)}
    return PortQos(
        trust=trust[1] if trust else "",
        dscp_to_priority=mapping or None,
        pfc_rx=pfc,
        pfc_tx=pfc,
        weights=weights if algorithms else None,
        strict=frozenset(tc for tc, name in algorithms.items() if name == "strict") if algorithms else None,
        priority_to_class=classes or None,
        cable_m=number(cable[1]) if cable else None,
        priority_to_buffer=dict(enumerate(rows["buffer"])) if "buffer" in rows else None,
    )


PRIORITIES = range(8)
TCLASS = "Global tclass="
DEBUG = "/sys/kernel/debug/mlx5"
CONFIG = "/sys/kernel/config/rdma_cm"
BROADCOM = "/sys/kernel/config/bnxt_re"
IN_EFFECT = re.compile(r"\(([a-z_]+)\)\s*: *(\S+)")


def qos(tree: Tree, cards: Sequence[Card], shown: str, pause: str) -> Mapping[str, PortQos] | Absent:
    """Build the QoS of the NICs whose tool shows it."""
    outputs, pauses = sections(shown), sections(pause)
    found = {}
    for card in cards:
        if card.interface not in outputs:
            continue
        # 802.3x pause in any direction
        states = {value for key, value in pairs(pauses.get(card.interface, "")) if key in {"RX", "TX"}} & {"on", "off"}
        one = replace(_tool(outputs[card.interface]), is_global_pause="on" in states if states else None)
        found[card.interface] = _with_driver(one, tree, card)
    known = {name: one for name, one in found.items() if one != PortQos()}
    return known or Absent("neither mlnx_qos nor dcb shows the QoS of any NIC")


def _with_driver(found: PortQos, tree: Tree, card: Card) -> PortQos:
    """Add the settings from files: the vendor's driver has them in sysfs, the kernel's own in debugfs."""
    ecn, debug = f"{card.net}/ecn", f"{DEBUG}/{card.pci}/cc_params"
    notifies, reacts = _enabled(tree, f"{ecn}/roce_np/enable"), _enabled(tree, f"{ecn}/roce_rp/enable")
    # Both sides of a NIC have to take part in congestion control.
    both = None if notifies is None or reacts is None else sorted(notifies & reacts)
    broadcom = dict(IN_EFFECT.findall(tree.text(f"{BROADCOM}/{card.rdma}/ports/1/cc/apply")))
    if both is None and broadcom.get("ecn_enable"):  # one switch for both sides, on the priority of RoCE
        priority = whole(broadcom.get("roce_prio", "")) if broadcom["ecn_enable"] == "Enabled" else None
        notifies = reacts = frozenset[int]() if priority is None else frozenset({priority})
        both = sorted(notifies)
    classes = found.priority_to_class or {}
    tclass = tree.text(f"{card.folder}/infiniband/{card.rdma}/tc/1/traffic_class")
    return replace(
        found,
        ecn_notifies=notifies,
        ecn_reacts=reacts,
        ecn=None if both is None else {classes.get(priority, priority): Ecn(is_on=True) for priority in both},
        cnp_dscp=_or(_first(tree, f"{ecn}/roce_np/cnp_dscp", f"{debug}/np_cnp_dscp"), broadcom.get("cnp_dscp")),
        cnp_priority=_or(
            _first(tree, f"{ecn}/roce_np/cnp_802p_prio", f"{debug}/np_cnp_prio"), broadcom.get("cnp_prio")
        ),
        data_tos=whole(tclass.removeprefix(TCLASS)),
        cm_tos=whole(tree.text(f"{CONFIG}/{card.rdma}/ports/1/default_roce_tos")),
    )


def _enabled(tree: Tree, folder: str) -> frozenset[int] | None:
    texts = {priority: tree.text(f"{folder}/{priority}") for priority in PRIORITIES}
    if not any(texts.values()):
        return None
    return frozenset(priority for priority, text in texts.items() if text == "1")


def _or(found: int | None, other: str | None) -> int | None:
    return whole(other or "") if found is None else found


def _first(tree: Tree, *paths: str) -> int | None:
    values = (whole(tree.text(path)) for path in paths)
    return next((value for value in values if value is not None), None)
