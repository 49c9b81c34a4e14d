"""Light at both ends of a cable: what is sent, what arrives, and what was sent in earlier runs."""

from collections.abc import Iterator, Mapping
from statistics import median

from netkit.facts import Absent
from netkit.facts.counter import place
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.judge.scene import CableEnd, CheckContext

DARK_DBM = -39.0
"""What modules say of no light at all."""
RX_LIMITS: Mapping[str, Limits] = {
    "DR4": Limits(low_alarm=-7.9, low_warning=-5.9, high_warning=4.0, high_alarm=5.0),
    "DR8": Limits(low_alarm=-7.9, low_warning=-5.9, high_warning=4.0, high_alarm=5.0),
    "FR4": Limits(low_alarm=-9.3, low_warning=-7.3, high_warning=3.5, high_alarm=4.5),
}
"""Of media whose modules bring no limits of their own; the standard's range warns, two decibels beyond it fail."""
TX_LIMITS: Mapping[str, Limits] = {
    "DR4": Limits(low_alarm=-4.9, low_warning=-2.9, high_warning=4.0, high_alarm=6.0),
    "DR8": Limits(low_alarm=-4.9, low_warning=-2.9, high_warning=4.0, high_alarm=6.0),
    "FR4": Limits(low_alarm=-5.3, low_warning=-3.3, high_warning=3.5, high_alarm=5.5),
    "SR4": Limits(low_alarm=-6.6, low_warning=-4.6, high_warning=4.0, high_alarm=6.0),
}
"""The same for what is sent."""
NO_LIMITS = Limits()


def losses(scene: CheckContext) -> Iterator[tuple[str, CableEnd, float | None]]:
    """Yield kind of cable, receiving end and mean loss of every direction; none where only one end measures light.

    Of a device that tells of no modules at all nothing is yielded: that is said once, by its own checks.
    """
    for link in scene.fabric.links():
        for near, far in (
            (CableEnd(link.device, link.port), CableEnd(link.peer, link.peer_port)),
            (CableEnd(link.peer, link.peer_port), CableEnd(link.device, link.port)),
        ):
            received = [lane.rx_dbm for lane in _lanes(scene, near).values() if lane.rx_dbm is not None]
            sent = [lane.tx_dbm for lane in _lanes(scene, far).values() if lane.tx_dbm is not None]
            if received and sent and max(sent) > DARK_DBM and max(received) > DARK_DBM:
                yield link.cable.media, near, sum(sent) / len(sent) - sum(received) / len(received)
            elif (received or sent) and _tells(scene, near) and _tells(scene, far):
                yield link.cable.media, near, None


def sends_less(scene: CheckContext, end: CableEnd) -> float | None:
    """Return by how much less an end sends than in earlier runs, all its lanes together; None where nobody knows."""
    falls = []
    for number, lane in _lanes(scene, end).items():
        earlier = [value for _, value in scene.history.readings(end.device, place(end.port, number), "tx_dbm")]
        if lane.tx_dbm is not None and earlier:
            falls.append(median(earlier) - lane.tx_dbm)
    return sum(falls) / len(falls) if falls else None


def is_weak(scene: CheckContext, end: CableEnd, designed: str) -> bool:
    """Whether the lasers of an end send less than is well, or report a fault: then what arrives says nothing more."""
    seen = scene.devices.get(end.device)
    module = None if seen is None or isinstance(seen.facts.modules, Absent) else seen.facts.modules.get(end.port)
    if module is None:
        return False
    limits = limits_of(module, "tx_dbm", designed)
    least = limits.low_alarm if limits.low_warning is None else limits.low_warning + scene.limits.light_margin_db
    sent = [lane.tx_dbm for lane in module.lanes.values() if lane.tx_dbm is not None and lane.tx_dbm > DARK_DBM]
    is_faulty = any(lane.has_tx_fault for lane in module.lanes.values())
    return is_faulty or (least is not None and any(value < least for value in sent))


def _tells(scene: CheckContext, end: CableEnd) -> bool:
    seen = scene.devices.get(end.device)
    return seen is not None and not isinstance(seen.facts.modules, Absent)


def _lanes(scene: CheckContext, end: CableEnd) -> Mapping[int, Lane]:
    seen = scene.devices.get(end.device)
    found = None if seen is None or isinstance(seen.facts.modules, Absent) else seen.facts.modules.get(end.port)
    return found.lanes if found else {}


def limits_of(module: Module, name: str, designed: str) -> Limits:
    """Return between which values light is well: what the module says, else what is known of its medium."""
    quantity: Quantity = "rx_dbm" if name == "rx_dbm" else "tx_dbm"
    own = module.limits.get(quantity, NO_LIMITS)
    if own != NO_LIMITS:
        return own
    known = RX_LIMITS if quantity == "rx_dbm" else TX_LIMITS
    told = module.identifier, designed
    return next((limits for words in told for media, limits in known.items() if media in words), NO_LIMITS)
