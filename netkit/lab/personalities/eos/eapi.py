"""eAPI: JSON-RPC requests with lists of commands, and the answers EOS gives."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netkit.lab.personalities.eos.machine import Machine
from netkit.lab.personalities.eos.reply import CommandError, NoJsonError, Reply
from netkit.lab.personalities.eos.terminal import Terminal

PATH = "/command-api"
FORMATS = ("json", "text")
VERSIONS = (1, "latest")
HEADERS = {"Content-Type": "application/json"}


class BadRequestError(Exception):
    """A request that is none, with the code JSON-RPC has for it."""

    def __init__(self, code: int, message: str, request_id: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class Request:
    """One list of commands; each with the input it asks for."""

    id: object
    commands: tuple[tuple[str, str], ...]
    format: str
    has_timestamps: bool
    stops_on_error: bool


def answer(machine: Machine, body: bytes, user: str) -> bytes:
    """Answer one request."""
    try:
        request = _read(body)
    except BadRequestError as error:
        problem = {"code": error.code, "message": str(error)}
        return _encoded({"jsonrpc": "2.0", "id": error.request_id, "error": problem})
    terminal = Terminal(machine, user)
    results: list[Mapping[str, Any]] = []
    failure: dict[str, Any] | None = None
    for number, (command, given) in enumerate(request.commands, start=1):
        started_s = time.time()
        try:
            result = _shaped(terminal.run(command, given), request.format)
        except CommandError as error:
            results.append({"errors": list(error.errors)})
            text = f"CLI command {number} of {len(request.commands)} '{command}' failed: {error.summary}"
            failure = failure or {"code": error.code, "message": text}
            if request.stops_on_error:
                break
            continue
        if request.has_timestamps:
            took_s = time.time() - started_s
            result = {**result, "_meta": {"execStartTime": started_s, "execDuration": took_s}}
        results.append(result)
    envelope = {"jsonrpc": "2.0", "id": request.id}
    if failure:
        return _encoded({**envelope, "error": {**failure, "data": results}})
    return _encoded({**envelope, "result": results})


def http(machine: Machine, method: str, path: str, body: bytes, user: str) -> tuple[int, Mapping[str, str], bytes]:
    """Answer one HTTP request whose user is already known."""
    if path.partition("?")[0] != PATH:
        return 404, {"Content-Type": "text/plain"}, b"Not Found\n"
    if method != "POST":
        return 405, {"Content-Type": "text/plain", "Allow": "POST"}, b"Method Not Allowed\n"
    return 200, HEADERS, answer(machine, body, user)


def _shaped(reply: Reply, form: str) -> Mapping[str, Any]:
    if form == "text":
        return {"output": reply.text}
    if reply.data is None:
        raise NoJsonError("Command cannot be used over the API at this time; ask for text")
    return reply.data


def _read(body: bytes) -> Request:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(-32700, f"Parse error: {error}") from error
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        raise BadRequestError(-32600, "Invalid request: not JSON-RPC 2.0")
    request_id = found.get("id")
    if found.get("method") != "runCmds":
        raise BadRequestError(-32601, f"Method not found: {found.get('method')}", request_id)
    params = found.get("params")
    if not isinstance(params, dict) or not isinstance(params.get("cmds"), list):
        raise BadRequestError(-32602, "Invalid params: cmds must be a list", request_id)
    form = params.get("format", "json")
    if form not in FORMATS or params.get("version", 1) not in VERSIONS:
        raise BadRequestError(-32602, "Invalid params: unknown format or version", request_id)
    return Request(
        id=request_id,
        commands=tuple(_command(one, request_id) for one in params["cmds"]),
        format=form,
        has_timestamps=params.get("timestamps") is True,
        stops_on_error=params.get("stopOnError") is not False,
    )


def _command(found: object, request_id: object) -> tuple[str, str]:
    if isinstance(found, str):
        return found, ""
    if isinstance(found, dict) and isinstance(found.get("cmd"), str):
        return found["cmd"], str(found.get("input", ""))
    raise BadRequestError(-32602, "Invalid params: a command is a string or an object with cmd", request_id)


def _encoded(found: Mapping[str, Any]) -> bytes:
    return json.dumps(found).encode()
