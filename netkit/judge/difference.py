"""The differences between two snapshots of a fabric, whether or not a check judges them. Pure.

Only what both snapshots hold is compared: a fact missing from one of them is listed with the reason, not as a change.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from netkit.facts import COUNTERS, Absent, Facts, Observation, Snapshot
from netkit.facts.counter import place
from netkit.facts.device import KINDS, Interface, System
from netkit.facts.host import BgpSession, DefaultRoute, HostFacts, NicFacts
from netkit.facts.optic import Line, Module
from netkit.facts.qos import Ecn, PortQos, Watchdog
from netkit.judge.bound import least_rate
from netkit.judge.delta import Delta, deltas

Kind = Literal[
    "device", "link", "session", "route", "neighbor", "module", "light", "bits", "qos", "version", "host", "counter"
]
ORDER: tuple[Kind, ...] = get_args(Kind)
"""By importance: what traffic depends on comes first."""
SLACK_S = 60.0
"""Devices report uptimes in whole seconds or minutes, and read them shortly before or after the sample."""
TIMES_WORSE = 10.0
"""Bit error rates scatter: a change by less than this factor does not count."""
LEAST_BER = 1e-9
TIMES_FASTER = 2.0
LOSSES = frozenset(
    name
    for name in COUNTERS
    if name.endswith(("_drops", "_errors", "_downs", "_stalls", "_exceeded", "_uncorrectable", "_timeout"))
) | {"out_of_buffer", "packet_seq_err", "watchdog_detected", "cnp_ignored"}
"""Counters of loss at any load: more of them is worse."""
STRAINS = frozenset(name for name in COUNTERS if name.endswith(("_pause", "_pause_us", "ecn_marked"))) | {"cnp_sent"}
"""Counters that follow the load: more of them may only mean more traffic."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that changed. The text of a missing side is empty."""

    kind: Kind
    device: str
    place: str
    """A port, `port/lane`, a prefix, a NIC; empty for the device as a whole."""
    what: str
    was: str
    now: str
    is_worse: bool | None = None
    """None where neither is better."""
    amount: float | None = None
    """The change of a measured value, so that many places can be shown as one; None for others."""


@dataclass(frozen=True, slots=True)
class Uncompared:
    """A kind of facts that only one of the snapshots has."""

    kind: str
    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class Differences:
    """All differences, and what could not be compared."""

    found: tuple[Difference, ...]
    uncompared: tuple[Uncompared, ...]


Found = Iterator[Difference]


def differences(
    before: Snapshot, after: Snapshot, names: Iterable[str], kinds: Collection[str], light_db: float
) -> Differences:
    """Compare some devices in some kinds of facts; optical power that moved by less than `light_db` is the same."""
    found: list[Difference] = []
    uncompared: list[Uncompared] = []
    for name in names:
        was, now = before.devices.get(name), after.devices.get(name)
        if was is None or now is None:
            if was is not now:
                texts = ("seen", "") if was is not None else ("", "seen")
                found.append(Difference("device", name, "", "in the snapshot", *texts))
            continue
        seconds = after.taken_s - before.taken_s
        found += _device(was, now)
        found += _pair(_Pair(name, was, now, seconds, light_db), kinds)
        uncompared += _uncompared(was, now, kinds)
    order = {kind: number for number, kind in enumerate(ORDER)}
    return Differences(tuple(sorted(found, key=lambda one: order[one.kind])), tuple(uncompared))


@dataclass(frozen=True, slots=True)
class _Pair:
    """A device in both snapshots."""

    name: str
    was: Observation
    now: Observation
    seconds: float
    light_db: float

    def both(self, kind: str) -> tuple[Any, Any] | None:
        """A kind of facts of both; None unless both have it."""
        was, now = getattr(self.was.facts, kind), getattr(self.now.facts, kind)
        return None if isinstance(was, Absent) or isinstance(now, Absent) else (was, now)


