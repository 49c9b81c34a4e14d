"""QoS: what switches and NICs really do with RoCE and CNPs, against the intent and against each other."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from netkit.design import Port
from netkit.design.traffic import Headroom, LosslessProfile
from netkit.facts import Absent
from netkit.facts.qos import PortQos
from netkit.judge import PASSED, Finding, Scene, Seen, device_check, fabric_check, fail, skip

PLAN = "netkit plan shows whether it is configured so; netkit deploy mends it"
ON_OFF: Mapping[bool | None, str] = {True: "on", False: "off"}
WEIGHT_STEP = 1
"""Schedulers round weights."""
ROUNDED = 0.05
"""Chips round thresholds to their cells."""


class Aspect(NamedTuple):
    """One thing that QoS must have right: what it is, what is seen, and what is wanted."""

    name: str
    found: object
    wanted: object
    is_right: bool


@device_check(layer="qos", needs=["qos"], on="switch")
def switch(scene: Scene, seen: Seen) -> Iterator[Finding]:
    """Every switch port trusts, maps, pauses and schedules as the intent says.

    One hop that maps RoCE to a class that is not lossless makes the whole path lossy; one that maps CNPs to a full
    queue lets congestion grow. `netkit plan` shows what differs, `netkit deploy` sets it.
    """
    found = seen.facts.qos
    if isinstance(found, Absent):
        return
    for name in seen.ports:
        qos = found.get(name)
        if qos is None:
            yield skip(name, "the device does not show the QoS of this port")
        else:
            yield from _judged(name, (*_common(scene.fabric.lossless, qos), *_classes(scene.fabric.lossless, qos)))


@device_check(layer="qos", needs=["qos"], on="switch")
def ecn(scene: Scene, seen: Seen) -> Iterator[Finding]:
    """Every switch port marks RoCE at the thresholds the intent has for its speed, and marks nothing else.

    Marks that come too late leave it to PFC to slow senders down; none at all leave nothing else. `netkit plan` shows
    what differs, `netkit deploy` sets it.
    """
    found = seen.facts.qos
    if isinstance(found, Absent):
        return
    for name, port in seen.ports.items():
        qos = found.get(name)
        if qos is None or qos.ecn is None:
            yield skip(name, "the device does not show when this port marks")
        else:
            yield from _judged(name, _marking(scene.fabric.lossless, port, qos))


@device_check(layer="qos", needs=["qos"], on="switch")
def headroom(scene: Scene, seen: Seen) -> Iterator[Finding]:
    """The headroom of every port holds what is still on its way over the real cable after a pause.

    Less of it loses packets of the lossless class under congestion only, when it hurts most. Say how long the cables
    are in the intent, then `netkit deploy`.
    """
    del scene
    found = seen.facts.qos
    if isinstance(found, Absent):
        return
    for name, port in seen.ports.items():
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
    """Return what there is and what is needed, in the terms the device uses: with or without what xon keeps."""
    if qos.xoff_bytes:
        return min(qos.xoff_bytes.values()), wanted.xoff_bytes
    return (min(qos.headroom_bytes.values()), wanted.size_bytes) if qos.headroom_bytes else None


@device_check(layer="qos", needs=["qos"], on="host")
def nic(scene: Scene, seen: Seen) -> Iterator[Finding]:
    """Every NIC trusts, maps, pauses, marks and answers as the intent says.

    Firmware updates and driver reloads bring defaults back: RoCE then rides in a class that nothing protects, or CNPs
    leave with a DSCP that no switch knows. `netkit deploy` sets them again.
    """
    found = seen.facts.qos
    if isinstance(found, Absent):
        return
    for name in seen.nics:
        qos = found.get(name)
        if qos is None:
            yield skip(name, "the host does not show the QoS of this NIC")
        else:
            yield from _judged(name, (*_common(scene.fabric.lossless, qos), *_answers(scene.fabric.lossless, qos)))


@fabric_check(layer="qos", needs=["qos"])
def link(scene: Scene) -> Iterator[Finding]:
    """Both ends of a cable mean the same: the same priority for RoCE and for CNPs, and PFC on the same ones.

    Both ends can be right by their own books and wrong together; that is where lossless fabrics lose packets. See with
    `netkit check qos` which end differs from the intent.
    """
    profile = scene.fabric.lossless
    for near, near_port, far, far_port in scene.links():
        mine, other = _qos(near, near_port), _qos(far, far_port)
        if mine is None or other is None:
            yield skip(near_port, "not both ends show their QoS", device=near.name)
            continue
        pairs = (
            *((f"the priority of DSCP {dscp}", _mapped(mine, dscp), _mapped(other, dscp)) for dscp in _dscps(profile)),
            ("PFC", _mask(mine), _mask(other)),
        )
        for what, here, there in pairs:
            if here is None or there is None:
                continue
            if here != there:
                text = f"{what} is {_text(here)} here and {_text(there)} on {far.name}:{far_port}"
                yield fail(near_port, text, "see which end differs from the intent: netkit check qos", device=near.name)
            else:
                yield PASSED


def _qos(seen: Seen, port: str) -> PortQos | None:
    return None if isinstance(seen.facts.qos, Absent) else seen.facts.qos.get(port)


def _mapped(qos: PortQos, dscp: int) -> int | None:
    return None if qos.dscp_to_priority is None else qos.dscp_to_priority.get(dscp)


def _mask(qos: PortQos) -> frozenset[int] | None:
    return qos.pfc_rx if qos.pfc_rx is not None else qos.pfc_tx


def _dscps(profile: LosslessProfile) -> tuple[int, ...]:
    return profile.data_dscp, profile.cnp_dscp


def _judged(name: str, aspects: tuple[Aspect, ...]) -> Iterator[Finding]:
    """Yield a verdict on each aspect that is told; one of which nothing is told could not be judged."""
    known = [aspect for aspect in aspects if aspect.found is not None]
    if not known:
        yield skip(name, "the device tells nothing of this")
    for aspect in known:
        if aspect.is_right:
            yield PASSED
        else:
            yield fail(name, f"{aspect.name} is {_text(aspect.found)}, not {_text(aspect.wanted)}", PLAN)


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


def _classes(profile: LosslessProfile, qos: PortQos) -> Iterator[Aspect]:
    strict = frozenset(one.priority for one in profile.classes if one.is_strict)
    if qos.strict is not None:
        yield Aspect("strict scheduling", qos.strict, strict, strict <= qos.strict)
    for one in profile.classes:
        weight = None if qos.weights is None or one.is_strict else qos.weights.get(one.priority)
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
        _covers("answering CE with CNPs", qos.ecn_notifies, lossless),
        _covers("slowing down for CNPs", qos.ecn_reacts, lossless),
    )


def _covers(name: str, found: frozenset[int] | None, wanted: frozenset[int]) -> Aspect:
    return Aspect(name, found, wanted, found is not None and wanted <= found)
