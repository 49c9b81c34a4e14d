"""Links: up, at the right speed, with the same settings at both ends, and cabled as designed."""

from collections.abc import Iterator, Mapping, Sequence

from netkit.design import Host, Switch
from netkit.design.fabric import CableEnd
from netkit.facts import Absent
from netkit.facts.device import Interface, Neighbor, without_domain
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fabric_check, fail, skip, warn
from netkit.judge.outage import is_by_switch, last_outage

SPEED_TOLERANCE = 0.01
LONGEST_OUTAGE_S = 300.0
"""No module takes longer to come up: this was maintenance."""
OLDEST_OUTAGE_S = 86_400.0
FECS = frozenset({"rs", "fc", "none"})
"""Values that name a FEC; others, such as `auto`, are device-specific."""


@device_check(layer="link", needs=["interfaces"], follows=["optics.flags", "optics.light", "links.cabling"], reads=[])
def up(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every designed port is up.

    A port that is down costs a host a rail, or a leaf a path. Check that both ends are enabled and powered, then
    check the module and the cable: `netkit check optics`. All ports to a host that is switched off are one cause.
    """
    for port, far in _ends(context, device):
        state = _interface(device, port)
        if state is None:
            yield fail(port, "the device has no such port", "see whether it is broken out as designed: netkit plan")
        elif state.is_up is None:
            yield skip(port, "the device does not report whether it is up")
        elif not state.is_up and state.is_enabled is not False and (gone := _gone(context, device, port)):
            text = f"down; {far} is at the other end, a host that was not reached and has no link anywhere"
            yield fail(port, text, f"see whether {gone} is switched on; if so, both ends of its cables", cause=gone)
        elif not state.is_up:
            is_off = state.is_enabled is False
            what = "down, because it is disabled" if is_off else "down"
            dark = [context.way(device.name, port), context.way_in(device.name, port)] if is_off else []
            remedy = "see whether both ends are enabled; then the cable"
            cause = _carrier(context, device, port)
            yield fail(port, f"{what}; {far} is at the other end", remedy, cause=cause, explains=dark)
        else:
            yield PASSED


def _carrier(context: CheckContext, device: DeviceContext, port: str) -> str:
    """The cause name of a cable without carrier, which a flapping link explains."""
    return f"{context.cable(device.name, port)}: no carrier"


def _gone(context: CheckContext, device: DeviceContext, port: str) -> str:
    """The host at the other end if it was not reached and no leaf sees any of its links up; else nothing."""
    end = context.far(device.name, port)
    host = context.devices.get(end.device) if end else None
    if host is None or host.is_reached or not host.nics:
        return ""
    ends = ((context.devices.get(nic.leaf), nic.leaf_port) for nic in host.nics.values())
    states = [_interface(leaf, far) for leaf, far in ends if leaf is not None]
    return "" if any(state is not None and state.is_up for state in states) else host.name


@device_check(layer="link", needs=["interfaces"], follows=["links.cabling"])
def speed(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every port that is up runs at the speed it is designed for.

    A port that runs slower slows down its whole rail. Check the module, the lanes and the breakout of both ends.
    """
    for port, far, state, wanted_gbps in _designed_speeds(context, device):
        if state.speed_gbps is None:
            yield skip(port, "the device does not report its speed")
        elif abs(state.speed_gbps - wanted_gbps) > SPEED_TOLERANCE * wanted_gbps:
            text = f"runs at {state.speed_gbps:g}G, not at {wanted_gbps}G, towards {far}"
            yield fail(port, text, "compare breakout and module of both ends")
        else:
            yield PASSED


@device_check(layer="link", needs=["interfaces"], follows=[])
def mtu(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every port has the MTU it is designed with.

    A smaller one at one end loses only large packets: pings pass, and collectives hang. `netkit plan` shows the
    difference, `netkit deploy` sets it.
    """
    for port, far in _ends(context, device):
        state, wanted = _interface(device, port), _mtu_bytes(device, port)
        if state is None:
            continue
        if state.mtu_bytes is None:
            yield skip(port, "the device does not report its MTU")
        elif state.mtu_bytes != wanted and not (state.mtu_bytes > wanted and _is_switched(device, port)):
            text = f"has an MTU of {state.mtu_bytes}, not of {wanted}, towards {far}"
            yield fail(port, text, "netkit plan shows whether it is configured so; netkit deploy fixes it")
        else:
            yield PASSED


@fabric_check(layer="link", needs=["interfaces"], follows=[], reads=[])
def fec(context: CheckContext) -> Iterator[Finding]:
    """Both ends of a link that is up use the same FEC.

    Ends that differ usually do not come up; if they do, bit errors in one direction are not corrected. Let both ends
    negotiate, or set the FEC of the module at both.
    """
    for near, near_port, far, far_port in context.cables():
        near_state, other = _interface(near, near_port), _interface(far, far_port)
        if near_state is None or other is None or not (near_state.is_up and other.is_up):
            continue
        if not near_state.fec or not other.fec:
            yield skip(near_port, "not both ends report their FEC", device=near.name)
        elif near_state.fec != other.fec and not {near_state.fec, other.fec} <= FECS:
            text = f"FEC {near_state.fec!r} here and {other.fec!r} on {far.name}:{far_port} cannot be compared"
            yield skip(near_port, text, device=near.name)
        elif near_state.fec != other.fec:
            text = f"FEC {near_state.fec} here, {other.fec} on {far.name}:{far_port}"
            yield fail(near_port, text, "set both ends alike: netkit plan", device=near.name)
        else:
            yield PASSED


@device_check(
    layer="link",
    needs=["counters"],
    window=True,
    follows=["optics.flags", "optics.light", "optics.fec", "links.cabling", "links.up"],
)
def flaps(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No link went down within the window.

    Each time a link goes down, BGP and every RDMA transfer over it restart. Check the optics of both ends and reseat
    the module; take a port that flaps again out of service.
    """
    for port, far in _ends(context, device):
        counted = [device.delta(name, port) for name in ("link_downs", "carrier_changes")]
        known = [delta for delta in counted if delta.is_known]
        if not known:
            yield skip(port, f"how often it went down is not known: {counted[-1].state}")
        elif any(delta.value for delta in known):
            changes = max(delta.value for delta in known)
            text = f"went down or up {changes} times in {known[0].seconds:.0f} s; {far} is at the other end"
            remedy = "see netkit check optics for both ends; reseat or replace the module"
            yield fail(port, text, remedy, explains=[_carrier(context, device, port)] if changes > 1 else [])
        else:
            yield PASSED


@device_check(layer="link", needs=["interfaces"], follows=["links.flaps"], reads=["sessions", "system"])
def link_up_time(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Links come up quickly.

    A module whose equalizer does not settle takes tens of seconds, and often fails before long. Reseat it; if it is
    slow again, swap it. NICs report the time themselves. Switches report when a link went down and when it came back,
    which looks the same when a cable was pulled or a port disabled. The last outage between two switches is judged,
    unless one of them started meanwhile, lost most of its links to switches, or enabled several ports at once. An
    outage that took more than five minutes, or ended a day ago, is not judged either.
    """
    for port, far in _ends(context, device):
        state = _interface(device, port)
        if state is not None and state.link_up_s is not None:
            if state.link_up_s > context.limits.link_up_warn_s:
                text = f"took {state.link_up_s:.0f} s to come up; {far} is at the other end"
                yield warn(port, text, "update the firmware of module and port, then swap the module")
            else:
                yield PASSED
        elif (
            (end := context.far(device.name, port)) is None
            or port not in device.ports
            or device.ports[port].role == "host"
        ):
            yield skip(port, "the device does not report how long the link took")
        elif device.ports[port].role == "up" or not _reports_ports(context, end.device):
            yield _outage(context, CableEnd(device.name, port), end)


def _reports_ports(context: CheckContext, device: str) -> bool:
    """Whether a device reports its ports: then a cable between switches is judged at its lower end only."""
    seen = context.devices.get(device)
    return seen is not None and not isinstance(seen.facts.interfaces, Absent)


def _outage(context: CheckContext, near: CableEnd, far: CableEnd) -> Finding:
    last = last_outage(context, near)
    if last is None:
        return skip(near.port, "neither end reports when the link was gone")
    if not context.limits.link_up_warn_s < last.lasted_s <= LONGEST_OUTAGE_S or last.ended_ago_s > OLDEST_OUTAGE_S:
        return PASSED
    gone = f"was without a link for {last.lasted_s:.0f} s"
    for end in (near, far):
        is_explained = is_by_switch(context, end, last)
        if is_explained is None:
            return skip(near.port, f"{gone}; whether {end.device} started meanwhile is not known")
        if is_explained:
            return PASSED
    text = f"{gone}, until {last.ended_ago} before this reading; {far} is at the other end"
    remedy = "unless it was unplugged or disabled: update the firmware of module and port, then swap the module"
    return warn(near.port, text, remedy)


@fabric_check(layer="physical", needs=["neighbors"], follows=[], reads=["interfaces"])
def cabling(context: CheckContext) -> Iterator[Finding]:
    """Every cable is connected as designed, by LLDP.

    A finding names the cable, its actual and its intended port: `netkit design --cabling` lists all cables. Swapped
    cables send a rail through another rail's leaf.
    """
    owners = _owners(context)
    announced = {
        CableEnd(device.name, port): [_end(context, one, owners) for one in neighbors]
        for device in context.devices.values()
        if not isinstance(device.facts.neighbors, Absent)
        for port, neighbors in device.facts.neighbors.items()
    }
    for device in context.devices.values():
        if not isinstance(device.facts.neighbors, Absent):
            for port, _ in _ends(context, device):
                yield _plugged(context, device, port, announced)
        elif device.is_reached:
            yield skip("", f"no neighbours: {device.facts.neighbors.reason}", device=device.name)


def _plugged(
    context: CheckContext, device: DeviceContext, port: str, announced: Mapping[CableEnd, Sequence[CableEnd]]
) -> Finding:
    wanted, here = context.far(device.name, port), CableEnd(device.name, port)
    neighbors = announced.get(here, ())
    if wanted is None or not neighbors:
        return skip(port, "no neighbour announces itself there", device=device.name)
    ends = [_known(context, here, one, announced) for one in neighbors]
    if wanted in ends:
        return PASSED  # a NIC's own agent may announce itself beside its host's
    found = next((found for found in ends if found.device), None)
    if found is None:
        return skip(
            port, f"a neighbour announces port {neighbors[0].port!r} there, but no system name", device=device.name
        )
    home = context.far(found.device, found.port)
    if found.device == wanted.device and home is None:
        return skip(
            port,
            f"{wanted.device} announces this port as {found.port!r}, a name that is not in the design",
            device=device.name,
        )
    belongs = f"; the cable at {found} belongs in {home}" if home else ""
    text = f"is plugged into {found}, not into {wanted}"
    cables = sorted({context.cable(device.name, port), context.cable(found.device, found.port)} - {""})
    remedy = f"move the cable at {device.name}:{port} to where it belongs{belongs}"
    return fail(port, text, remedy, device=device.name, cause=f"plugs of {' and '.join(cables)}")


def _known(
    context: CheckContext, here: CableEnd, end: CableEnd, announced: Mapping[CableEnd, Sequence[CableEnd]]
) -> CableEnd:
    """A neighbour by the name its port has in the design: where it uses another, the port that hears this one.

    Some NOSes announce their own port names, which only the device itself can translate.
    """
    if context.far(end.device, end.port) is not None:
        return end
    own = (port for port, others in announced.items() if port.device == end.device and here in others)
    return next(own, end)


def _owners(context: CheckContext) -> Mapping[str, CableEnd]:
    """The NIC that each MAC address belongs to, by design and by what hosts report."""
    owners: dict[str, CableEnd] = {}
    for host in context.fabric.hosts:
        owners.update((nic.mac.lower(), CableEnd(host.name, nic.interface)) for nic in host.nics if nic.mac)
    for device in context.devices.values():
        if isinstance(device.facts.interfaces, Absent) or not isinstance(device.device, Host):
            continue
        found = device.facts.interfaces
        owners.update((state.mac.lower(), CableEnd(device.name, name)) for name, state in found.items() if state.mac)
    return owners


def _end(context: CheckContext, neighbor: Neighbor, owners: Mapping[str, CableEnd]) -> CableEnd:
    """Identify a neighbour: a NIC by its MAC address, others by system name and port."""
    owner = owners.get(neighbor.port.lower())
    if owner is not None:
        return owner
    system = without_domain(neighbor.system, context.fabric.device)
    seen = context.devices.get(system)
    if seen is not None and neighbor.port in seen.cabled:
        return CableEnd(system, neighbor.port)
    known = context.fabric.device(system)
    names = {port.name: port.name for port in known.cabled} if isinstance(known, Switch) else {}
    names |= {name: name for name in known.cabled} if isinstance(known, Host) else {}
    names = _aliases(context, system) | names
    port = next((names[name] for name in (neighbor.port, neighbor.description) if name in names), neighbor.port)
    return CableEnd(system, port)


def _aliases(context: CheckContext, system: str) -> dict[str, str]:
    """The announced port names of a device that differ from those of the design."""
    device = context.devices.get(system)
    found = {} if device is None or isinstance(device.facts.interfaces, Absent) else device.facts.interfaces
    return {state.alias: name for name, state in found.items() if state.alias}


@device_check(layer="physical", needs=["nics", "neighbors"], on="host", follows=["links.cabling"])
def rails(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every NIC is in its PCI slot and cabled to the leaf of its rail.

    A NIC in another slot, or cabled to another rail's leaf, works, and slows every collective down: traffic of its GPU
    takes the long way. Move the cable, or correct the host model's list of PCI addresses.
    """
    found, neighbors = device.facts.nics, device.facts.neighbors
    if isinstance(found, Absent) or isinstance(neighbors, Absent):
        return
    leaves = {nic.leaf: nic.rail for nic in device.nics.values()}
    for name, nic in device.nics.items():
        card = found.get(name)
        if card is None or (card.pci and card.pci.lower() != nic.pci.lower()):
            there = f"is at {card.pci}" if card else "is not there"
            yield fail(
                name, f"the NIC of rail {nic.rail} {there}, not in slot {nic.pci}", "see the host model's PCI list"
            )
            continue
        systems = [without_domain(one.system, context.fabric.device) for one in neighbors.get(name, ()) if one.system]
        if not systems:
            yield skip(name, "no leaf announces itself there")
        elif nic.leaf not in systems:
            rail = f" of rail {leaves[systems[0]]}" if systems[0] in leaves else ""
            yield fail(name, f"rail {nic.rail} is cabled to {systems[0]}{rail}, not to {nic.leaf}", "move the cable")
        else:
            yield PASSED


def _ends(context: CheckContext, device: DeviceContext) -> Iterator[tuple[str, str]]:
    """Yield the designed ports or NICs of a device, and what is at their other end."""
    for name in device.cabled:
        yield name, str(context.far(device.name, name) or "nothing")


def _interface(device: DeviceContext, port: str) -> Interface | None:
    found = device.facts.interfaces
    return None if isinstance(found, Absent) else found.get(port)


def _designed_speeds(context: CheckContext, device: DeviceContext) -> Iterator[tuple[str, str, Interface, int]]:
    """Yield each port that is up, its other end, its state, and the speed of its cable by design."""
    for port, far in _ends(context, device):
        state, speed_gbps = _interface(device, port), context.fabric.speeds_gbps.get(CableEnd(device.name, port))
        if state is not None and state.is_up and speed_gbps is not None:
            yield port, far, state, speed_gbps


def _is_switched(device: DeviceContext, port: str) -> bool:
    """Whether a port only switches: some systems cannot make it take less than the chip does, and none has to."""
    access = device.device.access if isinstance(device.device, Switch) else None
    return access is not None and any(one.name == port for one in access.ports)


def _mtu_bytes(device: DeviceContext, port: str) -> int:
    """The designed MTU: networks beside the rails have their own."""
    if isinstance(device.device, Host):
        beside = (one.mtu_bytes for one in device.device.attachments if port in one.nics)
        return next(beside, device.device.mtu_bytes)
    known = device.ports.get(port)
    return known.profile.mtu_bytes if known else device.device.mtu_bytes
