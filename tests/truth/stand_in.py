"""A NetBox for tests: its REST API as documented, for the objects that netkit reads and writes.

It serves pages, nested objects and choices, and rejects what NetBox rejects: a missing value, a duplicate name or
address, an unknown reference, choice or custom field, an occupied rack unit or port. A request with several objects
is for all or none. It is stricter in one thing: NetBox ignores unknown filters.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_interface, ip_network
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from netkit.design import Fabric, Host, Switch

TOKEN = "0123456789abcdef" * 2 + "01234567"
Row = dict[str, Any]
STATUS = {"active", "planned", "container", "connected", "offline"}
PORT_TYPES = {"virtual", "lag", "1000base-t", "10gbase-x-sfpp", "25gbase-x-sfp28", "100gbase-x-qsfp28"}
PORT_TYPES |= {"200gbase-x-qsfp56", "400gbase-x-osfp", "800gbase-x-osfp"}
DEVICE, INTERFACE = "dcim/devices", "dcim/interfaces"


@dataclass(frozen=True)
class Table:
    """The objects of one endpoint."""

    required: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    refs: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, set[str]] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    empty: Mapping[str, Any] = field(default_factory=dict)
    """The defaults of an object."""


NAMED = Table(("name", "slug"), (("name",), ("slug",)), filters=("name", "slug"))
TABLES: Mapping[str, Table] = {
    "dcim/sites": Table(NAMED.required, NAMED.unique, {}, {"status": STATUS}, NAMED.filters),
    "dcim/manufacturers": NAMED,
    "dcim/device-roles": NAMED,
    "ipam/rirs": NAMED,
    "dcim/device-types": Table(
        ("model", "slug", "manufacturer"),
        (("manufacturer", "model"), ("manufacturer", "slug")),
        {"manufacturer": "dcim/manufacturers"},
        filters=("model", "slug", "manufacturer_id"),
        empty={"u_height": 1.0},
    ),
    "dcim/racks": Table(
        ("name", "site"), (), {"site": "dcim/sites"}, {"status": STATUS}, ("name", "site_id"), {"u_height": 42}
    ),
    DEVICE: Table(
        ("device_type", "role", "site"),
        (("site", "name"),),
        {
            "device_type": "dcim/device-types",
            "role": "dcim/device-roles",
            "site": "dcim/sites",
            "rack": "dcim/racks",
            "primary_ip4": "ipam/ip-addresses",
            "primary_ip6": "ipam/ip-addresses",
        },
        {"status": STATUS, "face": {"front", "rear"}},
        ("name", "site", "site_id"),
        {"name": None, "serial": "", "rack": None, "position": None, "face": None}
        | {"primary_ip4": None, "primary_ip6": None},
    ),
    INTERFACE: Table(
        ("device", "name", "type"),
        (("device", "name"),),
        {"device": DEVICE, "lag": INTERFACE},
        {"type": PORT_TYPES | {"other"}},
        ("device_id", "site", "name"),
        {"cable": None, "mgmt_only": False, "lag": None},
    ),
    "dcim/cables": Table(
        ("a_terminations", "b_terminations"),
        choices={"status": STATUS, "length_unit": {"m", "cm", "ft"}},
        filters=("id", "device_id"),
        empty={"label": "", "length": None, "length_unit": None},
    ),
    "ipam/prefixes": Table(
        ("prefix",), (("prefix",),), {}, {"status": STATUS}, ("prefix", "vrf_id", "within_include"), {"vrf": None}
    ),
    "ipam/ip-addresses": Table(
        ("address",),
        choices={"status": STATUS},
        filters=("address", "vrf_id", "device_id"),
        empty={"vrf": None, "assigned_object_type": None, "assigned_object_id": None, "assigned_object": None},
    ),
    "ipam/asns": Table(("asn", "rir"), (("asn",),), {"rir": "ipam/rirs"}, filters=("asn",)),
    "extras/custom-fields": Table(
        ("name", "object_types"), (("name",),), {}, {"type": {"integer", "text"}}, ("name",), {"type": "text"}
    ),
}
PAGING = {"limit", "offset"}


class RefusalError(Exception):
    """A value that NetBox does not accept, by field."""

    def __init__(self, **fields: str) -> None:
        super().__init__(str(fields))
        self.body = {key: [text] for key, text in fields.items()}


@dataclass
class NetBox:
    """Its objects, and the requested paths."""

    devices: list[Row] = field(default_factory=list)
    interfaces: list[Row] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    status: int = 200
    url: str = ""
    moved_to: str = ""
    """Where every request is redirected to."""
    limit: Callable[[str], bool] = lambda _: False
    """Whether a request with a method is one too many for now."""
    retry_after: str | None = None
    others: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABLES})
    written: int = 0
    """Objects that were created or changed."""

    def rows(self, endpoint: str) -> list[Row]:
        own = {DEVICE: self.devices, INTERFACE: self.interfaces}
        return own[endpoint] if endpoint in own else self.others[endpoint]

    def find(self, endpoint: str, number: object) -> Row:
        found = next((row for row in self.rows(endpoint) if row["id"] == number), None)
        if found is None:
            raise RefusalError(detail=f"Related object not found using the provided numeric ID: {number}")
        return found

    # --- reading ----------------------------------------------------------------------------------------------------

    def selected(self, endpoint: str, query: Mapping[str, list[str]]) -> list[Row]:
        rows = self.rows(endpoint)
        for name, values in query.items():
            if name not in TABLES[endpoint].filters:
                raise RefusalError(**{name: "unknown filter"})
            rows = [row for row in rows if self._matches(row, name, set(values))]
        return rows

    def _matches(self, row: Row, name: str, values: set[str]) -> bool:
        if name == "site":
            device = row if "site" in row else self.find(DEVICE, row["device"]["id"])
            return device["site"]["slug"] in values
        if name == "device_id" and "address" in row:
            place = row["assigned_object"]
            return place is not None and str(place["device"]["id"]) in values
        if name == "device_id" and "a_terminations" in row:
            ends = [one for side in ("a_terminations", "b_terminations") for one in row[side]]
            return any(str(one["object"]["device"]["id"]) in values for one in ends)
        if name == "within_include":
            own, pools = ip_network(row["prefix"]), map(ip_network, values)
            return any(own.version == one.version and own.subnet_of(one) for one in pools)  # type: ignore[arg-type]
        if name == "address":
            return row["address"] in values or row["address"].partition("/")[0] in values
        value = row[name.removesuffix("_id")] if name != "id" else row["id"]
        if isinstance(value, dict):
            value = value["id"]
        return ("null" if value is None else str(value)) in values

    # --- writing ----------------------------------------------------------------------------------------------------

    def create(self, endpoint: str, given: Row) -> Row:
        table = TABLES[endpoint]
        for name in table.required:
            if given.get(name) in {None, ""} if not isinstance(given.get(name), list) else not given[name]:
                raise RefusalError(**{name: "This field is required."})
        row: Row = {"id": max((one["id"] for one in self.rows(endpoint)), default=0) + 1, "custom_fields": {}}
        self._fill(endpoint, row, dict(table.empty))
        self._set(endpoint, row, given)
        self.rows(endpoint).append(row)
        return row

    def change(self, endpoint: str, given: Row) -> Row:
        row = self.find(endpoint, given["id"])
        changed = dict(row)
        self._set(endpoint, changed, {key: value for key, value in given.items() if key != "id"})
        row.update(changed)
        return row

    def _set(self, endpoint: str, row: Row, given: Row) -> None:
        self._fill(endpoint, row, given)
        for names in TABLES[endpoint].unique:
            values = [row.get(name) for name in names]
            others = (one for one in self.rows(endpoint) if one["id"] != row["id"])
            if None not in values and any([one.get(name) for name in names] == values for one in others):
                raise RefusalError(**{names[-1]: f"{endpoint} with this {' and '.join(names)} already exists."})
        {DEVICE: self._check_device, "dcim/cables": self._connect}.get(endpoint, self._check_address)(row)

    def _fill(self, endpoint: str, row: Row, given: Row) -> None:
        table = TABLES[endpoint]
        for name, value in given.items():
            if name == "slug" and not re.fullmatch(r"[-a-zA-Z0-9_]+", value):
                raise RefusalError(slug="Enter a valid slug consisting of letters, numbers, underscores or hyphens.")
            if name == "custom_fields":
                row[name] = {**row[name], **self._custom(value)}
            elif name in table.refs and value is not None:
                target = self.find(table.refs[name], value)
                row[name] = {
                    key: target[key] for key in ("id", "name", "slug", "address", "model") if key in target
                } | {"display": target.get("name") or target.get("address")}
            elif name in table.choices and value is not None:
                if value not in table.choices[name]:
                    raise RefusalError(**{name: f"{value} is not a valid choice."})
                row[name] = {"value": value, "label": value.title()}
            else:
                row[name] = value

    def _custom(self, given: Row) -> Row:
        for name in given:
            known = [one for one in self.rows("extras/custom-fields") if one["name"] == name]
            if not known or "dcim.device" not in known[0]["object_types"]:
                raise RefusalError(custom_fields=f"Unknown field name '{name}' in custom field data.")
        return given

    def _check_device(self, row: Row) -> None:
        if row["rack"] is None:
            return
        rack = self.find("dcim/racks", row["rack"]["id"])
        if rack["site"]["id"] != row["site"]["id"]:
            raise RefusalError(rack=f"Rack {rack['name']} does not belong to site {row['site']['name']}.")
        if not row["position"]:
            return
        if row["face"] is None:
            raise RefusalError(face="Must specify rack face when defining rack position.")
        top = self._units(row)[-1]
        if top > rack["u_height"]:
            raise RefusalError(position=f"U{row['position']} is beyond the rack")
        for other in self.devices:
            if other["id"] == row["id"] or (other["rack"] or {}).get("id") != rack["id"] or not other["position"]:
                continue
            if set(self._units(other)) & set(self._units(row)):
                raise RefusalError(position=f"U{row['position']} is already occupied or does not have sufficient space")

    def _units(self, row: Row) -> range:
        height = self.find("dcim/device-types", row["device_type"]["id"])["u_height"]
        return range(int(row["position"]), int(row["position"]) + int(height))

    def _connect(self, cable: Row) -> None:
        ends = [one for side in ("a_terminations", "b_terminations") for one in cable[side]]
        for end in ends:
            port = self.find(INTERFACE, end["object_id"])
            if port["type"]["value"] == "virtual":
                raise RefusalError(__all__="Cables cannot be terminated to Virtual interfaces")
            if port["cable"] and port["cable"]["id"] != cable["id"]:
                raise RefusalError(__all__=f"Duplicate termination found for dcim.interface {port['id']}")
        for end in ends:
            port = self.find(INTERFACE, end["object_id"])
            port["cable"] = {"id": cable["id"], "label": cable["label"]}
            end["object"] = {"id": port["id"], "name": port["name"], "device": port["device"]}

    def _check_address(self, row: Row) -> None:
        if "prefix" in row and str(ip_network(row["prefix"], strict=False)) != row["prefix"]:
            raise RefusalError(prefix=f"{row['prefix']} is not a valid prefix.")
        if "address" not in row:
            return
        host = ip_interface(row["address"]).ip
        others = (one for one in self.rows("ipam/ip-addresses") if one["id"] != row["id"] and one["vrf"] == row["vrf"])
        if any(ip_interface(one["address"]).ip == host for one in others):
            raise RefusalError(address=f"Duplicate IP address found in global table: {row['address']}")
        if row["assigned_object_id"] is not None:
            port = self.find(INTERFACE, row["assigned_object_id"])
            row["assigned_object"] = {"id": port["id"], "name": port["name"], "device": port["device"]}


def filled(fabric: Fabric) -> NetBox:
    """A NetBox with the devices and cables of a fabric, as entered by hand."""
    netbox = NetBox()
    every: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    site = {"id": 1, "name": fabric.site, "slug": fabric.site}
    netbox.others["dcim/sites"].append(dict(site))
    netbox.devices += [
        {
            "id": number,
            "name": device.name,
            "site": site,
            "serial": device.serial,
            "rack": {"id": 1, "name": device.rack} if device.rack else None,
            "position": float(device.rack_unit) if device.rack_unit else None,
        }
        for number, device in enumerate(every, start=1)
    ]
    ids = {device["name"]: device["id"] for device in netbox.devices}
    for cable, link in enumerate(fabric.cables(), start=1):
        for device, port in ((link.device, link.port), (link.peer, link.peer_port)):
            netbox.interfaces.append(
                {
                    "id": len(netbox.interfaces) + 1,
                    "name": port,
                    "device": {"id": ids[device], "name": device},
                    "cable": {"id": cable, "label": ""},
                }
            )
    return netbox


@contextmanager
def served(netbox: NetBox) -> Iterator[NetBox]:
    """Serve it on the loopback address for the length of a block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            netbox.asked.append(self.path)
            body = b""
            if length := int(self.headers.get("content-length") or 0):
                body = self.rfile.read(length)
            status, answer = _answer(netbox, self.command, self.path, self.headers.get("authorization", ""), body)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            if netbox.moved_to:
                self.send_header("location", f"{netbox.moved_to}{self.path}")
            if status == 429 and netbox.retry_after is not None:
                self.send_header("retry-after", netbox.retry_after)
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_PATCH = do_GET  # noqa: N815 (names of the base class)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the base class)
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    netbox.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield netbox
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(netbox: NetBox, method: str, path: str, authorization: str, body: bytes) -> tuple[int, object]:
    if authorization != f"Token {TOKEN}":
        return 403, {"detail": f"Invalid token: {authorization}"}
    status = 307 if netbox.moved_to else 429 if netbox.limit(method) else netbox.status
    if status != 200:
        return status, {"detail": "unavailable"}
    parts = urlsplit(path)
    endpoint = parts.path.removeprefix("/api/").strip("/")
    try:
        if method == "GET":
            return 200, _page(netbox, parts.path, endpoint, parse_qs(parts.query))
        return _write(netbox, method, endpoint, json.loads(body))
    except RefusalError as error:
        return 400, error.body


def _page(netbox: NetBox, path: str, endpoint: str, query: dict[str, list[str]]) -> object:
    rows = netbox.selected(endpoint, {key: values for key, values in query.items() if key not in PAGING})
    limit, offset = (int(query.get(key, [usual])[0]) for key, usual in (("limit", "50"), ("offset", "0")))
    following = urlencode({**query, "limit": limit, "offset": offset + limit}, doseq=True)
    is_more = offset + limit < len(rows)
    return {
        "count": len(rows),
        "next": f"{netbox.url}{path}?{following}" if is_more else None,
        "previous": None,
        "results": rows[offset : offset + limit],
    }


def _write(netbox: NetBox, method: str, endpoint: str, given: list[Row]) -> tuple[int, object]:
    """Create or change all objects of a request, or none of them."""
    before = json.dumps([netbox.devices, netbox.interfaces, netbox.others])
    write = netbox.create if method == "POST" else netbox.change
    try:
        found = [write(endpoint, one) for one in given]
    except RefusalError:
        netbox.devices, netbox.interfaces, netbox.others = json.loads(before)
        raise
    netbox.written += len(found)
    return 201 if method == "POST" else 200, found
