"""What there is to look at on a device, from the design."""

from collections.abc import Iterator

from netkit.design import Fabric, Host, Nic, Switch
from netkit.observe.probing import probe_pairs, probe_sizes
from netkit.platforms.view import Subject, SubjectNic


def subject(fabric: Fabric, device: Switch | Host) -> Subject:
    """Return a device as its views need to know it."""
    lossless = fabric.lossless.lossless_priorities
    if isinstance(device, Switch):
        ports = tuple(port.name for port in device.ports)
        return Subject(device.name, platform=device.platform, version=device.version, ports=ports, lossless=lossless)
    return Subject(
        device.name,
        nics=tuple(SubjectNic(nic.interface, nic.pci, nic.rdma) for nic in device.nics),
        lookups=tuple(_lookups(fabric, device)),
        lossless=lossless,
        probes=tuple((nic.address, nic.interface, far.address) for nic, far in probe_pairs(fabric, device)),
        probe_bytes=probe_sizes(device),
        probe_tos=fabric.lossless.tos,
    )


def _lookups(fabric: Fabric, host: Host) -> Iterator[tuple[str, str, str]]:
    """Yield where the kernel is asked to send packets: along each rail, and across to the others."""
    for nic in host.nics:
        for far in far_ends(fabric, host, nic):
            yield nic.address, nic.interface, far.address


def far_ends(fabric: Fabric, host: Host, nic: Nic) -> tuple[Nic, ...]:
    """Return NICs that stand for all others: on the same leaf, on the same rail elsewhere, and on each other rail."""
    others = [far for other in fabric.hosts for far in other.nics if other.name != host.name]
    same_leaf = next((far for far in others if far.leaf == nic.leaf), None)
    by_rail = {rail.number: [far for far in others if far.rail == rail.number] for rail in fabric.rails}
    same_rail = next((far for far in by_rail[nic.rail] if far.leaf != nic.leaf), None)
    across = (next(iter(ends), None) for rail, ends in by_rail.items() if rail != nic.rail)
    return tuple(dict.fromkeys(far for far in (same_leaf, same_rail, *across) if far is not None))
