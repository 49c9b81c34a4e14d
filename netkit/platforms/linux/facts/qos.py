"""QoS of NICs, in the words of a switch port: by mlnx_qos or dcb, the files of the driver, and ethtool's pause."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from netkit.facts import Absent
from netkit.facts.qos import Ecn, PortQos
from netkit.platforms.linux.facts import dcb, mlnx_qos
from netkit.platforms.linux.facts.reading import pairs, sections, whole
from netkit.platforms.linux.facts.tree import Card, Tree

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
    return mlnx_qos.parse(text) if mlnx_qos.is_of_it(text) else dcb.parse(text)


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
