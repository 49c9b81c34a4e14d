"""(truth, intent) → differences, by device, port and attribute; and with what runs, the drift of all three."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Switch
from netkit.facts import Absent, Snapshot
from netkit.facts.device import Facts, Neighbor, without_domain
from netkit.truth.wanted import Ref, Wanted, wanted

PortEnd = tuple[str, str]
"""A device and one of its ports."""


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device; empty values are not known."""

    name: str
    serial: str = ""
    rack: str = ""
    rack_unit: str = ""


@dataclass(frozen=True, slots=True)
class TruthRecords:
    """The devices by name, and each cabled port with the port at its other end."""

    devices: Mapping[str, DeviceRecord]
    peers: Mapping[PortEnd, PortEnd]


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """Other attributes of a device in a source."""

    role: str
    model: str
    asn: int | None
    management_port: str
    """The first interface that is marked as one of management."""


@dataclass(frozen=True, slots=True)
class CableProperties:
    """A cable in a source."""

    length_m: float | None
    label: str


@dataclass(frozen=True, slots=True)
class TruthInventory:
    """Everything of a source that an intent can have."""

    records: TruthRecords
    devices: Mapping[str, DeviceProperties]
    addresses: Mapping[PortEnd, str]
    """The first IPv4 address of each interface, with its length."""
    addresses_v6: Mapping[PortEnd, str]
    """The first IPv6 address that is not link-local."""
    cables: Mapping[PortEnd, CableProperties]
    """By either end."""
    prefixes: tuple[str, ...]


ATTRIBUTES = ("serial", "rack", "rack_unit")


@dataclass(frozen=True, slots=True)
class TruthDifference:
    """One value that differs; empty: not there."""

    device: str
    port: str
    attribute: str
    truth: str
    intent: str


def of_fabric(fabric: Fabric) -> TruthRecords:
    """The records of a designed fabric."""
    every: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    devices = {
        device.name: DeviceRecord(device.name, device.serial, device.rack, str(device.rack_unit or ""))
        for device in every
    }
    peers: dict[PortEnd, PortEnd] = {}
    for link in fabric.cables():
        ends = (link.device, link.port), (link.peer, link.peer_port)
        peers |= {ends[0]: ends[1], ends[1]: ends[0]}
    return TruthRecords(devices, peers)


def differences(truth: TruthRecords, intent: TruthRecords) -> list[TruthDifference]:
    """What differs on devices of the intent; other devices of the source, and cables between them, do not count.

    A serial number or rack that only the source has is not a difference, since the intent need not give it.
    """
    return [*_of_devices(truth, intent), *_of_cables(truth, intent)]


def _of_devices(truth: TruthRecords, intent: TruthRecords) -> Iterator[TruthDifference]:
    for name, device in intent.devices.items():
        known = truth.devices.get(name)
        if known is None:
            yield TruthDifference(name, "", "device", "", name)
            continue
        for key in ATTRIBUTES:
            was, wanted = getattr(known, key), getattr(device, key)
            if wanted and was != wanted:
                yield TruthDifference(name, "", key, was, wanted)


def _of_cables(truth: TruthRecords, intent: TruthRecords) -> Iterator[TruthDifference]:
    for device, port in sorted(truth.peers.keys() | intent.peers.keys()):
        was, wanted = truth.peers.get((device, port)), intent.peers.get((device, port))
        if device not in intent.devices or device not in truth.devices or was == wanted:
            continue
        if wanted is None and was is not None and was[0] not in intent.devices:
            continue  # a cable out of the fabric
        yield TruthDifference(device, port, "cable", _shown(was), _shown(wanted))


def _shown(end: PortEnd | None) -> str:
    return ":".join(end) if end else ""


@dataclass(frozen=True, slots=True)
class TruthDrift:
    """One value on which truth, intent and what runs do not agree; empty: not there, or not known."""

    device: str
    port: str
    attribute: str
    truth: str
    intent: str
    running: str


def of_snapshot(fabric: Fabric, snapshot: Snapshot) -> TruthRecords:
    """The serial numbers of the devices that were read, and the cables between devices of a fabric by LLDP."""
    facts = {name: one.facts for name, one in snapshot.devices.items() if not one.failure and fabric.device(name)}
    devices = {
        name: DeviceRecord(name, "" if isinstance(one.system, Absent) else one.system.serial)
        for name, one in facts.items()
    }
    return TruthRecords(devices, dict(_heard(fabric, facts)))


