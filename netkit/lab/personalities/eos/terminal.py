"""The command line of a switch: privilege, mode, and the commands that are run rather than kept."""

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
from netkit.lab.personalities.eos.show_context import Captured, Lens, closest

Answer = Callable[["Terminal", Captured, str], EosReply]
RUNNING, STARTUP = "running-config", "startup-config"


@dataclass(frozen=True, slots=True)
class EosCommand:
    """A command that is run rather than kept as configuration."""

    answer: Answer
    is_privileged: bool = True
    in_session: bool = False


def duration_s(text: str) -> int:
    """Return the seconds of HH:MM:SS."""
    found = re.fullmatch(r"(\d{1,2}):(\d{2}):(\d{2})", text, re.ASCII)
    if not found or int(found[2]) > 59 or int(found[3]) > 59:
        raise InvalidCommandError(f"Invalid input (at token 2: '{text}')")
    hours, minutes, seconds = map(int, found.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if not total:
        raise EosCommandError("The commit timer must be longer than 0 seconds")
    return total


def _enable(terminal: "Terminal", _: Captured, __: str) -> EosReply:
    terminal.is_privileged = True
    return DONE


def _configure(terminal: "Terminal", _: Captured, __: str) -> EosReply:
    terminal.start_typing(None)
    return DONE


def _enter_session(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    name = captured.get("name") or f"sess-{time.time_ns() // 1000}"
    terminal.start_typing(terminal.machine.enter(name))
    return DONE


def _end(terminal: "Terminal", _: Captured, __: str) -> EosReply:
    terminal.typing = None
    return DONE


def _exit(terminal: "Terminal", _: Captured, __: str) -> EosReply:
    terminal.leave()
    return DONE


def _comment(_: "Terminal", __: Captured, ___: str) -> EosReply:
    return DONE


def _clean(terminal: "Terminal", _: Captured, __: str) -> EosReply:
    session = terminal.session()
    session.config = EosSection()
    terminal.start_typing(session)
    return DONE


def _commit_here(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    name = terminal.session().name
    return _commit(terminal, {**captured, "name": name}, "")


def _commit(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    seconds = duration_s(captured["time"]) if "time" in captured else 0
    terminal.machine.commit(captured["name"], terminal.user, seconds)
    terminal.typing = None
    return DONE


def _abort_here(terminal: "Terminal", _: Captured, __: str) -> EosReply:
    return _abort(terminal, {"name": terminal.session().name}, "")


def _abort(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    terminal.machine.abort(captured["name"])
    terminal.typing = None
    return DONE


def _save(terminal: "Terminal", _: Captured, __: str) -> EosReply:
    terminal.machine.save()
    return EosReply({"messages": ["Copy completed successfully."]}, "Copy completed successfully.\n")


def _copy(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    machine, source, target = terminal.machine, captured["source"], captured["target"]
    text = body(machine.running) if source == RUNNING else machine.flash.startup if source == STARTUP else ""
    if source not in {RUNNING, STARTUP}:
        text = machine.flash.read(_flash_name(source))
    if target == "session-config":
        terminal.session()
        for line in text.splitlines():
            if line.strip() not in {"end", "exit"} and terminal.typing is not None:
                terminal.typing.editor.type(line)
    elif target == RUNNING:
        machine.apply(machine.parse(text))
    elif target == STARTUP:
        machine.parse(text)
        machine.flash.startup = text
    else:
        machine.flash.write(_flash_name(target), text)
    return EosReply({"messages": ["Copy completed successfully."]}, "Copy completed successfully.\n")


def _replace(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    terminal.machine.restore(terminal.machine.flash.read(_flash_name(captured["source"])))
    return DONE


def _save_checkpoint(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    name = captured.get("name") or time.strftime("ckp-%Y%m%d-%H%M%S")
    terminal.machine.flash.write(f"{CHECKPOINTS}/{name}", body(terminal.machine.running))
    return DONE


def _restore_checkpoint(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    terminal.machine.restore(terminal.machine.flash.read(f"{CHECKPOINTS}/{captured['name']}"))
    return DONE


def _delete_checkpoint(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    terminal.machine.flash.delete(f"{CHECKPOINTS}/{captured['name']}")
    return DONE


def _delete_file(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    terminal.machine.flash.delete(_flash_name(captured["source"]))
    return DONE


def _clear_counters(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    port = captured.get("port", "")
    if port and port not in terminal.machine.ports:
        raise InvalidCommandError(f"Invalid input (at token 2: '{port}')")
    terminal.machine.node.clear_counters(port)
    return DONE


def _flash_name(word: str) -> str:
    place, colon, name = word.partition(":")
    if not colon or place not in {"flash", "checkpoint"}:
        raise InvalidCommandError(f"Invalid input (at token 1: '{word}')")
    return f"{CHECKPOINTS}/{name}" if place == "checkpoint" else name.lstrip("/")


COMMANDS: Mapping[str, EosCommand] = {
    "enable": EosCommand(_enable, is_privileged=False),
    "end": EosCommand(_end, is_privileged=False),
    "exit": EosCommand(_exit, is_privileged=False),
    "comment": EosCommand(_comment),
    "configure": EosCommand(_configure),
    "configure terminal": EosCommand(_configure),
    "configure session": EosCommand(_enter_session),
    "configure session <name>": EosCommand(_enter_session),
    "configure session <name> commit": EosCommand(_commit),
    "configure session <name> commit timer <time>": EosCommand(_commit),
    "configure session <name> abort": EosCommand(_abort),
    "configure replace <source>": EosCommand(_replace),
    "configure checkpoint save": EosCommand(_save_checkpoint),
    "configure checkpoint save <name>": EosCommand(_save_checkpoint),
    "configure checkpoint restore <name>": EosCommand(_restore_checkpoint),
    "configure checkpoint delete <name>": EosCommand(_delete_checkpoint),
    "rollback clean-config": EosCommand(_clean, in_session=True),
    "commit": EosCommand(_commit_here, in_session=True),
    "commit timer <time>": EosCommand(_commit_here, in_session=True),
    "abort": EosCommand(_abort_here, in_session=True),
    "write": EosCommand(_save),
    "write memory": EosCommand(_save),
    "copy <source> <target>": EosCommand(_copy),
    "delete <source>": EosCommand(_delete_file),
    "clear counters": EosCommand(_clear_counters),
    "clear counters <port>": EosCommand(_clear_counters),
}


CONFIGURATIONS = ("running-config", "startup-config", "session-config")


@dataclass(slots=True)
class Typing:
    """Configuration mode: into a session, or into a draft that counts after every line."""

    editor: Editor
    root: EosSection
    session: ConfigSession | None


class Terminal:
    """One login, or one eAPI request: a sequence of commands that share a mode."""

    def __init__(self, machine: EosMachine, user: str) -> None:
        self.machine = machine
        self.user = user
        self.typing: Typing | None = None
        # A login gets the privilege of its account only when authorization says so; others must ask for it.
        self.is_privileged = machine.running.word("aaa", "authorization", "exec", "default") == "local"

    @property
    def prompt(self) -> str:
        """Return what stands before the cursor."""
        name = self.machine.running.word("hostname") or "localhost"
        if self.typing is None:
            return f"{name}{'#' if self.is_privileged else '>'}"
        session = self.typing.session
        return f"{name}(config{f'-s-{session.name[:6]}' if session else ''})#"

    def run(self, line: str, given: str = "") -> EosReply:
        """Run one command; `given` is the input of a command that asks for some."""
        command, *filters = line.split("|")
        words = tuple(command.split())
        if not words or words[0].startswith("!"):
            return DONE
        with self.machine.turn:
            reply = self._run(words, given)
        return through(reply, [part.strip() for part in filters]) if filters else reply

    def start_typing(self, session: ConfigSession | None) -> None:
        """Enter configuration mode."""
        root = session.config if session else self.machine.running.copy()
        self.typing = Typing(Editor(self.machine.grammar, self.machine.ports, root), root, session)

    def leave(self) -> None:
        """Go one mode up."""
        if self.typing and self.typing.editor.depth:
            self.typing.editor.leave()
        else:
            self.typing = None

    def session(self) -> ConfigSession:
        """Return the session that is being typed into."""
        if self.typing is None or self.typing.session is None:
            raise InvalidCommandError("Invalid input (not in a configuration session)")
        return self.typing.session

    def _run(self, words: tuple[str, ...], given: str) -> EosReply:
        if words[0] == "show":
            what = words[1] if len(words) > 1 else ""
            if what in CONFIGURATIONS and not self.is_privileged:
                raise InvalidCommandError(f"Invalid input (privileged mode required) (at token 1: '{what}')")
            if what == "session-config":
                return self._show_session(words)
            return show.show(Lens(self.machine, is_privileged=self.is_privileged), words)
        found = closest(COMMANDS, words)
        if isinstance(found, int):
            return self._configure(words, found)
        command, captured = found
        if command.in_session and (self.typing is None or self.typing.session is None):
            raise invalid(words, 0)
        if command.is_privileged and not self.is_privileged:
            raise InvalidCommandError(f"Invalid input (privileged mode required) (at token 0: '{words[0]}')")
        return command.answer(self, captured, given)

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

    def _configure(self, words: tuple[str, ...], understood: int) -> EosReply:
        """Take a line as configuration; outside of a session it counts at once."""
        if self.typing is None:
            raise invalid(words, understood)
        self.typing.editor.type(" ".join(words))
        if self.typing.session is None:
            try:
                self.machine.apply(self.typing.root.copy())
            except EosCommandError:
                self.start_typing(None)
                raise
        return DONE