def _device(was: Observation, now: Observation) -> Found:
    if bool(was.failure) != bool(now.failure):
        texts = (was.failure or "reached", now.failure or "reached")
        yield Difference("device", now.device, "", "reached", *texts, bool(now.failure))
    if was.platform != now.platform and was.platform and now.platform:
        yield Difference("device", now.device, "", "platform", was.platform, now.platform)


def _uncompared(was: Observation, now: Observation, kinds: Collection[str]) -> Iterator[Uncompared]:
    if was.facts == Facts() or now.facts == Facts():
        return  # not reached at all: reported as a separate difference
    for kind in (kind for kind in KINDS if kind in kinds):
        facts = getattr(was.facts, kind), getattr(now.facts, kind)
        for when, one, other in zip(("before", "after"), facts, reversed(facts), strict=True):
            if isinstance(one, Absent) and not isinstance(other, Absent):
                yield Uncompared(kind, now.device, f"{when}: {one.reason}")


def _pair(pair: _Pair, kinds: Collection[str]) -> Found:
    for kind, compare in COMPARED.items():
        both = pair.both(kind) if kind in kinds else None
        if both is not None:
            yield from compare(pair, *both)
    if "counters" in kinds:
        yield from _rates(pair)


def _system(pair: _Pair, was: System, now: System) -> Found:
    is_other_boot = bool(was.boot and now.boot and was.boot != now.boot)
    ups = was.uptime_s, now.uptime_s
    is_younger = not (was.boot and now.boot) and None not in ups and (ups[1] or 0) + SLACK_S < (ups[0] or 0)
    if is_other_boot or is_younger:
        yield Difference("device", pair.name, "", "restarted in between", "", "yes")
    for what in ("version", "model", "serial", "kernel"):
        yield from _changed(pair, "version", "", what, getattr(was, what), getattr(now, what))


def _changed(pair: _Pair, kind: Kind, place: str, what: str, was: object, now: object) -> Found:
    """Yield a value that both snapshots have and that changed."""
    if was != now and was not in (None, "") and now not in (None, ""):
        yield Difference(kind, pair.name, place, what, _text(was), _text(now))


def _less(pair: _Pair, kind: Kind, place: str, what: str, was: float | None, now: float | None) -> Found:
    """Yield a changed value of which less is worse."""
    if was is not None and now is not None and was != now:
        yield Difference(kind, pair.name, place, what, _text(was), _text(now), now < was)


def _switched(pair: _Pair, kind: Kind, place: str, what: str, was: bool | None, now: bool | None) -> Found:
    """Yield something that was switched on or off; off is worse."""
    if was is not None and now is not None and was != now:
        words = {True: "on", False: "off"}
        yield Difference(kind, pair.name, place, what, words[was], words[now], was)


def _interfaces(pair: _Pair, was: Mapping[str, Interface], now: Mapping[str, Interface]) -> Found:
    for name in was.keys() - now.keys():
        yield Difference("link", pair.name, name, "interface", "there", "", was[name].is_up)
    for name in now.keys() - was.keys():
        yield Difference("link", pair.name, name, "interface", "", "there")
    for name, one in now.items():
        if name not in was or was[name] == one:
            continue
        old = was[name]
        if old.is_up is not None and one.is_up is not None and old.is_up != one.is_up:
            words = {True: "up", False: "down"}
            yield Difference("link", pair.name, name, "link", words[old.is_up], words[one.is_up], old.is_up)
        elif one.is_up is not False:  # a link that is down has no speed and no FEC
            yield from _less(pair, "link", name, "speed in Gbit/s", old.speed_gbps, one.speed_gbps)
            yield from _changed(pair, "link", name, "FEC", old.fec, one.fec)
        if old.is_enabled is not None and one.is_enabled is not None and old.is_enabled != one.is_enabled:
            words = {True: "enabled", False: "disabled"}
            yield Difference("link", pair.name, name, "port", words[old.is_enabled], words[one.is_enabled])
        for what, field in (("MTU", "mtu_bytes"), ("MAC address", "mac"), ("description", "description")):
            yield from _changed(pair, "link", name, what, getattr(old, field), getattr(one, field))


