"""(truth, intent) → differences, by device, port and attribute."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Switch
from netkit.truth.record import DeviceRecord, PortEnd, TruthRecords

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
    """Return the records of a designed fabric."""
    every: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    devices = {
        device.name: DeviceRecord(device.name, device.serial, device.rack, str(device.rack_unit or ""))
        for device in every
    }
    peers: dict[PortEnd, PortEnd] = {}
    for link in fabric.links():
        ends = (link.device, link.port), (link.peer, link.peer_port)
        peers |= {ends[0]: ends[1], ends[1]: ends[0]}
    return TruthRecords(devices, peers)


def differences(truth: TruthRecords, intent: TruthRecords) -> list[TruthDifference]:
    """Return what differs on devices of the intent; other devices of the source, and cables between them, do not count.

    A serial number or rack that only the source has is no difference: an intent need not give it.
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
