"""Pauses of one port and priority over the window, and their verdict, shared by several checks."""

from dataclasses import dataclass

from netkit.facts.counter import place
from netkit.judge.context import CheckContext, DeviceContext
from netkit.judge.delta import CounterState, Delta
from netkit.judge.finding import Verdict

PAUSE_COUNTERS = (
    *("rx_pause/lossless", "tx_pause/lossless", "rx_pause_us/lossless", "tx_pause_us/lossless"),
    *("port_rx_pause", "port_tx_pause"),
)


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses of one direction at one place, over the window."""

    frames: Delta
    time_us: Delta
    is_total: bool = False
    """Whether they are of all priorities together, since the device counts no others."""

    @property
    def is_known(self) -> bool:
        return self.frames.is_known or self.time_us.is_known

    @property
    def fraction(self) -> float | None:
        """The part of the time that was paused; None if the device does not report it."""
        return min(1.0, self.time_us.per_s / 1e6) if self.time_us.is_known else None

    def verdict(self, context: CheckContext) -> Verdict:
        """Judge them by time where that is reported, else by rate."""
        limits = context.limits
        if self.fraction is not None:
            value, least, most = self.fraction, limits.pause_fraction_warn, limits.pause_fraction_fail
        else:
            value, least, most = self.frames.per_s, limits.pause_rate_warn, limits.pause_rate_fail
        return Verdict.FAIL if value >= most else Verdict.WARN if value >= least else Verdict.PASS

    @property
    def strength(self) -> float:
        """A measure to compare pauses of one switch by."""
        return self.time_us.per_s if self.time_us.is_known and self.time_us.value else self.frames.per_s

    def __str__(self) -> str:
        time = f", {self.fraction:.1%} of the time" if self.fraction is not None else ""
        kind = " of all priorities" if self.is_total else ""
        return f"{self.frames.per_s:.0f} pauses{kind} a second{time}"


def received(device: DeviceContext, port: str, priority: int) -> Pauses:
    """The pauses a port receives: the other end is congested, and holds up this port."""
    return _pauses(device, "rx", port, priority)


def sent(device: DeviceContext, port: str, priority: int) -> Pauses:
    """The pauses a port sends: this device is congested, and holds up the other end."""
    return _pauses(device, "tx", port, priority)


def received_at(context: CheckContext, device: DeviceContext, port: str, priority: int) -> Pauses:
    """The pauses a port receives; if the device does not count them, those the other end sends."""
    pauses = received(device, port, priority)
    far = None if pauses.is_known else context.far(device.name, port)
    sender = context.devices.get(far.device) if far else None
    other = sent(sender, far.port, priority) if sender and far else pauses
    return other if other.is_known else pauses


def sent_at(context: CheckContext, device: DeviceContext, port: str, priority: int) -> Pauses:
    """The pauses a port sends; if the device does not count them, those that arrive at the other end."""
    pauses = sent(device, port, priority)
    far = None if pauses.is_known else context.far(device.name, port)
    receiver = context.devices.get(far.device) if far else None
    other = received(receiver, far.port, priority) if receiver and far else pauses
    return other if other.is_known else pauses


def _pauses(device: DeviceContext, direction: str, port: str, priority: int) -> Pauses:
    at = place(port, priority)
    own = Pauses(device.delta(f"{direction}_pause", at), device.delta(f"{direction}_pause_us", at))
    if own.is_known or own.frames.state is not CounterState.MISSING:
        return own
    total = device.delta(f"port_{direction}_pause", port)
    return Pauses(total, own.time_us, is_total=True) if total.is_known else own


def congestion(switch: str, port: str) -> str:
    """The cause name of a congested switch port, which a switch without ECN marking explains."""
    return f"congestion at {switch}:{port}"