def _sessions(pair: _Pair, was: Mapping[str, BgpSession], now: Mapping[str, BgpSession]) -> Found:
    for name in was.keys() - now.keys():
        yield Difference("session", pair.name, name, "BGP session", _state(was[name]), "", was[name].is_established)
    for name in now.keys() - was.keys():
        yield Difference("session", pair.name, name, "BGP session", "", _state(now[name]))
    for name, one in now.items():
        old = was.get(name)
        if old is None or old == one:
            continue
        if old.is_established != one.is_established:
            yield Difference("session", pair.name, name, "BGP session", _state(old), _state(one), old.is_established)
            continue
        yield from _changed(pair, "session", name, "AS number of the peer", old.peer_asn, one.peer_asn)
        yield from _switched(pair, "session", name, "BFD", old.is_bfd_up, one.is_bfd_up)
        if old.is_draining is not None and one.is_draining is not None and old.is_draining != one.is_draining:
            words = {True: "drained", False: "in service"}
            yield Difference("session", pair.name, name, "traffic", words[old.is_draining], words[one.is_draining])
        if one.is_established:
            yield from _less(pair, "session", name, "prefixes received", old.received_prefixes, one.received_prefixes)
            yield from _less(pair, "session", name, "prefixes sent", old.sent_prefixes, one.sent_prefixes)
            if one.uptime_s is not None and one.uptime_s + SLACK_S < pair.seconds:
                yield Difference("session", pair.name, name, "BGP session was down in between", "", "yes")


def _state(session: BgpSession) -> str:
    return "established" if session.is_established else session.state or "down"


