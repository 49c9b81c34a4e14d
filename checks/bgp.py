"""BGP: sessions, prefixes, BFD and drains, as designed."""

from collections.abc import Iterator

from netkit.design import Port, Switch
from netkit.facts import Absent
from netkit.facts.host import BgpSession
from netkit.judge import CABLE_FAULTS, PASSED, CheckContext, DeviceContext, Finding, device_check, fail, skip, warn

SETTLING_S = 15.0
"""Routes and BFD start after the BGP session, so they may still be missing this long after it came up."""
SESSION_REMEDY = "see whether the link is up and both ends run what is intended: netkit plan"


@device_check(
    layer="routing",
    needs=["sessions"],
    on="switch",
    follows=CABLE_FAULTS,
)
def sessions(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every designed BGP session is established, with the AS number it should have.

    Without a session the routes over that link are gone: traffic moves to the remaining links, and a leaf with few
    uplinks may lose part of the fabric. See whether the link is up, then compare both ends with `netkit plan`.
    """
    del context
    found = device.facts.sessions
    for port in _fabric_ports(device):
        session = None if isinstance(found, Absent) else found.get(port.name)
        yield _judged(port, session)


def _judged(port: Port, session: BgpSession | None) -> Finding:
    if session is None:
        return fail(port.name, f"no BGP session to {port.peer}", SESSION_REMEDY)
    if not session.is_established:
        return fail(port.name, f"BGP to {port.peer} is {session.state or 'not established'}", SESSION_REMEDY)
    if session.peer_asn not in {None, port.peer_asn}:
        text = f"BGP speaks to AS {session.peer_asn}, not to AS {port.peer_asn} of {port.peer}"
        return fail(port.name, text, "see where the cable goes, and what the other end runs")
    return PASSED


@device_check(
    layer="routing",
    needs=["sessions"],
    on="switch",
    follows=["bgp.sessions", *CABLE_FAULTS],
)
def prefixes(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every established session receives routes.

    A session without routes is useless: a policy at one of its ends filters all of them. Compare both ends
    with `netkit plan`.
    """
    del context
    for port, session in _established(device):
        if session.received_prefixes is None:
            yield skip(port.name, "the device does not report how many prefixes arrive")
        elif session.received_prefixes == 0 and _is_young(session):
            yield skip(
                port.name, f"BGP to {port.peer} is up for {session.uptime_s:.0f} s only: routes may be on their way"
            )
        elif session.received_prefixes == 0:
            yield fail(port.name, f"{port.peer} announces nothing", "compare both ends with netkit plan")
        else:
            yield PASSED


@device_check(
    layer="routing",
    needs=["sessions"],
    on="switch",
    follows=["bgp.sessions", *CABLE_FAULTS],
)
def bfd(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """BFD watches every established session.

    Without it a link that fails silently goes unnoticed until BGP's hold time is over, and collectives hang meanwhile.
    `netkit plan` shows whether both ends are configured for it. BFD starts after BGP, so it is not judged in the first
    15 s of a session.
    """
    del context
    for port, session in _established(device):
        if session.is_bfd_up is None:
            yield skip(port.name, "the device does not report whether BFD is up")
        elif not session.is_bfd_up and _is_young(session):
            yield skip(port.name, f"BGP to {port.peer} is up for {session.uptime_s:.0f} s only: BFD may be on its way")
        elif not session.is_bfd_up:
            yield warn(port.name, f"BFD to {port.peer} is down", "see whether both ends run BFD: netkit plan")
        else:
            yield PASSED


@device_check(layer="routing", needs=["sessions"], on="switch", follows=[])
def drained(context: CheckContext, seen: DeviceContext) -> Iterator[Finding]:
    """No switch is drained unless the intent drains it.

    A graceful shutdown that was left on removes a part of the fabric's capacity without any alarm. End it with
    `netkit deploy`, or set `drain` in the intent.
    """
    del context
    device = seen.device
    for port, session in _established(seen):
        is_meant = isinstance(device, Switch) and (device.drain or port.peer in device.drain_neighbors)
        if session.is_draining is None:
            yield skip(port.name, "the device does not report whether it drains")
        elif session.is_draining and not is_meant:
            yield fail(
                port.name, f"asks {port.peer} to go around it", "end it: netkit deploy brings back what is intended"
            )
        else:
            yield PASSED


def _fabric_ports(device: DeviceContext) -> Iterator[Port]:
    yield from (port for port in device.ports.values() if port.role != "host")


def _is_young(session: BgpSession) -> bool:
    return session.uptime_s is not None and session.uptime_s < SETTLING_S


def _established(device: DeviceContext) -> Iterator[tuple[Port, BgpSession]]:
    found = device.facts.sessions
    for port in _fabric_ports(device):
        session = None if isinstance(found, Absent) else found.get(port.name)
        if session is not None and session.is_established:
            yield port, session
