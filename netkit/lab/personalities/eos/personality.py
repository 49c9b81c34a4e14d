"""EOS as a personality: eAPI, its CLI, and what it tells over gNMI by OpenConfig's models."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from netkit.lab.agents import gnmi
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.eos import switch_state
from netkit.lab.personalities.eos.machine import EosMachine
from netkit.lab.personalities.eos.reply import EosCommandError, EosReply, NoJsonError
from netkit.lab.personalities.eos.switch_state import management_vrf
from netkit.lab.personalities.eos.terminal import Terminal
from netkit.lab.personality import Call, Elem, Personality, Told
from netkit.lab.reading import SwitchPortReading


def told(machine: EosMachine, path: tuple[Elem, ...]) -> Iterator[Told]:
    """Yield all leaves below a path; LookupError when no model has it."""
    everything = (one for reading in machine.node.ports() for one in _of_port(machine, reading))
    yield from gnmi.below(everything, path)


def _of_port(machine: EosMachine, reading: SwitchPortReading) -> Iterator[Told]:
    name, section = reading.name, machine.running.section("interface", reading.name)
    discards = reading.traffic.tx_dropped + sum(queue.dropped_packets for queue in reading.queues)
    counters = {"out-discards": discards, "carrier-transitions": reading.carrier_changes}
    state = gnmi.state(reading, section.word("description"))
    yield from gnmi.leaves(gnmi.interface(name, "state"), state)
    told = {**gnmi.counters(reading), **counters}
    yield from gnmi.leaves(gnmi.interface(name, "state", "counters"), told)
    profile = switch_state.profile_of(machine.running, section)
    for number, queue in enumerate(reading.queues):
        has_marks = profile.queue(number).is_ecn_counted and profile.queue(number).ecn is not None
        marks = {"ecn-marked-pkts": queue.ecn_marked_packets} if has_marks else {}
        counted = {**gnmi.queue_counters(queue), "dropped-pkts": queue.dropped_packets, **marks}
        yield from gnmi.leaves(gnmi.queue(name, number), counted)


USAGE = "usage: Cli [-p PRIVILEGE] [-c COMMANDS]\n"
FLAGS = ("-A", "-M", "-e")


def run(machine: EosMachine, call: Call) -> int:
    """Answer one start of the CLI."""
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
    if commands is None:
        return _converse(terminal, call)
    outcomes = [_one(terminal, call, line) for line in commands.splitlines()]
    return 0 if all(outcomes) else 1


def _converse(terminal: Terminal, call: Call) -> int:
    while True:
        line = call.ask(terminal.prompt)
        if not line or line.strip() in {"logout", "quit"} or (line.strip() == "exit" and terminal.typing is None):
            return 0
        _one(terminal, call, line)


def _one(terminal: Terminal, call: Call, line: str) -> bool:
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
    """A request that is none, with the code JSON-RPC has for it."""

    def __init__(self, code: int, message: str, request_id: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class EapiRequest:
    """One list of commands; each with the input it asks for."""

    id: object
    commands: tuple[tuple[str, str], ...]
    format: str
    has_timestamps: bool
    stops_on_error: bool


def answer(machine: EosMachine, body: bytes, user: str) -> bytes:
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
        except EosCommandError as error:
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


def http(machine: EosMachine, method: str, path: str, body: bytes, user: str) -> tuple[int, Mapping[str, str], bytes]:
    """Answer one HTTP request whose user is already known."""
    if path.partition("?")[0] != PATH:
        return 404, {"Content-Type": "text/plain"}, b"Not Found\n"
    if method != "POST":
        return 405, {"Content-Type": "text/plain", "Allow": "POST"}, b"Method Not Allowed\n"
    return 200, HEADERS, answer(machine, body, user)


def _shaped(reply: EosReply, form: str) -> Mapping[str, Any]:
    if form == "text":
        return {"output": reply.text}
    if reply.data is None:
        raise NoJsonError("Command cannot be used over the API at this time; ask for text")
    return reply.data


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
    return EapiRequest(
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


CONFIGS = ("eos.cfg", "startup-config")


class Eos(Personality):
    """EOS: eAPI over HTTPS, and the CLI behind `Cli` and `FastCli`."""

    programs: ClassVar[tuple[str, ...]] = ("Cli", "FastCli")
    login: ClassVar[str] = "admin"
    https_port: ClassVar[int] = 443

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.machine = EosMachine(node)

    def provision(self, files: Mapping[str, str]) -> None:
        """Make a rendered configuration the startup-config."""
        unknown = sorted(set(files) - set(CONFIGS))
        found = [files[name] for name in CONFIGS if name in files]
        if unknown or len(found) != 1:
            raise ConfigRefusedError(
                f"EOS takes one of {' or '.join(CONFIGS)}; got {', '.join(sorted(files)) or 'nothing'}"
            )
        self.machine.load_startup(found[0])

    def boot(self) -> None:
        """Become what the startup-config says."""
        self.machine.boot()

    def run(self, call: Call) -> int:
        """Answer the CLI."""
        return run(self.machine, call)

    def stop(self) -> None:
        """Go down: what waits for its confirmation waits no more."""
        self.machine.stop()

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[Told]:
        """Yield what OpenConfig's models have below a path."""
        del target  # EOS has one tree
        yield from told(self.machine, path)

    @property
    def fail_apply_quietly(self) -> bool:
        """Whether commits say that they succeeded and change nothing: a fault of the lab."""
        return self.machine.loses_commits

    @fail_apply_quietly.setter
    def fail_apply_quietly(self, is_wanted: bool) -> None:
        self.machine.loses_commits = is_wanted

    @property
    def serves_https(self) -> bool:
        """Whether eAPI answers: it is off until the configuration turns it on where the management interface is."""
        api = self.machine.running.section("management", "api", "http-commands")
        if api.is_off("protocol", "https") or not api.is_off("shutdown"):
            return False
        vrf = management_vrf(self.machine.running)
        return vrf == "default" or api.section("vrf", vrf).is_off("shutdown")

    def https(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, user: str = "admin"
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Answer a request on port 443 whose user the lab has let in."""
        del headers
        if not self.serves_https:
            return 503, {"Content-Type": "text/plain"}, b"eAPI is not enabled\n"
        return http(self.machine, method, path, body, user)

    def eapi(self, body: bytes, user: str = "admin") -> bytes:
        """Answer one eAPI request."""
        return answer(self.machine, body, user)
