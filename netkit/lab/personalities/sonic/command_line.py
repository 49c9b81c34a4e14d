"""SONiC's command line: groups of words, options, its messages, and the columns its tables print in."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personality import Call

USAGE_ERROR = 2


class SonicUsageError(Exception):
    """A command line that SONiC does not take."""


@dataclass(frozen=True, slots=True)
class SonicArguments:
    """What stands after the words of a command."""

    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        """Whether an option was given, by any of its names."""
        return any(name in self.options for name in names)

    def first(self, what: str) -> str:
        """Return the first argument, or say which is missing."""
        if not self.arguments:
            raise SonicUsageError(f'Missing argument "{what}".')
        return self.arguments[0]


Action = Callable[[SonicSystem, Call, SonicArguments], int | None]


@dataclass(frozen=True, slots=True)
class SonicCommand:
    """What is done, and the options it takes: a flag, or one with a value."""

    action: Action
    most: int = 0
    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()


Commands = Mapping[tuple[str, ...], SonicCommand]


def answer(system: SonicSystem, call: Call, commands: Commands) -> int:
    """Run the command whose words begin the line, and return its exit code."""
    try:
        words, command = find(call.arguments, commands)
        line = taken_apart(call.arguments[len(words) :], command)
        return command.action(system, call, line) or 0
    except SonicUsageError as error:
        call.err(f"Usage: {call.program} [OPTIONS] COMMAND [ARGS]...\n\nError: {error}\n")
        return USAGE_ERROR
    except ConfigRefusedError as error:
        call.err(f"Error: {error}\n")
        return 1


def find(words: tuple[str, ...], commands: Commands) -> tuple[tuple[str, ...], SonicCommand]:
    """Return the longest command the words begin with."""
    for length in range(len(words), -1, -1):
        if words[:length] in commands:
            return words[:length], commands[words[:length]]
    raise SonicUsageError(f'No such command "{" ".join(words)}".')


def taken_apart(words: tuple[str, ...], command: SonicCommand) -> SonicArguments:
    """Return what stands after a command, with its options told apart."""
    arguments, options, rest = list[str](), dict[str, str](), list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word in command.flags:
            options[word] = ""
        elif name in command.valued:
            if not equals and not rest:
                raise SonicUsageError(f"{name} option requires an argument")
            options[name] = value if equals else rest.pop(0)
        elif word.startswith("-") and len(word) > 1 and not word[1:].isdigit():
            raise SonicUsageError(f"no such option: {word}")
        else:
            arguments.append(word)
    if len(arguments) > command.most:
        raise SonicUsageError(f"Got unexpected extra argument ({arguments[command.most]})")
    return SonicArguments(tuple(arguments), options)


def confirmed(call: Call, line: SonicArguments, question: str) -> bool:
    """Whether somebody says yes, beforehand by -y or to the question."""
    if line.has("-y", "--yes"):
        return True
    is_yes = call.ask(f"{question} [y/N]: ").strip().lower() in {"y", "yes"}
    if not is_yes:
        call.err("Aborted!\n")
    return is_yes


PADDING = 2
"""A column is at least this much wider than its title."""
NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def columns(titles: Sequence[str], rows: Iterable[Sequence[object]], *, right: bool = True) -> str:
    """Return a table; text stands right where SONiC says so, and numbers always do."""
    cells = [[str(cell) for cell in row] for row in rows]
    found = [[row[index] for row in cells] for index in range(len(titles))]
    widths = [max([len(title) + PADDING, *map(len, column)]) for title, column in zip(titles, found, strict=True)]
    rights = [right or _is_numeric(column) for column in found]
    lines = [_line(titles, widths, rights), "  ".join("-" * width for width in widths)]
    return "".join(f"{line}\n" for line in [*lines, *(_line(row, widths, rights) for row in cells)])


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and values between two rules, without titles."""
    widths = [max((len(row[index]) for row in rows), default=0) for index in (0, 1)]
    rule = "  ".join("-" * width for width in widths)
    lines = [rule, *(_line(row, widths, [False, False]) for row in rows), rule]
    return "".join(f"{line}\n" for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], rights: Sequence[bool]) -> str:
    placed = (
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, rights, strict=True)
    )
    return "  ".join(placed).rstrip()


def _is_numeric(column: Sequence[str]) -> bool:
    return bool(column) and all(NUMBER.fullmatch(cell) for cell in column)
