"""What `dcb` of iproute2 prints of app, pfc, ets and buffer, with numbers instead of names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from netkit.facts import Absent
from netkit.facts.qos import Ecn, PortQos
from netkit.platforms.linux.facts.reading import Card, Tree, number, pairs, plain, sections, whole

APP_SHOWN = "app was shown"
"""Said after it: without entries it is empty."""
ROWS = ("dscp-prio", "prio-pfc", "tc-tsa", "tc-bw", "prio-tc", "prio-buffer")
PAIR = re.compile(r"([0-9]{1,2}):(\S+)")


def parse_dcb(text: str) -> PortQos:
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


TRUST = re.compile(r"^Priority trust state: *(\S+)", re.MULTILINE)
MAP = re.compile(r"^\s*prio:([0-7]) dscp:([0-9,]*)", re.MULTILINE)
ROW = re.compile(r"^\s*(enabled|buffer)((?:\s+[0-9]){8})\s*$", re.MULTILINE)
CABLE = re.compile(r"^Cable len: *(\S+)", re.MULTILINE)
CLASS = re.compile(r"^tc: *([0-7])\b.*?tsa: *([a-z]+)(?:.*?bw: *([0-9]{1,3})%)?", re.MULTILINE)
MEMBER = re.compile(r"^\s+priority: *([0-7])\s*$", re.MULTILINE)


def is_of_it(text: str) -> bool:
    """Whether the tool printed this."""
    return TRUST.search(plain(text)) is not None


def parse_mlnx_qos(text: str) -> PortQos:
    """Return the QoS it shows."""
    told = plain(text)
    rows = {match[1]: [int(word) for word in match[2].split()] for match in ROW.finditer(told)}
    trust, cable = TRUST.search(told), CABLE.search(told)
    enabled = rows.get("enabled")
    pfc = None if enabled is None else frozenset(priority for priority, on in enumerate(enabled) if on)
    algorithms = {int(match[1]): match[2] for match in CLASS.finditer(told)}
    weights = {int(match[1]): int(match[3]) for match in CLASS.finditer(told) if match[3] is not None}
    return PortQos(
        trust=trust[1] if trust else "",
        dscp_to_priority=_map(told) or None,
        pfc_rx=pfc,
        pfc_tx=pfc,
        weights=weights if algorithms else None,
        strict=frozenset(tc for tc, name in algorithms.items() if name == "strict") if algorithms else None,
        priority_to_class=_classes(told) or None,
        cable_m=number(cable[1]) if cable else None,
        priority_to_buffer=dict(enumerate(rows["buffer"])) if "buffer" in rows else None,
    )


def _map(text: str) -> Mapping[int, int]:
    """Return the priority of each DSCP; with other trust than DSCP there is none."""
    return {
        int(dscp): int(match[1])
        for match in MAP.finditer(text)
        for dscp in match[2].split(",")
        if dscp and int(dscp[:4]) < 64 and len(dscp) < 4
    }


def _classes(text: str) -> Mapping[int, int]:
    """Return the traffic class of each priority: they stand below their class."""
    found: dict[int, int] = {}
    for block in text.split("\ntc:")[1:]:
        head = re.match(r" *([0-7])\b", block)
        for match in MEMBER.finditer(block) if head else ():
            found[int(match[1])] = int(head[1]) if head else 0
    return found


PRIORITIES = range(8)
TCLASS = "Global tclass="
DEBUG = "/sys/kernel/debug/mlx5"
CONFIG = "/sys/kernel/config/rdma_cm"


def qos(tree: Tree, cards: Sequence[Card], shown: str, pause: str) -> Mapping[str, PortQos] | Absent:
    """Return the QoS of the NICs whose tool told it."""
    told, pauses = sections(shown), sections(pause)
    found = {
        card.interface: _with_driver(
            replace(_by_tool(told[card.interface]), is_global_pause=_is_paused(pauses.get(card.interface, ""))),
            tree,
            card,
        )
        for card in cards
        if card.interface in told
    }
    known = {name: one for name, one in found.items() if one != PortQos()}
    return known or Absent("neither mlnx_qos nor dcb shows the QoS of any NIC")


def _by_tool(text: str) -> PortQos:
    return parse_mlnx_qos(text) if is_of_it(text) else parse_dcb(text)


def _is_paused(text: str) -> bool | None:
    """Return whether pauses of the whole port are on in any direction."""
    told = {value for key, value in pairs(text) if key in {"RX", "TX"}} & {"on", "off"}
    return "on" in told if told else None


def _with_driver(found: PortQos, tree: Tree, card: Card) -> PortQos:
    """Return QoS with what files tell: by the vendor's driver in sysfs, by the kernel's own in debugfs."""
    ecn, debug = f"{card.net}/ecn", f"{DEBUG}/{card.pci}/cc_params"
    notifies, reacts = _enabled(tree, f"{ecn}/roce_np/enable"), _enabled(tree, f"{ecn}/roce_rp/enable")
    tclass = tree.text(f"{card.folder}/infiniband/{card.rdma}/tc/1/traffic_class")
    return replace(
        found,
        ecn_notifies=notifies,
        ecn_reacts=reacts,
        ecn=_ecn(notifies, reacts, found.priority_to_class),
        cnp_dscp=_first(tree, f"{ecn}/roce_np/cnp_dscp", f"{debug}/np_cnp_dscp"),
        cnp_priority=_first(tree, f"{ecn}/roce_np/cnp_802p_prio", f"{debug}/np_cnp_prio"),
        data_tos=whole(tclass.removeprefix(TCLASS)),
        cm_tos=whole(tree.text(f"{CONFIG}/{card.rdma}/ports/1/default_roce_tos")),
    )


def _enabled(tree: Tree, folder: str) -> frozenset[int] | None:
    told = {priority: tree.text(f"{folder}/{priority}") for priority in PRIORITIES}
    if not any(told.values()):
        return None
    return frozenset(priority for priority, text in told.items() if text == "1")


def _ecn(
    notifies: frozenset[int] | None, reacts: frozenset[int] | None, classes: Mapping[int, int] | None
) -> Mapping[int, Ecn] | None:
    """Return by traffic class whether both sides of a NIC take part: one alone slows nobody down."""
    if notifies is None or reacts is None:
        return None
    both = notifies & reacts
    return {(classes or {}).get(priority, priority): Ecn(is_on=True) for priority in sorted(both)}


def _first(tree: Tree, *paths: str) -> int | None:
    told = (whole(tree.text(path)) for path in paths)
    return next((value for value in told if value is not None), None)
