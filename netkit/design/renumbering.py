"""Addresses and numbers that a change of the intent alters on existing devices: the first thing to review."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Port, Switch

Values = Mapping[tuple[str, str], str]
"""Quantity and place → the number, as people write it."""


@dataclass(frozen=True, slots=True)
class RenumberedValue:
    """A number that changed, at one place or at many."""

    quantity: str
    running: str
    intended: str
    places: tuple[str, ...]
    """Several places with different numbers show the first as an example."""


def renumbered(running: Fabric, intended: Fabric) -> tuple[RenumberedValue, ...]:
    """Return the changed numbers of devices in both designs, equal changes together."""
    found: dict[tuple[str, ...], list[tuple[str, str, str]]] = {}
    devices: tuple[Switch | Host, ...] = (*intended.switches, *intended.hosts)
    for device in devices:
        known = running.device(device.name)
        if known is None or type(known) is not type(device):
            continue
        before, after = dict(_values(known)), dict(_values(device))
        for key in before.keys() & after.keys():
            if before[key] != after[key]:
                quantity, place = key
                same = (quantity,) if quantity in OWN else (quantity, before[key], after[key])
                found.setdefault(same, []).append((place, before[key], after[key]))
    values = []
    for (quantity, *_), rows in sorted(found.items()):
        rows.sort()
        _, was, now = rows[0]
        values.append(RenumberedValue(quantity, was, now, tuple(place for place, _, _ in rows)))
    return tuple(values)


OWN = frozenset({"AS number", "loopback", "prefix", "management address", "port address", "NIC address", "NIC gateway"})
"""Numbers that are unique to each place."""


def _values(device: Switch | Host) -> Iterator[tuple[tuple[str, str], str]]:
    yield ("model", device.name), device.model.name
    if isinstance(device, Host):
        for nic in device.nics:
            yield ("NIC address", f"{device.name}:{nic.interface}"), f"{nic.address}/{nic.prefix_length}"
            yield ("NIC gateway", f"{device.name}:{nic.interface}"), nic.gateway
        return
    management = device.management
    own = {
        "NOS": f"{device.platform} {device.version}",
        "AS number": str(device.asn),
        "loopback": device.loopback,
        "prefix": device.leaf_prefix,
        "management address": f"{management.address}/{management.prefix_length}" if management else "",
        "MTU": f"{device.mtu_bytes} bytes",
    }
    yield from (((quantity, device.name), value) for quantity, value in own.items())
    yield from ((("port address", f"{device.name}:{port.name}"), port.address) for port in device.ports)
    yield from (((f"{quantity} of {of}", device.name), value) for of, quantity, value in _thresholds(device))


def _thresholds(switch: Switch) -> Iterator[tuple[str, str, str]]:
    """Yield the thresholds of each kind of port."""
    kinds: dict[str, Port] = {}
    for port in switch.ports:
        kinds.setdefault(f"{switch.role} ports of {port.speed_gbps}G towards {TOWARDS[port.role]}", port)
    for kind, port in kinds.items():
        ecn, headroom = port.profile.ecn, port.profile.headroom
        yield kind, "ECN minimum", f"{ecn.min_bytes:,} bytes"
        yield kind, "ECN maximum", f"{ecn.max_bytes:,} bytes"
        yield kind, "ECN probability", f"{ecn.probability_percent} %"
        yield kind, "cable length", f"{port.profile.cable.length_m:g} m"
        if headroom is not None:
            yield kind, "headroom", f"{headroom.size_bytes:,} bytes"
            yield kind, "XOFF", f"{headroom.xoff_bytes:,} bytes"


TOWARDS = {"host": "hosts", "up": "the tier above", "down": "the tier below"}
