"""Whether a fault would have any effect where it is asked for: copper has no light to lose, a host port no session."""

from collections.abc import Callable, Mapping

from netkit.design.fabric import Cable, Fabric, Host, Port, Switch
from netkit.errors import Problem
from netkit.hardware import Catalog
from netkit.lab.faults.fault import InjectedFault

Judge = Callable[[Fabric, InjectedFault], Problem | None]


NO_PFC = "a Linux switch has no PFC"
NO_OPTICS = "a Linux switch tells no optics"
OWN_COUNTERS = "a Linux switch shows the kernel's own counters"
NO_MARKS = "a Linux switch marks no congestion in a lab"
UNSEEN: Mapping[str, Mapping[str, str]] = {
    "frr": {
        "pause-storm": NO_PFC,
        "watchdog-trip": NO_PFC,
        "pfc-off": NO_PFC,
        "dim-optic": NO_OPTICS,
        "dirty-lane": NO_OPTICS,
        "hot-optic": NO_OPTICS,
        "mixed-optic-firmware": NO_OPTICS,
        "counter-reset": OWN_COUNTERS,
        "counter-wrap": OWN_COUNTERS,
        "counter-stuck": OWN_COUNTERS,
        "adaptive-routing-half-on": "a Linux switch has no adaptive routing",
        "ecn-unmarked": NO_MARKS,
        "cnp-remarked": NO_MARKS,
        "cnp-loss": NO_MARKS,
    },
    "sonic": {"adaptive-routing-half-on": "SONiC does not tell on which ports adaptive routing works"},
}
"""What nobody could see of a fault, by the platform of the switch."""
OF_LEAVES = frozenset({"cnp-loss"})
"""Faults of hosts that show only what leaves do."""
OF_BOTH_ENDS = frozenset({"dim-optic", "dirty-lane"})
"""Faults that the other end tells, too."""


def unfit(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    """Return what keeps a fault from having an effect, or None."""
    if reason := _unseen(fabric, fault):
        return Problem(f"{reason}: {fault.name} at {fault.place} would not show", "see docs/faults.md for what does")
    judge = JUDGES.get(fault.name)
    return judge(fabric, fault) if judge else None


def _unseen(fabric: Fabric, fault: InjectedFault) -> str:
    """Return why nobody could see a fault at such a switch, or behind such a leaf; empty when somebody could."""
    device = fabric.device(fault.device)
    if isinstance(device, Host):
        leaves = {nic.leaf for nic in device.nics if fault.port in {"", nic.interface}}
        platforms = {fabric.switch(leaf).platform for leaf in leaves} if fault.name in OF_LEAVES else set()
    else:
        platforms = {fabric.switch(fault.device).platform}
        if fault.name in OF_BOTH_ENDS:
            far = fabric.device(port_of(fabric, fault).peer)
            platforms.add(far.platform if isinstance(far, Switch) else "")
    reasons = [UNSEEN.get(platform, {}).get(fault.name, "") for platform in sorted(platforms)]
    return reasons[0] if reasons and all(reasons) else ""


def port_of(fabric: Fabric, fault: InjectedFault) -> Port:
    """Return the switch port at this end of a fault's cable, or for a host NIC the one at the other end."""
    device = fabric.device(fault.device)
    if isinstance(device, Switch):
        return next(port for port in device.ports if port.name == fault.port)
    nic = next(nic for nic in device.nics if nic.interface == fault.port) if device else None
    if nic is None:
        raise KeyError(fault.place)
    return next(port for port in fabric.switch(nic.leaf).ports if port.name == nic.leaf_port)


def _needs_light(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    cable = port_of(fabric, fault).profile.cable
    if cable.kind != "optical":
        return _wrong_media(fault, cable, "tells no light by lane", "with an optical module")
    return _needs_lane(fabric, fault)


def _needs_lane(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    profile = port_of(fabric, fault).profile
    media = Catalog().media().get(profile.cable.media)
    lanes = media.lanes if media and media.lanes else profile.split.lanes_per_port
    if fault.number("lane") <= lanes:
        return None
    return Problem(f"{fault.place} has {lanes} lanes", f"give a lane from 1 to {lanes}")


def _needs_power(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    cable = port_of(fabric, fault).profile.cable
    return _wrong_media(fault, cable, "is passive", "with a module") if cable.kind == "dac" else None


def _needs_session(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    if not fault.port or port_of(fabric, fault).role != "host":
        return None
    return Problem(f"{fault.place} leads to a host", "name a port to another switch")


def _needs_other(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    other = other_port(fabric, fault)
    if other and other != fault.port:
        return None
    return Problem(f"{fault.place} cannot be swapped", "give with=PORT, another port of the same device")


def _needs_rail(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    other = other_port(fabric, fault, "as")
    if other and other != fault.port:
        return None
    return Problem(f"{fault.place} cannot use another rail's table", "give as=INTERFACE, another NIC of the host")


def other_port(fabric: Fabric, fault: InjectedFault, option: str = "with") -> str:
    """Return the port a fault's option names, else the next one of the same kind; empty when there is none."""
    device = fabric.device(fault.device)
    if isinstance(device, Switch):
        own = port_of(fabric, fault)
        names = [port.name for port in device.ports if port.role == own.role]
        known = [port.name for port in device.ports]
    else:
        names = known = [nic.interface for nic in device.nics] if device else []
    given = fault.text(option)
    if given:
        return given if given in known else ""
    return names[(names.index(fault.port) + 1) % len(names)]


def _wrong_media(fault: InjectedFault, cable: Cable, what: str, where: str) -> Problem:
    return Problem(
        f"{fault.place} has {cable.media}, which {what}: {fault.name} would not show", f"name a port {where}"
    )


JUDGES: Mapping[str, Judge] = {
    "dim-optic": _needs_light,
    "dirty-lane": _needs_lane,
    "hot-optic": _needs_power,
    "mixed-optic-firmware": _needs_power,
    "adaptive-routing-half-on": _needs_session,
    "bgp-session-down": _needs_session,
    "wrong-cable": _needs_other,
    "wrong-source-route": _needs_rail,
}
