"""ECN at a switch: an nftables ruleset for its namespace, and the counters of that ruleset.

Ports are chains of the netdev family, which see routed and bridged packets alike. The ingress port gives a packet its
priority, by the DSCP if trusted, and stores it in the packet mark. The egress port knows which priorities are in a
class with ECN: above the rate of the port, ECT(0) becomes CE and Not-ECT is dropped. Where a switch raises the
probability between two fill levels the lab marks every packet, since nothing queues here. A priority that is lossless
on no port of the switch never counts as congested, and neither do pings, such as the probes of `netkit check`: other
traffic than RoCE comes in bursts that a real port would absorb. Packets are also counted by their class at egress.

LLDP is dropped at ingress: lldpd has received it by then, and the kernel would count it as an input drop.

Reloading a ruleset keeps the counters, which are its only state.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from netkit.lab.state import CODE_POINTS, PRIORITIES, PortState, QosState, SwitchState

TABLE = "netkit_ecn"
GBPS_PER_PPS = 2
"""The rate of real traffic that one lab packet per second represents."""
USUAL_SPEED_GBPS = 400
_BYTES_PER_BURST_PACKET = 64 * 1024
_BURSTS = (5, 64)
_LLDP = "0x88cc"
_EXEMPT = 16
EXEMPT_MARK = f"{_EXEMPT:#x}"
"""A bit of the packet mark that exempts a packet from ECN, whatever its priority."""


NO_CLASSES = (0,) * PRIORITIES
Counts = Mapping[str, tuple[int, int]]
"""Packets and bytes by the name of a counter in the table."""
NOTHING = (0, 0)


@dataclass(frozen=True, slots=True)
class PortMarks:
    """The ECN counters of a port."""

    marked_packets: int = 0
    dropped_packets: int = 0


@dataclass(frozen=True, slots=True)
class Sent:
    """What a port sent, by traffic class."""

    packets: tuple[int, ...] = NO_CLASSES
    bytes: tuple[int, ...] = NO_CLASSES
    crowded_packets: int = 0
    """Packets above the rate of the port, marked, dropped or neither."""


NOTHING_SENT = Sent()


def line_rate_pps(speed_gbps: int) -> int:
    """The packet rate that represents a port's speed in the lab."""
    return (speed_gbps or USUAL_SPEED_GBPS) // GBPS_PER_PPS


def ruleset(state: SwitchState, kernel_names: Mapping[str, str]) -> str:
    """The input of `nft -f`."""
    ports = {kernel_names[port.name]: port for port in state.ports if port.name in kernel_names}
    lossless = frozenset[int]().union(*(port.qos.pfc_priorities for port in ports.values()))
    lines = [f"table netdev {TABLE} {{ }}", f"flush table netdev {TABLE}", f"table netdev {TABLE} {{"]
    for interface, port in ports.items():
        lines += _ingress(interface, port.qos)
    for interface, port in ports.items():
        lines += _egress(interface, port, lossless)
    return "\n".join([*lines, "}", ""])


def marks(counts: Counts, kernel_names: Mapping[str, str]) -> Mapping[str, PortMarks]:
    """What each port marked and dropped, by its NOS name."""

    def packets(counter: str) -> int:
        return counts.get(counter, NOTHING)[0]

    return {
        name: PortMarks(packets(_marked(interface)), packets(_dropped(interface)))
        for name, interface in kernel_names.items()
    }


def sent(counts: Counts, kernel_names: Mapping[str, str]) -> Mapping[str, Sent]:
    """What each port sent, by its NOS name."""

    def of(interface: str) -> Sent:
        classes = [counts.get(_class(interface, number), NOTHING) for number in range(PRIORITIES)]
        crowded = (_marked(interface), _dropped(interface), _unmarked(interface))
        return Sent(
            tuple(packets for packets, _ in classes),
            tuple(size for _, size in classes),
            sum(counts.get(name, NOTHING)[0] for name in crowded),
        )

    return {name: of(interface) for name, interface in kernel_names.items()}


def _ingress(interface: str, qos: QosState) -> Iterator[str]:
    """Yield the chain that assigns priorities to packets; a mark of 0 means none was assigned."""
    yield f'  chain in_{interface} {{ type filter hook ingress device "{interface}" priority 0; policy accept;'
    yield f"    meta protocol {_LLDP} drop"
    if qos.priority_of_dscp:
        pairs = ", ".join(f"{dscp} : {qos.priority_of_dscp[dscp] + 1}" for dscp in range(CODE_POINTS))
        yield f"    meta mark set ip dscp map {{ {pairs} }}"
    else:
        yield "    meta protocol ip meta mark set 1"
    yield "  }"


def _egress(interface: str, port: PortState, lossless: frozenset[int]) -> Iterator[str]:
    """Yield the chains that count, mark and drop at egress."""
    marked, dropped, unmarked = _marked(interface), _dropped(interface), _unmarked(interface)
    decide = f"ecn_{interface}"
    yield f"  counter {marked} {{ }}\n  counter {dropped} {{ }}\n  counter {unmarked} {{ }}"
    yield from (f"  counter {_class(interface, number)} {{ }}" for number in sorted({*port.qos.class_of_priority}))
    yield f'  chain {decide}_mark {{ ip ecn set ce counter name "{marked}"; }}'
    yield f'  chain {decide}_drop {{ counter name "{dropped}" drop; }}'
    yield f'  chain out_{interface} {{ type filter hook egress device "{interface}" priority 0; policy accept;'
    yield f"    counter name meta mark map {{ {_class_of_mark(interface, port.qos)} }}"
    for traffic_class, ecn in sorted(port.qos.ecn.items()):
        members = [
            number + 1
            for number, of in enumerate(port.qos.class_of_priority)
            if of == traffic_class and number in lossless
        ]
        if members and ecn.probability_percent:
            rate_pps = max(line_rate_pps(port.speed_gbps), 1)
            burst = min(max(ecn.min_bytes // _BYTES_PER_BURST_PACKET, _BURSTS[0]), _BURSTS[1])
            excess = f"limit rate over {rate_pps}/second burst {burst} packets"
            yield (
                f"    meta l4proto != icmp meta mark {{ {_marks(members)} }} {excess} "
                f"ip ecn vmap {{ ect0 : jump {decide}_mark, not-ect : jump {decide}_drop }}"
            )
            yield (
                f"    meta l4proto != icmp meta mark {{ {_marks(members, _EXEMPT)} }} {excess} "
                f'counter name "{unmarked}"'
            )
    yield "  }"


def _marks(members: Iterable[int], bit: int = 0) -> str:
    return ", ".join(str(mark + bit) for mark in members)


def _class_of_mark(interface: str, qos: QosState) -> str:
    """The map from packet marks to counters; packets of the switch itself have no mark, and priority 0."""
    marks = {0: qos.class_of_priority[0], **{at + 1: of for at, of in enumerate(qos.class_of_priority)}}
    marks |= {mark + _EXEMPT: of for mark, of in marks.items()}
    return ", ".join(f'{mark} : "{_class(interface, of)}"' for mark, of in marks.items())


def _class(interface: str, number: int) -> str:
    return f"{interface}.class{number}"


def _unmarked(interface: str) -> str:
    return f"{interface}.unmarked"


def _marked(interface: str) -> str:
    return f"{interface}.marked"


def _dropped(interface: str) -> str:
    return f"{interface}.dropped"
