"""A NetBox that answers devices and interfaces as its API documents: pages, nested objects, a token."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from netkit.design import Fabric, Host, Switch

TOKEN = "0123456789abcdef" * 2 + "01234567"


@dataclass
class NetBox:
    """What it holds, and the paths it was asked for."""

    devices: list[dict[str, Any]]
    interfaces: list[dict[str, Any]]
    asked: list[str] = field(default_factory=list)
    status: int = 200
    url: str = ""


def filled(fabric: Fabric) -> NetBox:
    """Return a NetBox that holds the devices and cables of a fabric."""
    every: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    devices = [
        {
            "id": number,
            "name": device.name,
            "serial": device.serial,
            "rack": {"id": 1, "name": device.rack} if device.rack else None,
            "position": float(device.rack_unit) if device.rack_unit else None,
        }
        for number, device in enumerate(every, start=1)
    ]
    ids = {device["name"]: device["id"] for device in devices}
    interfaces: list[dict[str, Any]] = []
    for cable, link in enumerate(fabric.links(), start=1):
        for device, port in ((link.device, link.port), (link.peer, link.peer_port)):
            interfaces.append(
                {
                    "id": len(interfaces) + 1,
                    "name": port,
                    "device": {"id": ids[device], "name": device},
                    "cable": {"id": cable, "label": ""},
                }
            )
    return NetBox(devices, interfaces)


@contextmanager
def served(netbox: NetBox) -> Iterator[NetBox]:
    """Serve it on the loopback address for the length of a block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            netbox.asked.append(self.path)
            status, body = _answer(netbox, self.path, self.headers.get("authorization", ""))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the base class)
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    netbox.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield netbox
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(netbox: NetBox, path: str, authorization: str) -> tuple[int, object]:
    if authorization != f"Token {TOKEN}":
        return 403, {"detail": f"Invalid token: {authorization}"}
    if netbox.status != 200:
        return netbox.status, {"detail": "unavailable"}
    parts = urlsplit(path)
    rows = {"devices": netbox.devices, "interfaces": netbox.interfaces}[parts.path.strip("/").rpartition("/")[2]]
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    limit, offset = int(query.get("limit", 50)), int(query.get("offset", 0))
    following = (
        f"{netbox.url}{parts.path}?limit={limit}&offset={offset + limit}" if offset + limit < len(rows) else None
    )
    return 200, {"count": len(rows), "next": following, "previous": None, "results": rows[offset : offset + limit]}
