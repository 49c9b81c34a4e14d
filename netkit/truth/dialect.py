"""What Nautobot and NetBox call the wanted objects and their values, and how each is found there."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from netkit.truth.wanted import Key, Ref, Wanted

Record = Mapping[str, Any]
Names = Mapping[str, Mapping[Any, Key]]
"""ObjectKind → id → key of the objects that are known."""
PORT_TYPES = {
    "management": "1000base-t",
    "virtual": "virtual",
    "lag": "lag",
    "10G": "10gbase-x-sfpp",
    "25G": "25gbase-x-sfp28",
    "100G": "100gbase-x-qsfp28",
    "200G": "200gbase-x-qsfp56",
    "400G": "400gbase-x-osfp",
    "800G": "800gbase-x-osfp",
}
INTERFACE = "dcim.interface"
DEVICE = "dcim.device"


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """How objects of one kind are found."""

    endpoint: str
    asked: str
    """The filter that takes what is asked for; empty: read all, which are few."""
    key: Callable[[Record, Names], Key]
    by: str = ""
    """Ask for the ids of objects of this kind, which the first part of keys names; empty: for the last part."""
    scope: Mapping[str, object] = field(default_factory=dict)
    """Filters of every request."""
    part_of: str = ""
    """Values of objects of that kind, which therefore are not created here."""
    is_support: bool = False
    """Only created for an object that needs it."""


@dataclass(frozen=True, slots=True)
class TruthDialect:
    """One of the two."""

    kinds: Mapping[str, ObjectKind]
    adapted: Callable[[Wanted], Iterator[Wanted]]


def identity(value: object) -> object:
    """The id of a nested object, the value of a choice, and anything else unchanged."""
    if isinstance(value, Mapping):
        return value.get("id", value.get("value"))
    return value


def _named(column: str) -> Callable[[Record, Names], Key]:
    return lambda record, _: (str(identity(record[column])),)


def _below(kind: str, parent: str, column: str) -> Callable[[Record, Names], Key]:
    """The key of an object that belongs to another one, which is known."""
    return lambda record, names: (*names[kind].get(identity(record[parent]), ("",))[-1:], str(record[column]))


def _host_of(record: Record, _: Names) -> Key:
    return (str(record["address"]).partition("/")[0],)


def _ends(names: Names, one: object, other: object) -> Key:
    known = names["interface"]
    return tuple(part for end in sorted([known.get(one, ("", "")), known.get(other, ("", ""))]) for part in end)


def netbox_slug(name: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")


# --- NetBox ---------------------------------------------------------------------------------------------------------


def netbox(site: str) -> TruthDialect:
    """The fields of NetBox."""
    at_site = {"site_id": Ref("site", (site,))}
    in_table = {"vrf_id": "null"}
    return TruthDialect(
        {
            "site": ObjectKind("dcim.sites", "slug", _named("slug")),
            "manufacturer": ObjectKind("dcim.manufacturers", "name", _named("name"), is_support=True),
            "device type": ObjectKind(
                "dcim.device_types", "model", _below("manufacturer", "manufacturer", "model"), is_support=True
            ),
            "role": ObjectKind("dcim.device_roles", "slug", _named("slug"), is_support=True),
            "rack": ObjectKind("dcim.racks", "name", _below("site", "site", "name"), scope=at_site),
            "custom field": ObjectKind("extras.custom_fields", "name", _named("name")),
            "device": ObjectKind("dcim.devices", "name", _named("name")),
            "interface": ObjectKind("dcim.interfaces", "device_id", _below("device", "device", "name"), by="device"),
            "lag member": ObjectKind(
                "dcim.interfaces", "device_id", _below("device", "device", "name"), by="device", part_of="interface"
            ),
            "cable": ObjectKind("dcim.cables", "id", _netbox_ends),
            "prefix": ObjectKind("ipam.prefixes", "prefix", _named("prefix"), scope=in_table),
            "address": ObjectKind("ipam.ip_addresses", "address", _host_of, scope=in_table),
            "primary address": ObjectKind("dcim.devices", "name", _named("name"), part_of="device"),
            "primary IPv6 address": ObjectKind("dcim.devices", "name", _named("name"), part_of="device"),
            "registry": ObjectKind("ipam.rirs", "slug", _named("slug"), is_support=True),
            "asn": ObjectKind("ipam.asns", "asn", _named("asn")),
        },
        _for_netbox,
    )


def _netbox_ends(record: Record, names: Names) -> Key:
    ends = [one["object_id"] for side in ("a_terminations", "b_terminations") for one in record[side]]
    return _ends(names, *ends) if len(ends) == 2 else ("", "", "", "")


def _for_netbox(one: Wanted) -> Iterator[Wanted]:
    name = one.key[-1]
    match one.kind:
        case "site":
            # access.yaml gives the slug of a site.
            yield replace(one, initial={"name": name, "slug": netbox_slug(name), "status": "active"})
        case "manufacturer" | "role":
            yield replace(one, initial={"name": name, "slug": netbox_slug(name)})
        case "device type":
            yield replace(one, initial={"model": name, "slug": netbox_slug(name), **one.initial})
        case "rack":
            yield replace(one, initial={"name": name, "status": "active", **one.initial})
        case "device":
            yield _with_asn(replace(one, initial={"name": name, "status": "active", **one.initial}))
        case "interface":
            yield _port(one, name)
        case "cable":
            ends = {
                f"{side}_terminations": [{"object_type": INTERFACE, "object_id": one.initial[side]}] for side in "ab"
            }
            unit = {"length_unit": "m"} if "length" in one.managed else {}
            yield replace(one, initial={"status": "connected", **ends}, managed={**one.managed, **unit})
        case "prefix":
            status = "container" if one.initial["is_container"] else "active"
            yield replace(one, initial={"prefix": name, "status": status})
        case "address":
            place = {"assigned_object_type": INTERFACE, "assigned_object_id": one.claimed["interface"]}
            yield replace(one, initial={"status": "active"}, claimed=place)
        case "asn":
            registry = Ref("registry", ("private-use",))
            yield Wanted(*_kind_and_key(registry), initial={"name": "Private use", "slug": name, "is_private": True})
            yield replace(one, initial={"asn": int(name), "rir": registry})
        case "custom field":
            yield replace(one, initial={"name": name, "label": "ASN", "object_types": [DEVICE]})
        case _:
            yield one


def _kind_and_key(ref: Ref) -> tuple[str, Key]:
    return ref.kind, ref.key


def _port(one: Wanted, name: str, **more: object) -> Wanted:
    kind = str(one.initial["type"])
    is_management = kind == "management"
    initial = {**one.initial, "name": name, "type": PORT_TYPES.get(kind, "other"), "mgmt_only": is_management}
    return replace(one, initial={**initial, **more})


def _with_asn(one: Wanted) -> Wanted:
    managed = {("custom_fields.asn" if key == "asn" else key): value for key, value in one.managed.items()}
    return replace(one, managed=managed)


# --- Nautobot -------------------------------------------------------------------------------------------------------

ACTIVE, CONNECTED = Ref("status", ("Active",)), Ref("status", ("Connected",))
SITE_TYPE = Ref("location type", ("Site",))
IN_GLOBAL = {"status": ACTIVE, "namespace": {"name": "Global"}}


def nautobot(site: str) -> TruthDialect:
    """The fields of Nautobot."""
    at_site = {"location": Ref("site", (site,))}
    in_table = {"namespace": "Global"}
    return TruthDialect(
        {
            "status": ObjectKind("extras.statuses", "name", _named("name"), is_support=True),
            "location type": ObjectKind("dcim.location_types", "name", _named("name"), is_support=True),
            "site": ObjectKind("dcim.locations", "name", _named("name")),
            "manufacturer": ObjectKind("dcim.manufacturers", "name", _named("name"), is_support=True),
            "device type": ObjectKind(
                "dcim.device_types", "model", _below("manufacturer", "manufacturer", "model"), is_support=True
            ),
            "role": ObjectKind("extras.roles", "name", _named("name"), is_support=True),
            "rack": ObjectKind("dcim.racks", "name", _below("site", "location", "name"), scope=at_site),
            "custom field": ObjectKind("extras.custom_fields", "", _named("key")),
            "device": ObjectKind("dcim.devices", "name", _named("name")),
            "interface": ObjectKind("dcim.interfaces", "device", _below("device", "device", "name"), by="device"),
            "lag member": ObjectKind(
                "dcim.interfaces", "device", _below("device", "device", "name"), by="device", part_of="interface"
            ),
            "cable": ObjectKind(
                "dcim.cables",
                "id",
                lambda record, names: _ends(names, record["termination_a_id"], record["termination_b_id"]),
            ),
            "prefix": ObjectKind("ipam.prefixes", "prefix", _named("prefix"), scope=in_table),
            "address": ObjectKind("ipam.ip_addresses", "address", _host_of, scope=in_table),
            "assignment": ObjectKind(
                "ipam.ip_address_to_interface",
                "ip_address",
                lambda record, names: names["address"].get(identity(record["ip_address"]), ("",)),
                by="address",
            ),
            "primary address": ObjectKind("dcim.devices", "name", _named("name"), part_of="device"),
            "primary IPv6 address": ObjectKind("dcim.devices", "name", _named("name"), part_of="device"),
        },
        _for_nautobot,
    )


def _for_nautobot(one: Wanted) -> Iterator[Wanted]:
    name = one.key[-1]
    yield Wanted("status", ACTIVE.key)
    yield Wanted("status", CONNECTED.key)
    match one.kind:
        case "site":
            held = [DEVICE, "dcim.rack", "ipam.prefix", "ipam.vlan"]
            yield Wanted("location type", SITE_TYPE.key, initial={"name": "Site", "content_types": held})
            yield replace(one, initial={"name": name, "location_type": SITE_TYPE, "status": ACTIVE})
        case "manufacturer" | "role":
            kinds = {"content_types": [DEVICE]} if one.kind == "role" else {}
            yield replace(one, initial={"name": name, **kinds})
        case "device type":
            yield replace(one, initial={"model": name, **one.initial})
        case "rack":
            initial = {"name": name, "status": ACTIVE, "u_height": one.initial["u_height"]}
            yield replace(one, initial={**initial, "location": one.initial["site"]})
        case "device":
            claimed = {"location" if key == "site" else key: value for key, value in one.claimed.items()}
            yield _with_asn(replace(one, initial={"name": name, "status": ACTIVE, **one.initial}, claimed=claimed))
        case "interface":
            yield _port(one, name, status=ACTIVE)
        case "cable":
            yield _nautobot_cable(one)
        case "prefix":
            kind = "container" if one.initial["is_container"] else "network"
            yield replace(
                one, initial={"prefix": name, "status": ACTIVE, "namespace": {"name": "Global"}, "type": kind}
            )
        case "address":
            yield replace(one, initial=IN_GLOBAL, claimed={})
            yield Wanted("assignment", one.key, initial={"ip_address": Ref("address", one.key)}, claimed=one.claimed)
        case "custom field":
            yield replace(one, initial={"key": name, "label": "ASN", "content_types": [DEVICE]})
        case "primary address" | "primary IPv6 address" | "lag member":
            yield one


def _nautobot_cable(one: Wanted) -> Wanted:
    """A cable whose length is a whole number, in centimetres if need be."""
    length: dict[str, object] = {}
    if "length" in one.managed:
        metres = float(str(one.managed["length"]))
        is_whole = metres == int(metres)
        length = {"length": int(metres), "length_unit": "m"} if is_whole else _centimetres(metres)
    initial: dict[str, object] = {"status": CONNECTED}
    for side in "ab":
        initial |= {f"termination_{side}_type": INTERFACE, f"termination_{side}_id": one.initial[side]}
    return replace(one, initial=initial, managed={**one.managed, **length})


def _centimetres(metres: float) -> dict[str, object]:
    return {"length": round(metres * 100), "length_unit": "cm"}


DIALECTS: Mapping[str, Callable[[str], TruthDialect]] = {"netbox": netbox, "nautobot": nautobot}