def _heard(fabric: Fabric, facts: Mapping[str, Facts]) -> Iterator[tuple[PortEnd, PortEnd]]:
    """Yield the port at the other end of each port whose neighbour can be identified."""
    ports: dict[PortEnd, PortEnd] = {}
    every: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    for device in every:
        for name in _ports(device):
            ports[(device.name, name)] = (device.name, name)
    for owner, one in facts.items():
        for name, state in {} if isinstance(one.interfaces, Absent) else one.interfaces.items():
            for known in (name, state.alias, state.mac.lower()):
                ports.setdefault((owner, known), (owner, name))
    macs = {end[1]: port for end, port in ports.items() if end[1].count(":") == 5}
    macs |= {nic.mac.lower(): (host.name, nic.interface) for host in fabric.hosts for nic in host.nics if nic.mac}
    for owner, one in facts.items():
        for name, neighbors in {} if isinstance(one.neighbors, Absent) else one.neighbors.items():
            found = next(filter(None, (_end(fabric, ports, macs, neighbor) for neighbor in neighbors)), None)
            if found and (owner, name) in ports:
                yield (owner, name), found


def _ports(device: Switch | Host) -> Iterator[str]:
    if isinstance(device, Host):
        yield from device.cabled
    else:
        yield from (name for cage in device.cages for name in cage.ports)
        yield from (port.name for port in device.external)


def _end(
    fabric: Fabric, ports: Mapping[PortEnd, PortEnd], macs: Mapping[str, PortEnd], neighbor: Neighbor
) -> PortEnd | None:
    """Identify a neighbour: a NIC by its MAC address, others by system name and port."""
    if neighbor.port.lower() in macs:
        return macs[neighbor.port.lower()]
    system = without_domain(neighbor.system, fabric.device)
    return ports.get((system, neighbor.port)) or ports.get((system, neighbor.description))


def drift(truth: TruthRecords, intent: TruthRecords, running: TruthRecords) -> list[TruthDrift]:
    """The values that differ between truth and intent, or between what runs and either."""
    found = {(one.device, one.port, one.attribute): (one.truth, one.intent) for one in differences(truth, intent)}
    for name, device in running.devices.items():
        known = truth.devices.get(name, DeviceRecord(name)).serial, intent.devices[name].serial
        if device.serial and {*known, ""} - {device.serial, ""}:
            found.setdefault((name, "", "serial"), known)
    for end, peer in running.peers.items():
        ends = truth.peers.get(end), intent.peers.get(end)
        if any(one != peer for one in ends) and end[0] in truth.devices:
            found.setdefault((*end, "cable"), (_drift_shown(ends[0]), _drift_shown(ends[1])))
    return [
        TruthDrift(device, port, attribute, *values, _running(running, device, port, attribute))
        for (device, port, attribute), values in sorted(found.items(), key=lambda one: (one[0][1] != "", one[0]))
    ]


def _drift_shown(end: PortEnd | None) -> str:
    return ":".join(end) if end else ""


def _running(running: TruthRecords, device: str, port: str, attribute: str) -> str:
    if attribute == "cable":
        return _drift_shown(running.peers.get((device, port)))
    known = running.devices.get(device)
    return (
        "" if known is None else known.serial if attribute == "serial" else known.name if attribute == "device" else ""
    )


def heard_cables(fabric: Fabric, site: str, truth: TruthRecords, running: TruthRecords) -> Iterable[Wanted]:
    """The cables that LLDP names between devices of the source, and their ports, as objects to write."""
    designed = {(one.kind, one.key): one for one in wanted(fabric, site)}
    every = {tuple(sorted((end, peer))) for end, peer in running.peers.items()}
    cables = sorted(ends for ends in every if all(device in truth.devices for device, _ in ends))
    for name in sorted({device for ends in cables for device, _ in ends}):
        yield Wanted("device", (name,))
    for end in sorted({end for ends in cables for end in ends}):
        plain = Wanted("interface", end, initial={"device": Ref("device", end[:1]), "type": "other"})
        yield designed.get(("interface", end), plain)
    for one, other in cables:
        initial = {"a": Ref("interface", one), "b": Ref("interface", other)}
        yield designed.get(("cable", (*one, *other)), Wanted("cable", (*one, *other), initial=initial))
