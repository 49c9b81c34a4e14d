"""What there is to look at on a device, from the design."""

from collections.abc import Iterator

from netkit.design import Fabric, Host, Nic, Switch
from netkit.platforms.view import Subject, SubjectNic


def subject(fabric: Fabric, device: Switch | Host) -> Subject:
    """Return a device as its views need to know it."""
    lossless = tuple(one.priority for one in fabric.lossless.classes if one.is_lossless)
    if isinstance(device, Switch):
        ports = tuple(port.name for port in device.ports)
        return Subject(device.name, version=device.version, ports=ports, lossless=lossless)
    return Subject(
        device.name,
        nics=tuple(SubjectNic(nic.interface, nic.pci, nic.rdma) for nic in device.nics),
        lookups=tuple(_lookups(fabric, device)),
        lossless=lossless,
    )


def _lookups(fabric: Fabric, host: Host) -> Iterator[tuple[str, str, str]]:
    """Yield where the kernel is asked to send packets: along each rail, and across to the next one."""
    for nic in host.nics:
        for far in far_ends(fabric, host, nic):
            yield nic.address, nic.interface, far.address


def far_ends(fabric: Fabric, host: Host, nic: Nic) -> tuple[Nic, ...]:
    """Return NICs that stand for all others: on the same leaf, on the same rail elsewhere, and on the next rail."""
    others = [(other, far) for other in fabric.hosts for far in other.nics if other.name != host.name]
    same_leaf = (far for _, far in others if far.leaf == nic.leaf)
    same_rail = (far for _, far in others if far.rail == nic.rail and far.leaf != nic.leaf)
    next_rail = (far for _, far in others if far.rail == (nic.rail + 1) % len(fabric.rails))
    found = (next(ends, None) for ends in (same_leaf, same_rail, next_rail))
    return tuple(dict.fromkeys(far for far in found if far is not None))
