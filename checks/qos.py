"""QoS: how switches and NICs treat RoCE and CNPs, compared with the intent and with each other."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from netkit.design import Port
from netkit.design.clusters import operated
from netkit.design.traffic import Headroom, LosslessProfile
from netkit.facts import Absent
from netkit.facts.qos import PortQos
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fabric_check, fail, skip

PLAN = "netkit plan shows whether it is configured so; netkit deploy fixes it"
OPERATOR = "see what the NicDevice of this NIC reports: the operator of the host's cluster sets it"
ON_OFF: Mapping[bool | None, str] = {True: "on", False: "off"}
SENDING = "sending pauses is {} here, respecting them {} on {}"
RESPECTING = "respecting pauses is {} here, sending them {} on {}"
WEIGHT_STEP = 1
"""Schedulers round weights."""
ROUNDED = 0.05
"""Chips round thresholds to their cells."""


class Aspect(NamedTuple):
    """One setting of QoS: its name, the value found, and the value wanted."""

    name: str
    found: object
    wanted: object
    is_right: bool


@device_check(layer="qos", needs=["qos"], on="switch", follows=[])
def switch(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every switch port has the trust mode, maps, PFC and scheduling of the intent.

    One hop that maps RoCE to a class that is not lossless makes the whole path lossy; one that maps CNPs to a full
    queue lets congestion grow. `netkit plan` shows what differs, `netkit deploy` sets it.
    """
    found = device.facts.qos
    if isinstance(found, Absent):
        return
    for name in device.ports:
        qos = found.get(name)
        if qos is None:
            yield skip(name, "the device does not show the QoS of this port")
        else:
            yield from _judged(name, (*_common(context.fabric.lossless, qos), *_classes(context.fabric.lossless, qos)))


