"""Arista EOS: eAPI, its command line with configuration sessions, and the show commands the toolkit reads."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from netkit.lab.agents import gnmi
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.eos import show, switch_state
from netkit.lab.personalities.eos.configuration import Editor, EosSection, body, differences
from netkit.lab.personalities.eos.machine import Captured, ConfigSession, EosMachine, ShowContext, closest
from netkit.lab.personalities.eos.reply import (
    CHECKPOINTS,
    DONE,
    EosCommandError,
    EosReply,
    InvalidCommandError,
    NoJsonError,
    invalid,
    through,
)
from netkit.lab.personalities.eos.switch_state import management_vrf
from netkit.lab.personality import Call, Elem, GnmiLeaf, Personality
from netkit.lab.reading import SwitchPortReading

Answer = Callable[["Terminal", Captured], EosReply | None]
RUNNING, STARTUP = "running-config", "startup-config"
COPIED = EosReply({"messages": ["Copy completed successfully."]}, "Copy completed successfully.\n")


@dataclass(frozen=True, slots=True)
class EosCommand:
    """A command that runs at once and is not part of the configuration."""

    answer: Answer
    is_privileged: bool = True
    in_session: bool = False


def duration_s(text: str) -> int:
    """Parse HH:MM:SS."""
    found = re.fullmatch(r"(\d{1,2}):(\d{2}):(\d{2})", text, re.ASCII)
    if not found or int(found[2]) > 59 or int(found[3]) > 59:
        raise InvalidCommandError(f"Invalid input (at token 2: '{text}')")
    hours, minutes, seconds = map(int, found.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if not total:
        raise EosCommandError("The commit timer must be longer than 0 seconds")
    return total


def _enable(terminal: "Terminal", _: Captured) -> None:
    terminal.is_privileged = True


def _configure(terminal: "Terminal", _: Captured) -> None:
    terminal.enter_config_mode(None)


def _enter_session(terminal: "Terminal", captured: Captured) -> None:
    name = captured.get("name") or f"sess-{time.time_ns() // 1000}"
    terminal.enter_config_mode(terminal.machine.enter(name))


def _end(terminal: "Terminal", _: Captured) -> None:
    terminal.config_mode = None


def _clean(terminal: "Terminal", _: Captured) -> None:
    session = terminal.session()
    session.config = EosSection()
    terminal.enter_config_mode(session)


def _commit(terminal: "Terminal", captured: Captured) -> None:
    name = captured.get("name") or terminal.session().name
    seconds = duration_s(captured["time"]) if "time" in captured else 0
    terminal.machine.commit(name, terminal.user, seconds)
    terminal.config_mode = None


def _abort(terminal: "Terminal", captured: Captured) -> None:
    terminal.machine.abort(captured.get("name") or terminal.session().name)
    terminal.config_mode = None


def _save(terminal: "Terminal", _: Captured) -> EosReply:
    terminal.machine.save()
    return COPIED


def _copy(terminal: "Terminal", captured: Captured) -> EosReply:
    machine, source, target = terminal.machine, captured["source"], captured["target"]
    if source == RUNNING:
        text = body(machine.running)
    elif source == STARTUP:
        text = machine.flash.startup
    else:
        text = machine.flash.read(_flash_name(source))
    if target == "session-config":
        terminal.session()
        for line in text.splitlines():
            if line.strip() not in {"end", "exit"} and terminal.config_mode is not None:
                terminal.config_mode.editor.type(line)
    elif target == RUNNING:
        machine.apply(machine.parse(text))
    elif target == STARTUP:
        machine.parse(text)
        machine.flash.startup = text
    else:
        machine.flash.write(_flash_name(target), text)
    return COPIED


def _replace(terminal: "Terminal", captured: Captured) -> None:
    terminal.machine.restore(terminal.machine.flash.read(_flash_name(captured["source"])))


def _checkpoint(terminal: "Terminal", captured: Captured) -> None:
    name = captured.get("name") or time.strftime("ckp-%Y%m%d-%H%M%S")
    path, flash = f"{CHECKPOINTS}/{name}", terminal.machine.flash
    match captured["verb"]:
        case "save":
            flash.write(path, body(terminal.machine.running))
        case "restore" if "name" in captured:
            terminal.machine.restore(flash.read(path))
        case "delete" if "name" in captured:
            flash.delete(path)
        case verb:
            raise InvalidCommandError(f"Invalid input (at token 2: '{verb}')")


def _clear_counters(terminal: "Terminal", captured: Captured) -> None:
    port = captured.get("port", "")
    if port and port not in terminal.machine.ports:
        raise InvalidCommandError(f"Invalid input (at token 2: '{port}')")
    terminal.machine.node.clear_counters(port)


def _flash_name(word: str) -> str:
    place, colon, name = word.partition(":")
    if not colon or place not in {"flash", "checkpoint"}:
        raise InvalidCommandError(f"Invalid input (at token 1: '{word}')")
    return f"{CHECKPOINTS}/{name}" if place == "checkpoint" else name.lstrip("/")


COMMANDS: Mapping[str, EosCommand] = {
    "enable": EosCommand(_enable, is_privileged=False),
    "end": EosCommand(_end, is_privileged=False),
    "exit": EosCommand(lambda terminal, _: terminal.leave(), is_privileged=False),
    "comment": EosCommand(lambda *_: None),
    "configure": EosCommand(_configure),
    "configure terminal": EosCommand(_configure),
    "configure session": EosCommand(_enter_session),
    "configure session <name>": EosCommand(_enter_session),
    "configure session <name> commit": EosCommand(_commit),
    "configure session <name> commit timer <time>": EosCommand(_commit),
    "configure session <name> abort": EosCommand(_abort),
    "configure replace <source>": EosCommand(_replace),
    "configure checkpoint <verb>": EosCommand(_checkpoint),
    "configure checkpoint <verb> <name>": EosCommand(_checkpoint),
    "rollback clean-config": EosCommand(_clean, in_session=True),
    "commit": EosCommand(_commit, in_session=True),
    "commit timer <time>": EosCommand(_commit, in_session=True),
    "abort": EosCommand(_abort, in_session=True),
    "write": EosCommand(_save),
    "write memory": EosCommand(_save),
    "copy <source> <target>": EosCommand(_copy),
    "clear counters": EosCommand(_clear_counters),
    "clear counters <port>": EosCommand(_clear_counters),
}


CONFIGURATIONS = ("running-config", "startup-config", "session-config")


@dataclass(slots=True)
class ConfigMode:
    """Configuration mode, in a session or in a draft that is applied after every line."""

    editor: Editor
    root: EosSection
    session: ConfigSession | None


class Terminal:
    """A login or an eAPI request: a sequence of commands that share a mode."""

    def __init__(self, machine: EosMachine, user: str) -> None:
        self.machine = machine
        self.user = user
        self.config_mode: ConfigMode | None = None
        # A login gets the privilege of its account only with authorization; others must enable it.
        self.is_privileged = machine.running.word("aaa", "authorization", "exec", "default") == "local"

    @property
    def prompt(self) -> str:
        name = self.machine.running.word("hostname") or "localhost"
        if self.config_mode is None:
            return f"{name}{'#' if self.is_privileged else '>'}"
        session = self.config_mode.session
        return f"{name}(config{f'-s-{session.name[:6]}' if session else ''})#"

    def run(self, line: str) -> EosReply:
        command, *filters = line.split("|")
        words = tuple(command.split())
        if not words or words[0].startswith("!"):
            return DONE
        with self.machine.lock:
            reply = self._run(words)
        return through(reply, [part.strip() for part in filters]) if filters else reply

    def enter_config_mode(self, session: ConfigSession | None) -> None:
        root = session.config if session else self.machine.running.copy()
        self.config_mode = ConfigMode(Editor(self.machine.grammar, self.machine.ports, root), root, session)

    def leave(self) -> None:
        """Leave the current mode."""
        if self.config_mode and self.config_mode.editor.depth:
            self.config_mode.editor.leave()
        else:
            self.config_mode = None

    def session(self) -> ConfigSession:
        """The session of the current mode."""
        if self.config_mode is None or self.config_mode.session is None:
            raise InvalidCommandError("Invalid input (not in a configuration session)")
        return self.config_mode.session

    def _run(self, words: tuple[str, ...]) -> EosReply:
        if words[0] == "show":
            what = words[1] if len(words) > 1 else ""
            if what in CONFIGURATIONS and not self.is_privileged:
                raise InvalidCommandError(f"Invalid input (privileged mode required) (at token 1: '{what}')")
            if what == "session-config":
                return self._show_session(words)
            return show.show(ShowContext(self.machine), words)
        found = closest(COMMANDS, words)
        if isinstance(found, int):
            return self._type(words, found)
        command, captured = found
        if command.in_session and (self.config_mode is None or self.config_mode.session is None):
            raise invalid(words, 0)
        if command.is_privileged and not self.is_privileged:
            raise InvalidCommandError(f"Invalid input (privileged mode required) (at token 0: '{words[0]}')")
        return command.answer(self, captured) or DONE

    def _show_session(self, words: tuple[str, ...]) -> EosReply:
        rest = words[2:]
        if rest[:1] == ("named",) and len(rest) > 1:
            session, rest = self.machine.session(rest[1]), rest[2:]
        else:
            session = self.session()
        if rest == ("diffs",):
            return EosReply(None, differences(self.machine.running, session.config, session.name))
        if rest in {(), ("sanitized",)}:
            return EosReply(None, f"! Command: {' '.join(words)}\n{body(session.config)}")
        raise invalid(words, len(words) - len(rest))

    def _type(self, words: tuple[str, ...], understood: int) -> EosReply:
        """Apply a configuration line; outside a session it takes effect at once."""
        if self.config_mode is None:
            raise invalid(words, understood)
        self.config_mode.editor.type(" ".join(words))
        if self.config_mode.session is None:
            try:
                self.machine.apply(self.config_mode.root.copy())
            except EosCommandError:
                self.enter_config_mode(None)
                raise
        return DONE


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
