"""Arista EOS: eAPI, configuration sessions with timers, and the show commands the toolkit reads."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from netkit.lab.agents import gnmi
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.eos import switch_state
from netkit.lab.personalities.eos.machine import EosMachine
from netkit.lab.personalities.eos.reply import EosCommandError, NoJsonError
from netkit.lab.personalities.eos.switch_state import management_vrf
from netkit.lab.personalities.eos.terminal import Terminal
from netkit.lab.personality import Call, Elem, GnmiLeaf, Personality
from netkit.lab.reading import SwitchPortReading


def openconfig(machine: EosMachine, path: tuple[Elem, ...]) -> Iterator[GnmiLeaf]:
    """Yield the OpenConfig leaves below a path; raise LookupError for an unknown path."""
    leaves = (leaf for reading in machine.node.ports() for leaf in _port_leaves(machine, reading))
    yield from gnmi.below(leaves, path)


def _port_leaves(machine: EosMachine, reading: SwitchPortReading) -> Iterator[GnmiLeaf]:
    name, section = reading.name, machine.running.section("interface", reading.name)
    discards = reading.traffic.tx_dropped + sum(queue.dropped_packets for queue in reading.queues)
    state = gnmi.state(reading, section.word("description"))
    yield from gnmi.leaves(gnmi.interface(name, "state"), state)
    counters = {
        **gnmi.counters(reading),
        "out-discards": discards,
        "carrier-transitions": reading.carrier_changes,
    }
    yield from gnmi.leaves(gnmi.interface(name, "state", "counters"), counters)
    profile = switch_state.profile_of(machine.running, section)
    for number, queue in enumerate(reading.queues):
        has_marks = profile.queue(number).is_ecn_counted and profile.queue(number).ecn is not None
        marks = {"ecn-marked-pkts": queue.ecn_marked_packets} if has_marks else {}
        counters = {**gnmi.queue_counters(queue), "dropped-pkts": queue.dropped_packets, **marks}
        yield from gnmi.leaves(gnmi.queue(name, number), counters)


USAGE = "usage: Cli [-p PRIVILEGE] [-c COMMANDS]\n"
FLAGS = ("-A", "-M", "-e")


def run(machine: EosMachine, call: Call) -> int:
    """Run `Cli` or `FastCli`."""
    terminal = Terminal(machine, call.user)
    commands: str | None = None
    words = list(call.arguments)
    while words:
        word = words.pop(0)
        if word == "-p" and words and words[0].isdigit():
            terminal.is_privileged = int(words.pop(0)) >= 15 or terminal.is_privileged
        elif word == "-c" and words:
            commands = words.pop(0)
        elif word not in FLAGS:
            call.err(USAGE)
            return 2
    if commands is not None:
        results = [_run_line(terminal, call, line) for line in commands.splitlines()]
        return 0 if all(results) else 1
    while True:
        line = call.ask(terminal.prompt)
        if not line or line.strip() in {"logout", "quit"} or (line.strip() == "exit" and terminal.config_mode is None):
            return 0
        _run_line(terminal, call, line)


def _run_line(terminal: Terminal, call: Call, line: str) -> bool:
    try:
        call.out(terminal.run(line.strip()).text)
    except EosCommandError as error:
        call.out("".join(f"% {text}\n" for text in error.errors))
        return False
    return True


PATH = "/command-api"
FORMATS = ("json", "text")
VERSIONS = (1, "latest")
HEADERS = {"Content-Type": "application/json"}


class BadRequestError(Exception):
    """An invalid request, with its JSON-RPC error code."""

    def __init__(self, code: int, message: str, request_id: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class EapiRequest:
    """A runCmds request."""

    id: object
    commands: tuple[str, ...]
    format: str
    has_timestamps: bool
    stops_on_error: bool


def answer(machine: EosMachine, body: bytes, user: str) -> bytes:
    try:
        request = _read(body)
    except BadRequestError as error:
        problem = {"code": error.code, "message": str(error)}
        return json.dumps({"jsonrpc": "2.0", "id": error.request_id, "error": problem}).encode()
    terminal = Terminal(machine, user)
    results: list[Mapping[str, Any]] = []
    failure: dict[str, Any] | None = None
    for number, command in enumerate(request.commands, start=1):
        started_s = time.time()
        try:
            reply = terminal.run(command)
            if request.format == "json" and reply.data is None:
                raise NoJsonError("Command cannot be used over the API at this time; ask for text")
        except EosCommandError as error:
            results.append({"errors": list(error.errors)})
            text = f"CLI command {number} of {len(request.commands)} '{command}' failed: {error.summary}"
            failure = failure or {"code": error.code, "message": text}
            if request.stops_on_error:
                break
            continue
        result: Mapping[str, Any] = reply.data or {} if request.format == "json" else {"output": reply.text}
        if request.has_timestamps:
            took_s = time.time() - started_s
            result = {**result, "_meta": {"execStartTime": started_s, "execDuration": took_s}}
        results.append(result)
    outcome = {"error": {**failure, "data": results}} if failure else {"result": results}
    return json.dumps({"jsonrpc": "2.0", "id": request.id, **outcome}).encode()


def http(machine: EosMachine, method: str, path: str, body: bytes, user: str) -> tuple[int, Mapping[str, str], bytes]:
    if path.partition("?")[0] != PATH:
        return 404, {"Content-Type": "text/plain"}, b"Not Found\n"
    if method != "POST":
        return 405, {"Content-Type": "text/plain", "Allow": "POST"}, b"Method Not Allowed\n"
    return 200, HEADERS, answer(machine, body, user)


def _read(body: bytes) -> EapiRequest:
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
    commands = [one.get("cmd") if isinstance(one, dict) else one for one in params["cmds"]]
    if any(not isinstance(command, str) for command in commands):
        raise BadRequestError(-32602, "Invalid params: a command is a string or an object with cmd", request_id)
    return EapiRequest(
        id=request_id,
        commands=tuple(map(str, commands)),
        format=form,
        has_timestamps=params.get("timestamps") is True,
        stops_on_error=params.get("stopOnError") is not False,
    )


CONFIGS = ("eos.cfg", "startup-config")


class Eos(Personality):
    """Arista EOS: eAPI over HTTPS, and the CLI behind `Cli` and `FastCli`."""

    programs: ClassVar[tuple[str, ...]] = ("Cli", "FastCli")
    login: ClassVar[str] = "admin"
    https_port: ClassVar[int] = 443

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.machine = EosMachine(node)

    def provision(self, files: Mapping[str, str]) -> None:
        unknown = sorted(set(files) - set(CONFIGS))
        found = [files[name] for name in CONFIGS if name in files]
        if unknown or len(found) != 1:
            raise ConfigRefusedError(
                f"EOS needs one file, {' or '.join(CONFIGS)}; got {', '.join(sorted(files)) or 'nothing'}"
            )
        self.machine.load_startup(found[0])

    def boot(self) -> None:
        self.machine.boot()

    def run(self, call: Call) -> int:
        return run(self.machine, call)

    def stop(self) -> None:
        self.machine.stop()

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[GnmiLeaf]:
        del target  # EOS has one tree
        yield from openconfig(self.machine, path)

    @property
    def fail_apply_quietly(self) -> bool:
        """Lab fault: commits report success but change nothing."""
        return self.machine.loses_commits

    @fail_apply_quietly.setter
    def fail_apply_quietly(self, is_wanted: bool) -> None:
        self.machine.loses_commits = is_wanted

    @property
    def serves_https(self) -> bool:
        """Whether eAPI is enabled in the VRF of the management interface; it is off by default."""
        api = self.machine.running.section("management", "api", "http-commands")
        if api.is_off("protocol", "https") or not api.is_off("shutdown"):
            return False
        vrf = management_vrf(self.machine.running)
        return vrf == "default" or api.section("vrf", vrf).is_off("shutdown")

    def https(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, user: str = "admin"
    ) -> tuple[int, Mapping[str, str], bytes]:
        del headers
        if not self.serves_https:
            return 503, {"Content-Type": "text/plain"}, b"eAPI is not enabled\n"
        return http(self.machine, method, path, body, user)

    def eapi(self, body: bytes, user: str = "admin") -> bytes:
        return answer(self.machine, body, user)


PERSONALITY = Eos
