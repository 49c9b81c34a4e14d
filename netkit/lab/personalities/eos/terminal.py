"""The command line of a switch: privilege, mode, and the commands that run at once."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netkit.lab.personalities.eos import show
from netkit.lab.personalities.eos.configuration import Editor, EosSection, body, differences
from netkit.lab.personalities.eos.machine import ConfigSession, EosMachine
from netkit.lab.personalities.eos.reply import (
    CHECKPOINTS,
    DONE,
    EosCommandError,
    EosReply,
    InvalidCommandError,
    invalid,
    through,
)
from netkit.lab.personalities.eos.show_context import Captured, ShowContext, closest

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
