"""What a source of truth holds of a fabric → records."""

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_interface
from typing import Any

from netkit.access.settings import TruthAccess
from netkit.errors import AccessError, Problem
from netkit.truth.dialect import INTERFACE, identity
from netkit.truth.difference import (
    CableProperties,
    DeviceProperties,
    DeviceRecord,
    PortEnd,
    TruthInventory,
    TruthRecords,
)
from netkit.truth.export import queries
from netkit.truth.source import TruthApi, checked

METRES = {"km": 1000, "m": 1, "cm": 0.01, "mi": 1609.344, "ft": 0.3048, "in": 0.0254}


def read(api: TruthApi) -> TruthRecords:
    """Read the devices and cabled interfaces of a source; AccessError if it does not answer as documented."""
    with checked(api.settings):
        return _records(api.settings, _devices(api), _interfaces(api))


def read_inventory(api: TruthApi, *pools: str) -> TruthInventory:
    """Read everything that an intent can have; of prefixes those in some pools."""
    is_nautobot = api.settings.kind == "nautobot"
    with checked(api.settings):
        devices, interfaces = _devices(api), _interfaces(api)
        records = _records(api.settings, devices, interfaces)
        names = {one["id"]: str(one["name"]) for one in devices if one["name"] is not None}
        ports = [one for one in interfaces if identity(one["device"]) in names]
        ends = {one["id"]: (names[identity(one["device"])], str(one["name"])) for one in ports}
        by_id = {one["id"]: one for one in _of_devices(api, "dcim.cables", names)}
        cables = {
            ends[one["id"]]: CableProperties(_metres(cable), str(cable["label"] or ""))
            for one in ports
            if (cable := by_id.get(identity(one["cable"])))
        }
        found = _nautobot_addresses(api, names) if is_nautobot else _netbox_addresses(api, names)
        addresses: dict[PortEnd, str] = {}
        addresses_v6: dict[PortEnd, str] = {}
        for place, address in found:
            if place in ends and ":" not in address:
                addresses.setdefault(ends[place], address)
            elif place in ends and not ip_interface(address).is_link_local:
                addresses_v6.setdefault(ends[place], address)
        management = dict(ends[one["id"]] for one in reversed(ports) if one["mgmt_only"])
        properties = {name: _properties(one, management) for one in devices if (name := one["name"]) is not None}
        table = {"namespace": "Global"} if is_nautobot else {"vrf_id": "null"}
        prefixes = [one for pool in pools for one in api.find("ipam.prefixes", {"within_include": pool, **table})]
        shown = tuple(str(one["prefix"]) for one in prefixes)
        return TruthInventory(records, properties, addresses, addresses_v6, cables, shown)


def _properties(device: Mapping[str, Any], management: Mapping[str, str]) -> DeviceProperties:
    asn = device["custom_fields"].get("asn")
    return DeviceProperties(
        str(device["role"]["name"]),
        str(device["device_type"]["model"]),
        asn if isinstance(asn, int) else None,
        management.get(str(device["name"]), ""),
    )


def _metres(cable: Mapping[str, Any]) -> float | None:
    unit = identity(cable["length_unit"])
    return None if cable["length"] is None or unit not in METRES else float(cable["length"]) * METRES[str(unit)]


def _devices(api: TruthApi) -> list[dict[str, Any]]:
    """Read devices; a Nautobot names their racks and types only when it is asked to."""
    return api.find("dcim.devices", {**_at_site(api), **({"depth": 1} if api.settings.kind == "nautobot" else {})})


def _interfaces(api: TruthApi) -> list[dict[str, Any]]:
    return api.find("dcim.interfaces", _at_site(api))


def _at_site(api: TruthApi) -> dict[str, object]:
    settings = api.settings
    return {"location" if settings.kind == "nautobot" else "site": settings.site} if settings.site else {}


def _of_devices(api: TruthApi, endpoint: str, devices: Iterable[object]) -> Iterator[dict[str, Any]]:
    """Yield each object of some devices once."""
    seen: set[object] = set()
    for ids in queries(devices):
        for one in api.find(endpoint, {"device_id": ids}):
            if one["id"] not in seen:
                seen.add(one["id"])
                yield one


def _netbox_addresses(api: TruthApi, devices: Iterable[object]) -> Iterator[tuple[object, str]]:
    for one in _of_devices(api, "ipam.ip_addresses", devices):
        if one["assigned_object_type"] == INTERFACE:
            yield one["assigned_object_id"], str(one["address"])


def _nautobot_addresses(api: TruthApi, devices: Iterable[object]) -> Iterator[tuple[object, str]]:
    by_id = {one["id"]: str(one["address"]) for one in _of_devices(api, "ipam.ip_addresses", devices)}
    for ids in queries(by_id):
        for one in api.find("ipam.ip_address_to_interface", {"ip_address": ids}):
            if one["interface"]:
                yield identity(one["interface"]), by_id[identity(one["ip_address"])]


def _records(
    settings: TruthAccess, devices: Iterable[Mapping[str, Any]], interfaces: Iterable[Mapping[str, Any]]
) -> TruthRecords:
    names: dict[Any, str] = {}
    found: dict[str, DeviceRecord] = {}
    for one in devices:
        if one["name"] is None:
            continue  # a device without a name is not one of a fabric
        name, position = str(one["name"]), one["position"]
        if name in found:
            message = f"{settings.url} has two devices called {name}"
            raise AccessError(Problem(message, "set truth.site in access.yaml to read those of one site"))
        names[one["id"]] = name
        rack = str(one["rack"]["name"]) if one["rack"] else ""
        found[name] = DeviceRecord(name, str(one["serial"] or ""), rack, f"{float(position):g}" if position else "")
    return TruthRecords(found, _peers(list(interfaces), names))


def _peers(interfaces: Iterable[Mapping[str, Any]], names: Mapping[Any, str]) -> Mapping[PortEnd, PortEnd]:
    """Join interfaces by the cable they share: no further request is needed."""
    by_cable: dict[Any, list[PortEnd]] = {}
    for one in interfaces:
        device = names.get(one["device"]["id"])
        if one["cable"] and device is not None:
            by_cable.setdefault(one["cable"]["id"], []).append((device, str(one["name"])))
    peers: dict[PortEnd, PortEnd] = {}
    for ends in by_cable.values():
        if len(ends) == 2:
            peers |= {ends[0]: ends[1], ends[1]: ends[0]}
    return peers
