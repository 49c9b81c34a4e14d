"""Counters that stand still: what one end of a cable sends, the other end must see arrive."""

from collections.abc import Callable, Mapping

from netkit.facts import Sample
from netkit.judge.delta import Delta
from netkit.judge.parity import skew_s

LIVELY_BYTES = 10_000
"""What one end must have sent in the window before the other end's standing counter means anything."""
CROSSED = (("rx_bytes", "tx_bytes"), ("tx_bytes", "rx_bytes"))
End = tuple[tuple[Sample, ...], str]
"""The samples of a device, and a port of it."""
Deltas = Callable[[str], Mapping[str, Delta]]


def still(mine: Deltas, theirs: Deltas, near: End, far: End) -> bool | None:
    """Whether the counters of one end stand still while the other end counts; None when nobody can say."""
    (samples, port), (others, other) = near, far
    told = [(mine(one).get(port), theirs(another).get(other)) for one, another in CROSSED]
    known = [(one, another) for one, another in told if one and another and one.is_known and another.is_known]
    if not known:
        return None
    windows = [(found[0].at_s, found[-1].at_s) for found in (samples, others)]
    if skew_s(windows) > min(ended_s - began_s for began_s, ended_s in windows):
        return None
    return not any(one.value for one, _ in known) and any(another.value > LIVELY_BYTES for _, another in known)
