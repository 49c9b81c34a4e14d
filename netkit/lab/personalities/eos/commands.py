"""Forms of commands that are run rather than kept: words as they stand, and places for a word."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from netkit.lab.personalities.eos.configuration import body
from netkit.lab.personalities.eos.reply import DONE, EosCommandError, EosReply, InvalidCommandError
from netkit.lab.personalities.eos.tree import EosSection

Captured = Mapping[str, str]


class HasForm(Protocol):
    """Something known by the form of its command."""

    @property
    def form(self) -> str:
        """Return the form, such as `show interfaces <port> status`; `<rest…>` takes all that is left."""


Found = TypeVar("Found", bound=HasForm)


def closest(known: Iterable[Found], words: Sequence[str]) -> tuple[Found, Captured] | int:
    """Return the first whose form fits, with what its places took, or how many words were understood at best."""
    furthest = 0
    for one in known:
        found = fit(one.form, words)
        if not isinstance(found, int):
            return one, found
        furthest = max(furthest, found)
    return furthest


def fit(form: str, words: Sequence[str]) -> Captured | int:
    """Return what the places of a form took, or how many words fit."""
    captured: dict[str, str] = {}
    places = form.split()
    for index, place in enumerate(places):
        if place == "<rest…>" and words[index:]:
            captured["rest"] = " ".join(words[index:])
            return captured
        if index >= len(words):
            return index
        if place.startswith("<"):
            captured[place.strip("<>")] = words[index]
        elif place != words[index]:
            return index
    return captured if len(places) == len(words) else len(places)


if TYPE_CHECKING:
    from netkit.lab.personalities.eos.terminal import Terminal

Answer = Callable[["Terminal", Captured, str], EosReply]
RUNNING, STARTUP = "running-config", "startup-config"


@dataclass(frozen=True, slots=True)
class EosCommand:
    """One command by its form."""

    form: str
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
        _load_into_session(terminal, text)
    elif target == RUNNING:
        machine.apply(machine.parse(text))
    elif target == STARTUP:
        machine.parse(text)
        machine.flash.startup = text
    else:
        machine.flash.write(_flash_name(target), text)
    return EosReply({"messages": ["Copy completed successfully."]}, "Copy completed successfully.\n")


def _load_into_session(terminal: "Terminal", text: str) -> None:
    terminal.session()
    for line in text.splitlines():
        if line.strip() not in {"end", "exit"} and terminal.typing is not None:
            terminal.typing.editor.type(line)


def _replace(terminal: "Terminal", captured: Captured, _: str) -> EosReply:
    terminal.machine.restore(terminal.machine.flash.read(_flash_name(captured["source"])))
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
    place, _, name = word.partition(":")
    if place != "flash":
        raise InvalidCommandError(f"Invalid input (at token 1: '{word}')")
    return name.lstrip("/")


COMMANDS: tuple[EosCommand, ...] = (
    EosCommand("enable", _enable, is_privileged=False),
    EosCommand("end", _end, is_privileged=False),
    EosCommand("exit", _exit, is_privileged=False),
    EosCommand("comment", _comment),
    EosCommand("configure", _configure),
    EosCommand("configure terminal", _configure),
    EosCommand("configure session", _enter_session),
    EosCommand("configure session <name>", _enter_session),
    EosCommand("configure session <name> commit", _commit),
    EosCommand("configure session <name> commit timer <time>", _commit),
    EosCommand("configure session <name> abort", _abort),
    EosCommand("configure replace <source>", _replace),
    EosCommand("rollback clean-config", _clean, in_session=True),
    EosCommand("commit", _commit_here, in_session=True),
    EosCommand("commit timer <time>", _commit_here, in_session=True),
    EosCommand("abort", _abort_here, in_session=True),
    EosCommand("write", _save),
    EosCommand("write memory", _save),
    EosCommand("copy <source> <target>", _copy),
    EosCommand("delete <source>", _delete_file),
    EosCommand("clear counters", _clear_counters),
    EosCommand("clear counters <port>", _clear_counters),
)
