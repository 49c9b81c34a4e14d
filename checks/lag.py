"""LAGs of networks beside the rails, and the pairs of switches that hosts see as one."""

from collections.abc import Iterator

from netkit.design import Host, Switch
from netkit.design.fabric import Attachment
from netkit.facts import Absent
from netkit.facts.device import Lag, Mlag
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fail, skip, warn

LINKS = ["links.up", "links.cabling", "links.flaps"]


@device_check(layer="link", on="host", follows=LINKS)
def members(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every LAG of a host is up, and each of its NICs carries it.

    A LAG that lost a NIC works until the other one fails, or until the other switch of the pair is changed: then the
    host is cut off. If the link of a NIC is up but LACP excludes it, it has another LACP partner than the others: it is
    connected to a switch outside the pair, MLAG is down, or one end has no LAG.
    """
    found = device.facts.lags
    for one in device.device.attachments if isinstance(device.device, Host) else ():
        if not one.members:
            continue
        if isinstance(found, Absent):
            yield skip(one.interface, f"LAGs are not known: {found.reason}")
        else:
            yield from _of_lag(context, device, one, found.get(one.interface, Lag()))


def _of_lag(context: CheckContext, device: DeviceContext, one: Attachment, lag: Lag) -> Iterator[Finding]:
    for name in one.members:
        if lag.members.get(name):
            yield PASSED
            continue
        far = context.far(device.name, name)
        text = f"carries nothing of {one.interface}" if name in lag.members else f"is not in {one.interface}"
        if not any(lag.members.values()):
            text += f"; no NIC does: the host cannot reach {one.network}"
        remedy = f"see the link to {far}, and netkit check lag on both switches; netkit plan shows what is configured"
        yield fail(name, text, remedy)


@device_check(layer="link", on="switch", follows=LINKS)
def ports(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every LAG of a switch towards a host is up.

    With its link up and the LAG down, LACP found no partner: the host has no LAG there, or another port of it.
    """
    found, access = device.facts.lags, device.device.access if isinstance(device.device, Switch) else None
    for lag in access.lags if access else ():
        state = Lag() if isinstance(found, Absent) else found.get(str(lag.number), Lag(is_up=False))
        if lag.ports[0].kind != "host":
            continue
        if state.is_up is None:
            reason = found.reason if isinstance(found, Absent) else "the device does not report its state"
            yield skip(lag.ports[0].name, f"LAG {lag.number} is not known: {reason}")
        elif not state.is_up:
            text = f"LAG {lag.number} to {lag.peer} is down"
            yield fail(lag.ports[0].name, text, f"see the LAG of {lag.peer}: netkit check lag.members")
        else:
            yield PASSED
    del context


@device_check(layer="link", on="switch", follows=["links.up", "links.cabling"])
def pair(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Both switches of a pair see each other, over the links between them and beside them.

    Without its peer the secondary switch takes its LAGs down, or both answer as one system and frames are lost. Without
    the heartbeat over the management network, a switch cannot distinguish a dead peer from dead links. Check the links
    between them, and `netkit plan` of both.
    """
    del context
    found, access = device.facts.mlag, device.device.access if isinstance(device.device, Switch) else None
    if access is None or access.pair is None:
        return
    if isinstance(found, Absent) or found == Mlag():
        reason = found.reason if isinstance(found, Absent) else "the device reports nothing of it"
        yield skip("", f"MLAG is not known: {reason}")
        return
    partner, links = access.pair.partner, ", ".join(port.name for port in access.peer_links)
    if found.is_peer_alive is False:
        yield fail("", f"MLAG does not see {partner}", f"see {links}, and netkit plan of both switches")
    elif found.role and found.role == found.peer_role:
        yield fail("", f"both it and {partner} are {found.role}", f"see {links}, and netkit plan of both switches")
    else:
        yield PASSED
    if found.is_backup_active is False:
        text = f"{partner} does not answer at its management address {access.pair.backup}"
        yield warn("", text, "see the management network: it decides whether the peer or the links are dead")
