"""The REST interface as HTTP: bytes and headers around `rest`."""

import json
from collections.abc import Mapping
from urllib.parse import parse_qs

from netkit.lab.personalities.nvue import account
from netkit.lab.personalities.nvue.rest import rest
from netkit.lab.personalities.nvue.system import System
from netkit.lab.personalities.nvue.tree import has, is_on

JSON = {"Content-Type": "application/json"}


def answer(
    system: System, method: str, target: str, headers: Mapping[str, str], body: bytes, user: str
) -> tuple[int, Mapping[str, str], bytes]:
    """Answer one request; nobody answers while the configuration has the interface off."""
    if has(system.applied, "system", "api") and not is_on(system.applied, "system", "api", default=True):
        return 503, {"Content-Type": "text/plain"}, b"the API is not enabled\n"
    if user == account.LOGIN and not account.exists(system.applied):
        return 401, {"WWW-Authenticate": 'Basic realm="NVUE"'}, b""
    path, _, query = target.partition("?")
    try:
        given = _body(headers, body)
    except ValueError:
        return 400, JSON, _bytes({"title": "Bad Request", "status": 400, "detail": "the body is not JSON"})
    status, shown = rest(system, method, path, parse_qs(query), given, user)
    return status, JSON, b"" if status == 204 else _bytes(shown)


def _body(headers: Mapping[str, str], body: bytes) -> object:
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if not body:
        return None
    text = body.decode("utf-8")
    found: object = text if kind.startswith("text/plain") else json.loads(text)
    return found


def _bytes(shown: object) -> bytes:
    return json.dumps(shown).encode() + b"\n"
