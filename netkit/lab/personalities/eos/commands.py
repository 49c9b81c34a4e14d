"""Forms of commands that are run rather than kept: words as they stand, and places for a word."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from netkit.lab.personalities.eos.configuration import body
from netkit.lab.personalities.eos.reply import CHECKPOINTS, DONE, CommandError, InvalidCommandError, Reply
from netkit.lab.personalities.eos.tree import Section

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

Answer = Callable[["Terminal", Captured, str], Reply]
RUNNING, STARTUP = "running-config", "startup-config"


@dataclass(frozen=True, slots=True)
class Command:
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
        raise CommandError("The commit timer must be longer than 0 seconds")
    return total


def _enable(terminal: "Terminal", _: Captured, __: str) -> Reply:
    terminal.is_privileged = True
    return DONE


def _disable(terminal: "Terminal", _: Captured, __: str) -> Reply:
    terminal.is_privileged = False
    return DONE


def _configure(terminal: "Terminal", _: Captured, __: str) -> Reply:
    terminal.start_typing(None)
    return DONE


def _enter_session(terminal: "Terminal", captured: Captured, _: str) -> Reply:
    name = captured.get("name") or f"sess-{time.time_ns() // 1000}"
    terminal.start_typing(terminal.machine.enter(name))
    return DONE


def _end(terminal: "Terminal", _: Captured, __: str) -> Reply:
    terminal.typing = None
    return DONE


def _exit(terminal: "Terminal", _: Captured, __: str) -> Reply:
    terminal.leave()
    return DONE


def _comment(_: "Terminal", __: Captured, ___: str) -> Reply:
    return DONE


def _clean(terminal: "Terminal", _: Captured, __: str) -> Reply:
    session = terminal.session()
    session.config = Section()
    terminal.start_typing(session)
    return DONE


def _commit_here(terminal: "Terminal", captured: Captured, _: str) -> Reply:
    name = terminal.session().name
    return _commit(terminal, {**captured, "name": name}, "")


def _commit(terminal: "Terminal", captured: Captured, _: str) -> Reply:
    seconds = duration_s(captured["time"]) if "time" in captured else 0
    terminal.machine.commit(captured["name"], terminal.user, seconds)
    terminal.typing = None
    return DONE


def _abort_here(terminal: "Terminal", _: Captured, __: str) -> Reply:
    return _abort(terminal, {"name": terminal.session().name}, "")


def _abort(terminal: "Terminal", captured: Captured, _: str) -> Reply:
    terminal.machine.abort(captured["name"])
    terminal.typing = None
    return DONE


def _save(terminal: "Terminal", _: Captured, __: str) -> Reply:
    terminal.machine.save()
    return Reply({"messages": ["Copy completed successfully."]}, "Copy completed successfully.\n")


def _copy(terminal: "Terminal", captured: Captured, _: str) -> Reply:
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
    return Reply({"messages": ["Copy completed successfully."]}, "Copy completed successfully.\n")


def _load_into_session(terminal: "Terminal", text: str) -> None:
    terminal.session()
    for line in text.splitlines():
        if line.strip() not in {"end", "exit"} and terminal.typing is not None:
            terminal.typing.editor.type(line)


def _replace(terminal: "Terminal", captured: Captured, _: str) -> Reply:
    terminal.machine.restore(terminal.machine.flash.read(_flash_name(captured["source"])))
    return DONE


def _save_checkpoint(terminal: "Terminal", captured: Captured, _: str) -> Reply:
    name = captured.get("name") or time.strftime("ckp-%Y%m%d-%H%M%S")
    terminal.machine.flash.write(f"{CHECKPOINTS}/{name}", body(terminal.machine.running))
    return DONE


def _restore_checkpoint(terminal: "Terminal", captured: Captured, _: str) -> Reply:
    terminal.machine.restore(terminal.machine.flash.read(f"{CHECKPOINTS}/{captured['name']}"))
    return DONE


def _delete_checkpoint(terminal: "Terminal", captured: Captured, _: str) -> Reply:
    terminal.machine.flash.delete(f"{CHECKPOINTS}/{captured['name']}")
    return DONE


def _delete_file(terminal: "Terminal", captured: Captured, _: str) -> Reply:
    terminal.machine.flash.delete(_flash_name(captured["source"]))
    return DONE


def _clear_counters(terminal: "Terminal", captured: Captured, _: str) -> Reply:
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


COMMANDS: tuple[Command, ...] = (
    Command("enable", _enable, is_privileged=False),
    Command("disable", _disable),
    Command("end", _end, is_privileged=False),
    Command("exit", _exit, is_privileged=False),
    Command("comment", _comment),
    Command("configure", _configure),
    Command("configure terminal", _configure),
    Command("configure session", _enter_session),
    Command("configure session <name>", _enter_session),
    Command("configure session <name> commit", _commit),
    Command("configure session <name> commit timer <time>", _commit),
    Command("configure session <name> abort", _abort),
    Command("no configure session <name>", _abort),
    Command("configure replace <source>", _replace),
    Command("configure checkpoint save", _save_checkpoint),
    Command("configure checkpoint save <name>", _save_checkpoint),
    Command("configure checkpoint restore <name>", _restore_checkpoint),
    Command("configure checkpoint delete <name>", _delete_checkpoint),
    Command("rollback clean-config", _clean, in_session=True),
    Command("commit", _commit_here, in_session=True),
    Command("commit timer <time>", _commit_here, in_session=True),
    Command("abort", _abort_here, in_session=True),
    Command("write", _save),
    Command("write memory", _save),
    Command("copy <source> <target>", _copy),
    Command("delete <source>", _delete_file),
    Command("clear counters", _clear_counters),
    Command("clear counters <port>", _clear_counters),
)