def _routes(pair: _Pair, was: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> Found:
    for prefix in was.keys() - now.keys():
        yield Difference("route", pair.name, prefix, "route", "there", "", is_worse=True)
    for prefix in now.keys() - was.keys():
        yield Difference("route", pair.name, prefix, "route", "", "there")
    for prefix, ports in now.items():
        old = was.get(prefix)
        if old is None or old == ports:
            continue
        if len(set(old)) != len(set(ports)):
            yield from _less(pair, "route", prefix, "equal paths", len(set(old)), len(set(ports)))
        elif set(old) != set(ports):
            left, joined = ", ".join(sorted(set(old) - set(ports))), ", ".join(sorted(set(ports) - set(old)))
            yield Difference("route", pair.name, prefix, "next hops", left, joined)


def _neighbors(pair: _Pair, was: Mapping[str, Sequence[Any]], now: Mapping[str, Sequence[Any]]) -> Found:
    for port in dict.fromkeys((*was, *now)):
        old, new = (
            ", ".join(dict.fromkeys(f"{one.system} {one.port}".strip() for one in neighbors.get(port, ())))
            for neighbors in (was, now)
        )
        if old != new:
            yield Difference("neighbor", pair.name, port, "neighbour", old, new, not new or None)


def _modules(pair: _Pair, was: Mapping[str, Module], now: Mapping[str, Module]) -> Found:
    for port in dict.fromkeys((*was, *now)):
        old, one = (modules.get(port) for modules in (was, now))
        old, one = (module if module is not None and module.is_present else None for module in (old, one))
        if old is None or one is None:
            if old is not one:
                texts = _module(old), _module(one)
                yield Difference("module", pair.name, port, "module", *texts, one is None or None)
            continue
        if old.serial and one.serial and old.serial != one.serial:
            yield Difference("module", pair.name, port, "module swapped", _module(old), _module(one), amount=0.0)
        else:
            yield from _changed(pair, "module", port, "part number", old.part, one.part)
        yield from _changed(pair, "module", port, "module firmware", old.firmware, one.firmware)
        yield from _light(pair, port, old, one)


def _module(module: Module | None) -> str:
    if module is None:
        return ""
    return " ".join(filter(None, (module.vendor, module.part, module.serial))) or "there"


def _light(pair: _Pair, port: str, was: Module, now: Module) -> Found:
    for number, lane in now.lanes.items():
        old = was.lanes.get(number)
        if old is None or old == lane:
            continue
        for what, field in (("received power", "rx_dbm"), ("transmitted power", "tx_dbm")):
            values = getattr(old, field), getattr(lane, field)
            if None not in values and abs(values[1] - values[0]) > pair.light_db:
                texts, moved = (f"{values[0]:.1f} dBm", f"{values[1]:.1f} dBm"), values[1] - values[0]
                yield Difference("light", pair.name, place(port, number), what, *texts, moved < 0, abs(moved))


def _lines(pair: _Pair, was: Mapping[str, Line], now: Mapping[str, Line]) -> Found:
    for port, one in now.items():
        old = was.get(port)
        if old is None or old.ber is None or one.ber is None:
            continue
        low, high = sorted((old.ber, one.ber))
        if high > LEAST_BER and high >= TIMES_WORSE * low:
            texts = f"{old.ber:.1e}", f"{one.ber:.1e}"
            yield Difference("bits", pair.name, port, "bit error rate before FEC", *texts, one.ber > old.ber, high)


def _qos(pair: _Pair, was: Mapping[str, PortQos], now: Mapping[str, PortQos]) -> Found:
    for port, one in now.items():
        old = was.get(port)
        if old is None or old == one:
            continue
        for field in fields(PortQos):
            values = getattr(old, field.name), getattr(one, field.name)
            if None not in values and values[0] != values[1]:
                yield from _value(pair, "qos", port, field.name.replace("_", " "), *values)


def _value(pair: _Pair, kind: Kind, place: str, what: str, was: Any, now: Any) -> Found:
    """Yield a value that changed; for a mapping only the keys that did."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in sorted(was.keys() | now.keys(), key=str):
            if was.get(key) != now.get(key):
                yield Difference(kind, pair.name, place, f"{what} {key}", _text(was.get(key)), _text(now.get(key)))
        return
    yield from _changed(pair, kind, place, what, was, now)


def _watchdogs(pair: _Pair, was: Mapping[str, Watchdog], now: Mapping[str, Watchdog]) -> Found:
    for at, one in now.items():
        old = was.get(at)
        if old is None or old == one:
            continue
        yield from _switched(pair, "qos", at, "PFC watchdog", old.is_on, one.is_on)
        if old.is_stormed != one.is_stormed:
            words = {True: "storm", False: "no storm"}
            texts = words[old.is_stormed], words[one.is_stormed]
            yield Difference("qos", pair.name, at, "PFC watchdog sees", *texts, one.is_stormed)
        for what, field in (("detection in ms", "detection_ms"), ("restoration in ms", "restoration_ms")):
            yield from _changed(pair, "qos", at, f"PFC watchdog {what}", getattr(old, field), getattr(one, field))
        yield from _changed(pair, "qos", at, "PFC watchdog action", old.action, one.action)


def _adaptive(pair: _Pair, was: Mapping[str, bool], now: Mapping[str, bool]) -> Found:
    for port, one in now.items():
        yield from _switched(pair, "qos", port, "adaptive routing", was.get(port), one)


def _nics(pair: _Pair, was: Mapping[str, NicFacts], now: Mapping[str, NicFacts]) -> Found:
    for name in was.keys() - now.keys():
        yield Difference("host", pair.name, name, "NIC", was[name].part or "there", "", is_worse=True)
    for name in now.keys() - was.keys():
        yield Difference("host", pair.name, name, "NIC", "", now[name].part or "there")
    for name, one in now.items():
        old = was.get(name)
        if old is None or old == one:
            continue
        for what, field in NIC_VERSIONS.items():
            yield from _changed(pair, "version", name, what, getattr(old, field), getattr(one, field))
        yield from _less(pair, "host", name, "PCIe lanes", old.pci_width, one.pci_width)
        yield from _less(pair, "host", name, "PCIe GT/s", old.pci_gt_s, one.pci_gt_s)
        for what, field in NIC_VALUES.items():
            values = getattr(old, field), getattr(one, field)
            if None not in values and values[0] != values[1]:
                yield from _value(pair, "host", name, what, *values)


NIC_VERSIONS: Mapping[str, str] = {
    "NIC part number": "part",
    "NIC PSID": "psid",
    "NIC firmware": "firmware",
    "NIC driver": "driver_version",
}
NIC_VALUES: Mapping[str, str] = {
    "PCI address": "pci",
    "read request in bytes": "read_request_bytes",
    "relaxed ordering": "has_relaxed_ordering",
    "RDMA MTU": "active_mtu_bytes",
    "RoCEv2 index": "roce_gid_index",
    "setting": "settings",
    "adaptive routing forced": "is_adaptive_routing_forced",
}


def _host(pair: _Pair, was: HostFacts, now: HostFacts) -> Found:
    unread = {tool for tools in (was.tools, now.tools) for tool, version in tools.items() if not version}
    versions = ({tool: tools[tool] for tool in tools.keys() - unread} for tools in (was.tools, now.tools))
    yield from _value(pair, "version", "", "version of", *versions)
    yield from _value(pair, "host", "", "sysctl", was.sysctls, now.sysctls)
    yield from _value(pair, "host", "", "addresses of", was.addresses, now.addresses)
    yield from _value(pair, "host", "", "NCCL", was.nccl, now.nccl)
    yield from _value(pair, "host", "", "nearest NIC of GPU", was.nearest_nic, now.nearest_nic)
    if was.default_routes is not None and now.default_routes is not None:
        yield from _changed(
            pair, "host", "", "default routes", _gateways(was.default_routes), _gateways(now.default_routes)
        )
    yield from _changed(pair, "host", "", "IOMMU", was.is_iommu_on, now.is_iommu_on)


def _gateways(routes: Iterable[DefaultRoute]) -> str:
    return "; ".join(f"{one.gateway or 'on link'} over {one.interface}" for one in routes) or "none"


COMPARED: Mapping[str, Callable[[_Pair, Any, Any], Found]] = {
    "system": _system,
    "interfaces": _interfaces,
    "sessions": _sessions,
    "routes": _routes,
    "neighbors": _neighbors,
    "modules": _modules,
    "lines": _lines,
    "qos": _qos,
    "watchdogs": _watchdogs,
    "adaptive_routing": _adaptive,
    "nics": _nics,
    "host": _host,
}
"""Kind of facts → what is different in it."""


def _rates(pair: _Pair) -> Found:
    """Yield counters that are significantly faster or slower than before, where both snapshots have two samples."""
    if len(pair.was.samples) < 2 or len(pair.now.samples) < 2:
        return
    for name in sorted(LOSSES | STRAINS):
        was, now = deltas(name, pair.was.samples), deltas(name, pair.now.samples)
        for at, one in now.items():
            old = was.get(at)
            if old is None or old.value == one.value or not (old.is_known and one.is_known):
                continue
            is_more = _is_faster(one, old)
            if is_more or _is_faster(old, one):
                texts = f"{old.per_s:.3g}/s", f"{one.per_s:.3g}/s"
                is_worse = is_more if name in LOSSES else None
                moved = abs(one.per_s - old.per_s)
                yield Difference("counter", pair.name, at, name.replace("_", " "), *texts, is_worse, moved)


def _is_faster(one: Delta, other: Delta) -> bool:
    """Whether a counter is significantly faster: any count where there was none, twice as fast elsewhere."""
    if not other.value:
        return bool(one.value)
    return least_rate(one.value, one.seconds) > TIMES_FASTER * other.per_s


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, frozenset | tuple):
        return ", ".join(map(str, sorted(value, key=str))) or "none"
    if isinstance(value, Ecn):
        marks = f"{value.min_bytes} to {value.max_bytes} bytes, {value.probability_percent} %"
        return marks if value.is_on else "off"
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)
