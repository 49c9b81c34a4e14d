"""Which NICs a host probes, and what its views depend on."""

from collections.abc import Iterator, Sequence

from netkit.design import Fabric, Host, Nic, Switch
from netkit.design.layout import is_joined
from netkit.platforms.view import SubjectNic, ViewSubject

SMALL_BYTES, USUAL_BYTES = 64, 1500


def probe_pairs(fabric: Fabric, host: Host) -> tuple[tuple[Nic, Nic], ...]:
    return tuple((nic, far) for nic in host.nics for far in _far_ends(fabric, host, nic))


def probe_sizes(host: Host) -> tuple[int, ...]:
    """List the IP packet sizes to send, up to the full MTU: some faults only affect large packets."""
    return tuple(sorted({SMALL_BYTES, min(USUAL_BYTES, host.mtu_bytes), host.mtu_bytes}))


def _far_ends(fabric: Fabric, host: Host, nic: Nic) -> Iterator[Nic]:
    leaf, own_ports = fabric.switch(nic.leaf), fabric.host_ports[nic.leaf]
    position = next((number for number, port in enumerate(own_ports) if port.name == nic.leaf_port), 0)
    for far in (leaf, *_leaves(fabric, leaf)):
        ports = fabric.host_ports[far.name]
        if ports and is_joined(fabric, leaf, far):
            # A host's own other rail is reached inside the host: within a unit, take the next host.
            port = ports[(position + (far.unit == leaf.unit)) % len(ports)]
            peer = fabric.device(port.peer)
            nics = peer.nics if isinstance(peer, Host) and port.peer != host.name else ()
            yield from [one for one in nics if one.interface == port.peer_port][:1]


def _leaves(fabric: Fabric, leaf: Switch) -> Iterator[Switch]:
    """Yield the leaves to probe: the next rail of the unit, the next unit, the next pod."""
    rings = fabric.leaf_rings
    if fabric.cross_rail == "routed":
        yield from _next(rings["unit", leaf.pod, leaf.unit], leaf)
    yield from _next(rings["rail", leaf.pod, leaf.rail], leaf)
    yield from _next(rings["pods", leaf.rail, leaf.unit], leaf)


def _next(ring: Sequence[Switch], leaf: Switch) -> Iterator[Switch]:
    after = [one for one in ring if one.number > leaf.number]
    yield from [one for one in after or ring if one is not leaf][:1]


def subject(fabric: Fabric, device: Switch | Host) -> ViewSubject:
    """Build the subject for a device's views."""
    lossless = fabric.lossless.lossless_priorities
    if isinstance(device, Switch):
        ports = tuple(port.name for port in device.cabled)
        return ViewSubject(
            device.name,
            platform=device.platform,
            version=device.version,
            ports=ports,
            lossless=lossless,
            neighbors=tuple((port.peer_address, port.name) for port in device.ports if port.peer_address),
            has_lags=bool(device.access and device.access.lags),
            has_pair=bool(device.access and device.access.pair),
        )
    return ViewSubject(
        device.name,
        nics=tuple(SubjectNic(nic.interface, nic.pci, nic.rdma) for nic in device.nics),
        beside=device.nics_beside,
        has_lags=any(one.members for one in device.attachments),
        lookups=tuple(
            asked
            for nic in device.nics
            for far in far_ends(fabric, device, nic)
            for source, interface, to in _of_versions(nic, far)
            for asked in ((source, interface, to), ("", interface, to))
        ),
        lossless=lossless,
        probes=tuple(one for pair in probe_pairs(fabric, device) for one in _of_versions(*pair)),
        probe_bytes=probe_sizes(device),
        probe_tos=fabric.lossless.tos,
    )


def _of_versions(nic: Nic, far: Nic) -> Iterator[tuple[str, str, str]]:
    """Yield source, interface and destination, of IPv4 and, where the fabric has it, of IPv6."""
    yield nic.address, nic.interface, far.address
    if nic.address_v6:
        yield nic.address_v6, nic.interface, far.address_v6


def far_ends(fabric: Fabric, host: Host, nic: Nic) -> tuple[Nic, ...]:
    """Select representative NICs: on the same leaf, on the same rail elsewhere, and on each other rail."""

    def first(nics: Sequence[tuple[str, Nic]], leaf: str | None = None) -> Nic | None:
        return next((far for owner, far in nics if owner != host.name and far.leaf != leaf), None)

    by_rail = fabric.nics_by_rail
    same_leaf, same_rail = first(fabric.nics_by_leaf[nic.leaf]), first(by_rail[nic.rail], nic.leaf)
    across = (first(ends) for rail, ends in by_rail.items() if rail != nic.rail)
    return tuple(dict.fromkeys(far for far in (same_leaf, same_rail, *across) if far is not None))
