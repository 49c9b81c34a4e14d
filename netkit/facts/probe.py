"""What came of packets that one NIC sent to another."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Probe:
    """Packets of one size from one NIC to another that must not be cut into pieces on their way."""

    source: str
    interface: str
    destination: str
    size_bytes: int
    """Of the whole IP packet."""
    sent: int = 0
    received: int = 0
    least_us: float | None = None
    """The quickest answer; what the host itself adds under load is least in it."""
    usual_us: float | None = None
    most_us: float | None = None
    reason: str = ""
    """What the kernel or a router on the way said of packets that did not pass."""
    router: str = ""
    """The address of the router that said so; empty for the host's own kernel."""
