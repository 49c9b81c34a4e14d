"""Which view answers which path; `*` stands for a name, and the limits after `@` for releases."""

from collections.abc import Callable, Mapping, Sequence

from netkit.lab.personalities.nvue.schema import is_within
from netkit.lab.personalities.nvue.show import bgp, interface, lldp, phy, platform, qos, queue, route
from netkit.lab.personalities.nvue.show.look import Look, Shown

View = Callable[[Look], Shown]
VIEWS: tuple[tuple[str, View], ...] = (
    ("interface", interface.interfaces),
    ("interface lldp", lldp.all_ports),
    ("interface qos-congestion-control @>=5.14", interface.aspect("qos-congestion-control")),
    ("interface qos-roce-counters @>=5.14", interface.aspect("qos-roce-counters")),
    ("interface qos-roce-status @>=5.14", interface.aspect("qos-roce-status")),
    ("interface *", interface.interface),
    ("interface * counters", interface.counters),
    ("interface * counters qos", queue.qos_counters),
    ("interface * counters qos egress-queue-stats", queue.queues),
    ("interface * counters qos ingress-buffer-stats", queue.ingress),
    ("interface * counters qos pfc-stats", queue.pauses),
    ("interface * counters qos port-stats", queue.port_totals),
    ("interface * link", interface.link),
    ("interface * link phy detail @>=5.15", phy.health),
    ("interface * link phy health @>=5.15", phy.health),
    ("interface * link phy-detail @<5.15", phy.health),
    ("interface * link stats", interface.stats),
    ("interface * lldp", lldp.port),
    ("interface * lldp neighbor", lldp.port_neighbors),
    ("interface * qos buffer", queue.buffers),
    ("interface * qos buffer egress-traffic-class", queue.traffic_classes),
    ("interface * qos buffer ingress-priority-group", queue.priority_groups),
    ("interface * qos congestion-control", qos.port_ecn),
    ("interface * qos egress-scheduler", qos.port_scheduler),
    ("interface * qos mapping", qos.port_mapping),
    ("interface * qos pfc", qos.port_pfc),
    ("interface * qos pfc-watchdog", queue.watchdog),
    ("interface * qos pfc-watchdog status", queue.watchdog_status),
    ("interface * qos roce", qos.port_roce),
    ("interface * qos roce counters", queue.roce_counters),
    ("interface * qos roce status", qos.port_roce),
    ("interface * router adaptive-routing", interface.adaptive_routing),
    ("interface * transceiver", phy.transceiver),
    ("interface * transceiver thresholds", phy.thresholds),
    ("platform", platform.platform),
    ("platform firmware", platform.firmware),
    ("platform inventory", platform.inventory),
    ("platform transceiver", phy.all_modules),
    ("platform transceiver *", phy.with_limits),
    ("qos", qos.whole),
    ("qos egress-queue-mapping default-global", qos.queue_mapping),
    ("qos egress-scheduler default-global", qos.scheduler),
    ("qos mapping default-global", qos.mapping),
    ("qos roce", qos.roce),
    ("system", platform.system),
    ("system health", platform.health),
    ("system version", platform.version),
    ("vrf default router bfd peers @>=5.15", bgp.bfd_peers),
    ("vrf default router bgp", bgp.bgp),
    ("vrf default router bgp neighbor", bgp.neighbors),
    ("vrf default router bgp neighbor *", bgp.neighbor),
    ("vrf default router rib ipv4 route", route.table),
)

ASPECTS: Mapping[str, frozenset[str]] = {
    "interface": frozenset({*interface.PER_PORT, "lldp"}),
    "vrf default router bfd peers": frozenset({"brief", "detail"}),
    "vrf default router bgp neighbor": frozenset({"brief", "detail"}),
}
"""What `--view` may ask of a path."""


def find(words: Sequence[str], version: tuple[int, ...]) -> tuple[View, tuple[str, ...]] | None:
    """Return the view of a path and the names the path holds."""
    for said, view in VIEWS:
        pattern, *limits = said.split(" @")
        steps = pattern.split()
        if len(steps) != len(words) or not all(is_within(version, limit) for limit in limits):
            continue
        if all(step in {"*", word} for step, word in zip(steps, words, strict=True)):
            return view, tuple(word for step, word in zip(steps, words, strict=True) if step == "*")
    return None