@device_check(layer="qos", needs=["qos"], on="switch", follows=[])
def ecn(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every switch port marks RoCE at the thresholds of the intent for its speed, and no other traffic.

    If marks come too late or are missing, only PFC slows senders down. `netkit plan` shows
    what differs, `netkit deploy` sets it.
    """
    found = device.facts.qos
    if isinstance(found, Absent):
        return
    for name, port in device.ports.items():
        qos = found.get(name)
        if qos is None or qos.ecn is None:
            yield skip(name, "the device does not show when this port marks")
        else:
            yield from _judged(name, _marking(context.fabric.lossless, port, qos))


@device_check(layer="qos", needs=["qos"], on="switch", follows=[])
def headroom(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The headroom of every port holds what still arrives over its cable after a pause.

    With less, packets of the lossless class are lost exactly when the fabric is congested. Give the cable lengths in
    the intent, then `netkit deploy`.
    """
    del context
    found = device.facts.qos
    if isinstance(found, Absent):
        return
    for name, port in device.ports.items():
        qos, wanted, length_m = found.get(name), port.profile.headroom, port.profile.cable.length_m
        room = None if qos is None or wanted is None else _room(qos, wanted)
        made_for_m = None if qos is None or wanted is None else qos.cable_m
        if room is None and made_for_m is None:
            yield skip(name, "the device does not show the headroom of this port")
        elif made_for_m is not None and made_for_m < length_m:
            text = f"its headroom is made for {made_for_m:g} m, the cable has {length_m:g} m"
            yield fail(name, text, PLAN)
        elif room is not None and room[0] < room[1] * (1 - ROUNDED):
            text = f"its headroom of {room[0]:,} bytes is less than the {room[1]:,} that its cable needs"
            yield fail(name, text, PLAN)
        else:
            yield PASSED


def _room(qos: PortQos, wanted: Headroom) -> tuple[int, int] | None:
    """What there is and what is needed, in the terms the device uses: with or without what xon keeps."""
    if qos.xoff_bytes:
        return min(qos.xoff_bytes.values()), wanted.xoff_bytes
    return (min(qos.headroom_bytes.values()), wanted.size_bytes) if qos.headroom_bytes else None


@device_check(layer="qos", needs=["qos"], on="host", follows=[])
def nic(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every NIC has the trust mode, maps, PFC, scheduling, marking and CNP settings of the intent.

    Firmware updates and driver reloads restore defaults: RoCE then uses an unprotected class, or CNPs leave with a DSCP
    that no switch knows. `netkit deploy` sets them again; with `nic_qos: operator` the operator of the host's
    cluster does, which has no setting for scheduling: that is not compared then.
    """
    found = device.facts.qos
    if isinstance(found, Absent):
        return
    for name in device.nics:
        qos = found.get(name)
        if qos is None:
            yield skip(name, "the host does not show the QoS of this NIC")
        else:
            profile = context.fabric.lossless
            is_operated = device.name in operated(context.fabric)
            scheduled = () if is_operated else _classes(profile, qos, qos.priority_to_class)
            found_now = (*_common(profile, qos), *scheduled, *_answers(profile, qos))
            yield from _judged(name, found_now, OPERATOR if is_operated else PLAN)


@fabric_check(layer="qos", needs=["qos"], follows=["qos.switch", "qos.nic"], reads=[])
def link(context: CheckContext) -> Iterator[Finding]:
    """Both ends of a cable agree: on RoCE, on CNPs, and on which pauses the other end respects.

    Both ends can be consistent by themselves and not with each other; that is where lossless fabrics lose packets. A
    NIC's packets are followed by the DSCP they actually leave with to the priority the switch gives them. See with
    `netkit check qos` which end differs from the intent.
    """
    for near, near_port, far, far_port in context.links():
        near_qos, other = _qos(near, near_port), _qos(far, far_port)
        if near_qos is None or other is None:
            yield skip(near_port, "not both ends show their QoS", device=near.name)
            continue
        for text in _compared(context.fabric.lossless, near_qos, other, f"{far.name}:{far_port}"):
            remedy = "see which end differs from the intent: netkit check qos"
            yield fail(near_port, text, remedy, device=near.name) if text else PASSED


def _compared(profile: LosslessProfile, near_qos: PortQos, other: PortQos, there: str) -> Iterator[str]:
    """Yield how two ends differ, with an empty text for each setting on which they agree."""
    pairs = (
        ("trust", near_qos.trust or None, other.trust or None),
        *((f"the priority of DSCP {dscp}", _mapped(near_qos, dscp), _mapped(other, dscp)) for dscp in _dscps(profile)),
    )
    for what, here, far in pairs:
        if here is not None and far is not None:
            yield "" if here == far else f"{what} is {here} here and {far} on {there}"
    yield from _paused(near_qos, other, there)
    yield from _left(profile, near_qos, other, there)


def _paused(near_qos: PortQos, other: PortQos, there: str) -> Iterator[str]:
    """Yield whether each end respects the pauses that the other one sends; the same in both directions is one text."""
    ways = ((near_qos.pfc_tx, other.pfc_rx), (near_qos.pfc_rx, other.pfc_tx))
    known = [(here, far) for here, far in ways if here is not None and far is not None]
    masks = _mask(near_qos), _mask(other)
    if not known and masks[0] is not None and masks[1] is not None:
        known = [(masks[0], masks[1])]
    if len(set(known)) == 1:
        here, far = known[0]
        yield "" if here == far else f"PFC is {_text(here)} here and {_text(far)} on {there}"
        return
    for (one, respected), words in zip(ways, (SENDING, RESPECTING), strict=True):
        if one is not None and respected is not None:
            yield "" if one == respected else words.format(_text(one), _text(respected), there)


def _left(profile: LosslessProfile, near_qos: PortQos, other: PortQos, there: str) -> Iterator[str]:
    """Yield how the far end treats a NIC's packets that leave with another DSCP than intended."""
    data_dscp = None if near_qos.data_tos is None else near_qos.data_tos >> 2
    ways = (
        ("its CNPs", near_qos.cnp_dscp, profile.cnp_dscp, profile.cnp.priority),
        (
            "its RoCE",
            data_dscp,
            profile.data_dscp,
            profile.roce.priority,
        ),
    )
    for what, dscp, usual, wanted in ways:
        priority = None if dscp is None or dscp == usual else _mapped(other, dscp)
        if priority is not None:
            text = f"{what} leaves" if what == "its RoCE" else f"{what} leave"
            text = f"{text} with DSCP {dscp}, which {there} takes for priority {priority}, not {wanted}"
            yield "" if priority == wanted else text


def _qos(device: DeviceContext, port: str) -> PortQos | None:
    return None if isinstance(device.facts.qos, Absent) else device.facts.qos.get(port)


def _mapped(qos: PortQos, dscp: int) -> int | None:
    return None if qos.dscp_to_priority is None else qos.dscp_to_priority.get(dscp)


def _mask(qos: PortQos) -> frozenset[int] | None:
    return qos.pfc_rx if qos.pfc_rx is not None else qos.pfc_tx


def _dscps(profile: LosslessProfile) -> tuple[int, ...]:
    return profile.data_dscp, profile.cnp_dscp


def _judged(name: str, aspects: tuple[Aspect, ...], remedy: str = PLAN) -> Iterator[Finding]:
    """Yield a verdict on each reported aspect; if there is none, the port is skipped."""
    known = [aspect for aspect in aspects if aspect.found is not None]
    if not known:
        yield skip(name, "the device reports nothing of this")
    for aspect in known:
        if aspect.is_right:
            yield PASSED
        else:
            yield fail(name, f"{aspect.name} is {_text(aspect.found)}, not {_text(aspect.wanted)}", remedy)


def _text(value: object) -> str:
    if isinstance(value, frozenset):
        return f"on priorities {', '.join(map(str, sorted(value)))}" if value else "off"
    return str(value)


def _same(name: str, found: object, wanted: object) -> Aspect:
    return Aspect(name, found, wanted, found == wanted)


def _common(profile: LosslessProfile, qos: PortQos) -> tuple[Aspect, ...]:
    lossless = frozenset(profile.lossless_priorities)
    maps = (
        _same(f"the priority of DSCP {dscp}", _mapped(qos, dscp), profile.dscp_to_priority[dscp])
        for dscp in _dscps(profile)
    )
    return (
        _same("trust", qos.trust or None, "dscp"),
        *maps,
        _same("PFC on what it receives", qos.pfc_rx, lossless),
        _same("PFC on what it sends", qos.pfc_tx, lossless),
        _same("global pause", ON_OFF.get(qos.is_global_pause), "off"),
    )


def _classes(profile: LosslessProfile, qos: PortQos, carries: Mapping[int, int] | None = None) -> Iterator[Aspect]:
    """Yield scheduling by the traffic class of a priority: the one of the same number, or the one that carries it."""
    own = {one.priority: (carries or {}).get(one.priority, one.priority) for one in profile.classes}
    if len(set(own.values())) < len(own):
        own = {priority: priority for priority in own}
    strict = frozenset(own[one.priority] for one in profile.classes if one.is_strict)
    if qos.strict is not None:
        yield Aspect("strict scheduling", qos.strict, strict, strict <= qos.strict)
    for one in profile.classes:
        weight = None if qos.weights is None or one.is_strict else qos.weights.get(own[one.priority])
        if weight is not None:
            is_right = abs(weight - one.weight) <= WEIGHT_STEP
            yield Aspect(f"the share of class {one.name}", weight, one.weight, is_right)


def _marking(profile: LosslessProfile, port: Port, qos: PortQos) -> tuple[Aspect, ...]:
    marks = (qos.ecn or {}).get(profile.roce.priority)
    wanted = port.profile.ecn
    if marks is None or not marks.is_on:
        return (Aspect("ECN of the RoCE class", "off", "on", is_right=False),)
    return (
        _about("the ECN minimum", marks.min_bytes, wanted.min_bytes),
        _about("the ECN maximum", marks.max_bytes, wanted.max_bytes),
        _about("the ECN probability", marks.probability_percent, wanted.probability_percent),
    )


def _about(name: str, found: float | None, wanted: float) -> Aspect:
    return Aspect(name, found, wanted, found is not None and abs(found - wanted) <= ROUNDED * wanted)


def _answers(profile: LosslessProfile, qos: PortQos) -> tuple[Aspect, ...]:
    lossless = frozenset(profile.lossless_priorities)
    return (
        _same("the DSCP of its CNPs", qos.cnp_dscp, profile.cnp_dscp),
        _same("the priority of its CNPs", qos.cnp_priority, profile.cnp.priority),
        _same("the traffic class of its RoCE", qos.data_tos, profile.tos),
        _own_buffer(qos, lossless),
        _covers("answering CE with CNPs", qos.ecn_notifies, lossless),
        _covers("slowing down for CNPs", qos.ecn_reacts, lossless),
    )


def _own_buffer(qos: PortQos, lossless: frozenset[int]) -> Aspect:
    """Whether lossy priorities fill the receive buffer that holds what is on its way after a pause."""
    buffers = qos.priority_to_buffer or {}
    own = {buffers[priority] for priority in lossless if priority in buffers}
    shared = frozenset(priority for priority, buffer in buffers.items() if buffer in own and priority not in lossless)
    found = (
        None if not own else f"shared with priorities {', '.join(map(str, sorted(shared)))}" if shared else "its own"
    )
    return Aspect("the receive buffer of RoCE", found, "its own", is_right=not shared)


def _covers(name: str, found: frozenset[int] | None, wanted: frozenset[int]) -> Aspect:
    return Aspect(name, found, wanted, found is not None and wanted <= found)
