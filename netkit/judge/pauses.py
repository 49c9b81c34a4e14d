"""Pauses of one port and priority over the window, and how bad they are: what several checks judge by."""

from dataclasses import dataclass

from netkit.facts.counter import place
from netkit.judge.context import CheckContext, DeviceContext
from netkit.judge.delta import CounterState, Delta
from netkit.judge.finding import Verdict


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses of one direction at one place, over the window."""

    frames: Delta
    time_us: Delta
    is_total: bool = False
    """Whether they are those of all priorities together, since the device counts no others."""

    @property
    def is_known(self) -> bool:
        """Whether anything is known about them."""
        return self.frames.is_known or self.time_us.is_known

    @property
    def fraction(self) -> float | None:
        """Return the part of the time that was paused; None when the device does not report."""
        return min(1.0, self.time_us.per_s / 1e6) if self.time_us.is_known else None

    def verdict(self, context: CheckContext) -> Verdict:
        """Return how bad they are: by time where that is reported, by rate elsewhere."""
        limits = context.limits
        if self.fraction is not None:
            value, least, most = self.fraction, limits.pause_fraction_warn, limits.pause_fraction_fail
        else:
            value, least, most = self.frames.per_s, limits.pause_rate_warn, limits.pause_rate_fail
        return Verdict.FAIL if value >= most else Verdict.WARN if value >= least else Verdict.PASS

    @property
    def strength(self) -> float:
        """Return a measure to compare pauses of one switch by."""
        return self.time_us.per_s if self.time_us.is_known and self.time_us.value else self.frames.per_s

    def __str__(self) -> str:
        time = f", {self.fraction:.1%} of the time" if self.fraction is not None else ""
        kind = " of all priorities" if self.is_total else ""
        return f"{self.frames.per_s:.0f} pauses{kind} a second{time}"


def received(device: DeviceContext, port: str, priority: int) -> Pauses:
    """Return the pauses a port receives: the other end is congested, and this port is held up."""
    return _pauses(device, "rx", port, priority)


def sent(device: DeviceContext, port: str, priority: int) -> Pauses:
    """Return the pauses a port sends: this device is congested, and holds up the other end."""
    return _pauses(device, "tx", port, priority)


def received_at(context: CheckContext, device: DeviceContext, port: str, priority: int) -> Pauses:
    """Return the pauses a port receives; of a device that does not count them, those sent to it."""
    pauses, far = received(device, port, priority), context.far(device.name, port)
    sender = context.devices.get(far.device) if far else None
    other = sent(sender, far.port, priority) if sender and far else pauses
    return other if other.is_known and not pauses.is_known else pauses


def sent_at(context: CheckContext, device: DeviceContext, port: str, priority: int) -> Pauses:
    """Return the pauses a port sends; of a device that does not count them, those that arrive at the other end."""
    pauses, far = sent(device, port, priority), context.far(device.name, port)
    receiver = context.devices.get(far.device) if far else None
    other = received(receiver, far.port, priority) if receiver and far else pauses
    return other if other.is_known and not pauses.is_known else pauses


def _pauses(device: DeviceContext, direction: str, port: str, priority: int) -> Pauses:
    at = place(port, priority)
    own = Pauses(device.delta(f"{direction}_pause", at), device.delta(f"{direction}_pause_us", at))
    if own.is_known or own.frames.state is not CounterState.MISSING:
        return own
    total = device.delta(f"port_{direction}_pause", port)
    return Pauses(total, own.time_us, is_total=True) if total.is_known else own


def congestion(switch: str, port: str) -> str:
    """Return one name for a switch port being fuller than it should be, which a switch that marks nothing explains."""
    return f"congestion at {switch}:{port}"
