"""Peers outside the fabric: sessions, what they bring, and the default route behind them."""

from collections.abc import Iterator

from netkit.design import Switch
from netkit.design.external import takers
from netkit.design.fabric import ExternalPort
from netkit.facts import Absent
from netkit.facts.host import BgpSession
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fail, skip, warn

DEFAULT_ROUTE = "0.0.0.0/0"
NEAR_LIMIT = 0.9
SETTLING_S = 15.0
"""BFD starts after the BGP session."""
SESSION_REMEDY = "see whether the port is up; then ask the peer for address, AS number and limit"


@device_check(layer="routing", needs=["sessions"], on="switch", follows=[])
def sessions(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every session to a peer outside the fabric is established, receives routes, and stays below its limit.

    If a peer announces more than `max_prefixes`, the session is closed and the fabric loses this route out. Traffic
    within the fabric does not depend on it. A session that does not come up is often a wrong address or AS number at
    one end.
    """
    del context
    switch, found = device.device, device.facts.sessions
    if isinstance(found, Absent):
        return
    for port in switch.external if isinstance(switch, Switch) else ():
        session = found.get(port.peer) or found.get(port.name)
        yield _judged(port, session)
        if session is not None and session.is_established and port.has_bfd and session.is_bfd_up is not None:
            yield _bfd(port, session)


def _bfd(port: ExternalPort, session: BgpSession) -> Finding:
    if session.is_bfd_up:
        return PASSED
    if session.uptime_s is not None and session.uptime_s < SETTLING_S:
        return skip(
            port.name, f"BGP to {port.peer_name} is up for {session.uptime_s:.0f} s only: BFD may be on its way"
        )
    return warn(port.name, f"BFD to {port.peer_name} is down", "ask the peer whether it runs BFD")


def _judged(port: ExternalPort, session: BgpSession | None) -> Finding:  # noqa: PLR0911 - one return for each verdict
    if session is None:
        return fail(port.name, f"no BGP session to {port.peer_name}", "see netkit plan: is the session configured?")
    if not session.is_established:
        state = session.state or "not established"
        return fail(port.name, f"BGP to {port.peer_name} is {state}", SESSION_REMEDY)
    if session.peer_asn not in {None, port.peer_asn}:
        text = f"{port.peer_name} is AS {session.peer_asn}, not AS {port.peer_asn}"
        return fail(port.name, text, "see where the cable goes")
    count = session.received_prefixes
    if count is None:
        return skip(port.name, "the device does not report how many prefixes arrive")
    if count == 0:
        return fail(port.name, f"{port.peer_name} announces nothing that is accepted", "ask the peer for its routes")
    if count >= NEAR_LIMIT * port.max_prefixes and count > len(port.accepted):
        text = f"{port.peer_name} announces {count} prefixes; {port.max_prefixes} are the limit"
        return warn(port.name, text, "raise max_prefixes, or ask the peer to announce less")
    return PASSED


@device_check(layer="routing", needs=["routes"], on="switch", follows=["external.sessions", "bgp.sessions"])
def default(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every switch that needs a default route from outside has one.

    The intent accepts a default route from a peer, and the fabric passes it down. Without it, hosts behind this switch
    cannot reach the outside. See `netkit check external.sessions` for the switches that have peers.
    """
    found = device.facts.routes
    if isinstance(found, Absent) or device.name not in takers(context.fabric, DEFAULT_ROUTE):
        return
    if found.get(DEFAULT_ROUTE):
        yield PASSED
    else:
        yield fail("", "no default route", "see netkit check external.sessions for the switches that have peers")
