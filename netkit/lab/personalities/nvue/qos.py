"""Configuration → how ports treat traffic: what the RoCE mode sets, and what is configured over it."""

from collections.abc import Mapping

from netkit.lab.personalities.nvue.qos_rules import is_lossless
from netkit.lab.personalities.nvue.tree import Tree, child, has, is_on, number, text
from netkit.lab.state import CODE_POINTS, PRIORITIES, EcnState, QosState, SchedulerState, WatchdogState

# What the mode sets by itself: Cumulus Linux user guide, RDMA over Converged Ethernet.
ROCE_PRIORITY, CNP_PRIORITY, BEST_EFFORT_CLASS = 3, 6, 0
ROCE_CLASS_OF = {ROCE_PRIORITY: 3, CNP_PRIORITY: 6}
ROCE_SCHEDULERS = {0: SchedulerState("weighted", 50), 3: SchedulerState("weighted", 50), 6: SchedulerState("strict")}
PLAIN_WEIGHTS = (12, 13)
DEFAULT_ECN = EcnState(150_000, 1_500_000, 100)
ROCE_CABLE_M, PFC_CABLE_M = 100, 10
POLL_MS, ROBUSTNESS = 100, 3


def port_qos(tree: Tree, interface: Tree) -> QosState:
    """Return how one port treats traffic."""
    qos, own = child(tree, "qos"), child(interface, "qos")
    lossless, cable_m = _pfc(qos, own)
    return QosState(
        priority_of_dscp=_priorities(qos, own),
        class_of_priority=_classes(qos),
        pfc_priorities=lossless,
        ecn=_ecn(qos, own),
        schedulers=_schedulers(qos, own),
        watchdog=_watchdog(qos, own) if lossless else None,
        cable_length_m=cable_m,
    )


def _profile(qos: Tree, own: Tree, kind: str) -> Tree:
    return child(qos, kind, text(own, kind, "profile") or "default-global")


def _priorities(qos: Tree, own: Tree) -> tuple[int, ...]:
    mapping = _profile(qos, own, "mapping")
    trust = text(mapping, "trust") or ("both" if is_on(qos, "roce") else "l2")
    if trust not in {"l3", "both"}:
        return ()
    moved = child(mapping, "dscp")
    return tuple(number(moved, str(dscp), "switch-priority", default=dscp // 8) for dscp in range(CODE_POINTS))


def _classes(qos: Tree) -> tuple[int, ...]:
    moved = child(qos, "egress-queue-mapping", "default-global", "switch-priority")
    is_roce = is_on(qos, "roce")
    return tuple(
        number(
            moved,
            str(priority),
            "traffic-class",
            default=ROCE_CLASS_OF.get(priority, BEST_EFFORT_CLASS) if is_roce else priority,
        )
        for priority in range(PRIORITIES)
    )


def _pfc(qos: Tree, own: Tree) -> tuple[frozenset[int], float]:
    profile = _profile(qos, own, "pfc")
    configured = frozenset(map(int, child(profile, "switch-priority")))
    if configured:
        both = {"rx", "tx"} <= {way for way in ("rx", "tx") if text(profile, way) != "disable"}
        return configured if both else frozenset(), number(profile, "cable-length", default=PFC_CABLE_M)
    if is_lossless(qos):
        return frozenset({ROCE_PRIORITY}), number(qos, "roce", "cable-length", default=ROCE_CABLE_M)
    return frozenset(), 0


def _ecn(qos: Tree, own: Tree) -> Mapping[int, EcnState]:
    marked = {0: DEFAULT_ECN, 3: DEFAULT_ECN} if is_on(qos, "roce") else {0: DEFAULT_ECN}
    classes = child(_profile(qos, own, "congestion-control"), "traffic-class")
    if text(own, "congestion-control", "profile"):
        marked = {}
    for name in classes:
        wanted = child(classes, name)
        marked[int(name)] = EcnState(
            number(wanted, "min-threshold", default=DEFAULT_ECN.min_bytes),
            number(wanted, "max-threshold", default=DEFAULT_ECN.max_bytes),
            number(wanted, "probability", default=DEFAULT_ECN.probability_percent),
        )
        if text(wanted, "ecn") in {"disable", "disabled"}:
            del marked[int(name)]
    return dict(sorted(marked.items()))


def _schedulers(qos: Tree, own: Tree) -> Mapping[int, SchedulerState]:
    classes = child(_profile(qos, own, "egress-scheduler"), "traffic-class")
    if classes:
        return {
            int(name): SchedulerState("strict")
            if text(classes, name, "mode") == "strict"
            else SchedulerState("weighted", number(classes, name, "bw-percent"))
            for name in sorted(classes)
        }
    if is_on(qos, "roce"):
        return ROCE_SCHEDULERS
    return {number_: SchedulerState("weighted", PLAIN_WEIGHTS[number_ % 2]) for number_ in range(PRIORITIES)}


def _watchdog(qos: Tree, own: Tree) -> WatchdogState | None:
    if not has(own, "pfc-watchdog") or text(own, "pfc-watchdog", "state") == "disable":
        return None
    poll_ms = number(qos, "pfc-watchdog", "polling-interval", default=POLL_MS)
    robustness = number(qos, "pfc-watchdog", "robustness", default=ROBUSTNESS)
    return WatchdogState(detection_ms=poll_ms * robustness, restoration_ms=poll_ms)
