"""Sessions and routes as a device sees them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BgpSession:
    """A BGP session, by the interface it runs on; None where the device does not tell."""

    is_established: bool
    state: str = ""
    peer_asn: int | None = None
    received_prefixes: int | None = None
    sent_prefixes: int | None = None
    uptime_s: float | None = None
    drops: int | None = None
    """How often it went down, since it is counted."""
    is_bfd_up: bool | None = None
    is_draining: bool | None = None
    """Whether this end asks the other one to go around it (graceful shutdown)."""


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A way of a host to everything it knows no better way to, in its main table."""

    interface: str
    gateway: str = ""
    metric: int = 0
    """Of several of one family the lowest holds."""
    family: int = 4
    """Version of the Internet Protocol."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a host's kernel answers when asked where a packet would go."""

    source: str
    interface: str
    destination: str
    out_interface: str = ""
    gateway: str = ""
    failure: str = ""
    """Why there is no way; empty when there is one."""
