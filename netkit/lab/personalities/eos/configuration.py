"""An EOS configuration: lines by key, in sections, printed in a fixed order."""

import difflib
import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import Self

from netkit.design.fabric import Switch
from netkit.lab.personalities.eos.grammar import (
    ROOT,
    EosGrammar,
    EosLine,
    EosRule,
    Match,
    Mismatch,
    Words,
    load,
    short_list,
)
from netkit.lab.personalities.eos.reply import EosCommandError, invalid

INDENT = "   "


@dataclass(slots=True)
class EosEntry:
    """One line of configuration, with its section when the line opens a mode."""

    rule: EosRule
    words: Words
    is_negated: bool = False
    section: "EosSection | None" = None


@dataclass(slots=True)
class EosSection:
    """The lines of one mode, by key."""

    mode: str = ROOT
    entries: dict[Words, EosEntry] = field(default_factory=dict)

    def copy(self) -> Self:
        entries = {
            key: EosEntry(entry.rule, entry.words, entry.is_negated, entry.section.copy() if entry.section else None)
            for key, entry in self.entries.items()
        }
        return type(self)(self.mode, entries)

    def put(self, rule: EosRule, line: EosLine, *, is_negated: bool = False) -> EosEntry:
        """Set a line; an existing section keeps its lines."""
        section = None
        if rule.opens:
            known = self.entries.get(line.key)
            section = known.section if known and known.section else EosSection(rule.opens)
        entry = EosEntry(rule, line.words, is_negated, section)
        self.entries[line.key] = entry
        return entry

    def drop(self, line: EosLine) -> None:
        """Remove a line; `no neighbor X peer group` removes every line of that group."""
        self.entries.pop(line.key, None)
        if line.words[0] == "neighbor" and line.words[-2:] == ("peer", "group"):
            group = line.words[1]
            for section in (self, *(entry.section for entry in self.entries.values() if entry.section)):
                for key in [key for key in section.entries if key[:2] == ("neighbor", group)]:
                    del section.entries[key]

    def find(self, *start: str) -> Iterator[Words]:
        """Yield the remaining words of every positive line with this prefix."""
        for entry in self._starting(start):
            if not entry.is_negated:
                yield entry.words[len(start) :]

    def one(self, *start: str) -> Words | None:
        """The remaining words of the first line with this prefix, if any."""
        return next(self.find(*start), None)

    def word(self, *start: str) -> str:
        """The word after a prefix, or an empty string."""
        found = self.one(*start)
        return found[0] if found else ""

    def has(self, *words: str) -> bool:
        return any(entry.words == words and not entry.is_negated for entry in self.entries.values())

    def is_off(self, *words: str) -> bool:
        """Whether the line is present with `no`."""
        return any(entry.words == words and entry.is_negated for entry in self.entries.values())

    def sections(self, *start: str) -> Iterator[tuple[Words, "EosSection"]]:
        """Yield the remaining header words and the section of every header with this prefix."""
        for entry in self._starting(start):
            if entry.section is not None:
                yield entry.words[len(start) :], entry.section

    def section(self, *words: str) -> "EosSection":
        """A section by its header; empty if there is none."""
        entry = self.entries.get(words)
        return entry.section if entry is not None and entry.section is not None else EosSection()

    def sorted(self) -> list[EosEntry]:
        """The entries in the order EOS prints them."""
        return sorted(self.entries.values(), key=_place)

    def _starting(self, start: Words) -> list[EosEntry]:
        found = [entry for entry in self.entries.values() if entry.words[: len(start)] == start]
        return sorted(found, key=_place) if len(found) > 1 else found  # usually there is only one

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the section as EOS prints it."""
        block = None
        for entry in printed(self.sorted()):
            if depth == 0 and block is not None and (entry.section is not None or entry.rule.block != block):
                yield "!"
            if depth and entry.section is not None:
                yield f"{INDENT * depth}!"
            block = entry.rule.block
            yield f"{INDENT * depth}{'no ' if entry.is_negated else ''}{' '.join(entry.words)}"
            if entry.section is not None:
                yield from entry.section.lines(depth + 1)
                if entry.rule.prints_exit:
                    yield f"{INDENT * (depth + 1)}exit"


def printed(entries: Iterable[EosEntry]) -> Iterator[EosEntry]:
    """Join the items of a list (DSCPs, ports) on one line, as EOS does."""
    for spread, run in groupby(entries, key=lambda entry: (entry.rule.spread, entry.rule.rank)):
        if spread[0] == "ethernets":
            for _, neighbors in groupby(run, key=_without_list):
                yield _joined(list(neighbors))
        elif spread[0]:
            together: dict[Words, list[EosEntry]] = {}
            for entry in run:
                together.setdefault(_without_list(entry), []).append(entry)
            yield from map(_joined, together.values())
        else:
            yield from run


def _list_index(rule: EosRule) -> int:
    return next(index for index, piece in enumerate(rule.pieces) if piece.text == rule.spread)


def _without_list(entry: EosEntry) -> Words:
    index = _list_index(entry.rule)
    return entry.words[:index] + entry.words[index + 1 :]


def _joined(entries: list[EosEntry]) -> EosEntry:
    first = entries[0]
    index = _list_index(first.rule)
    items = [entry.words[index] for entry in entries]
    text = short_list(items) if first.rule.spread == "ethernets" else " ".join(items)
    return EosEntry(
        first.rule, (*first.words[:index], text, *first.words[index + 1 :]), first.is_negated, first.section
    )


def _place(entry: EosEntry) -> tuple[int, int, tuple[object, ...], int, tuple[object, ...]]:
    """The sort key: by rule, with all lines about one neighbour together, then in natural order."""
    rule = entry.rule
    cluster = natural(entry.words[1]) if rule.group else ()
    return (rule.block, rule.group or rule.rank, cluster, rule.rank, natural(" ".join(entry.words)))


@lru_cache(maxsize=1 << 14)
def natural(text: str) -> tuple[object, ...]:
    """Sort Ethernet2 before Ethernet10."""
    return tuple((1, int(part)) if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text) if part)


class Editor:
    """Types lines into a configuration and tracks the current mode.

    A line unknown to a mode is tried in the enclosing modes, as EOS does, so a section needs no explicit end.
    """

    def __init__(self, grammar: EosGrammar, ports: Sequence[str], root: EosSection) -> None:
        self._grammar = grammar
        self._ports = ports
        self._stack = [root]

    @property
    def depth(self) -> int:
        return len(self._stack) - 1

    def leave(self) -> None:
        self._stack.pop()

    def type(self, line: str) -> None:
        """Apply one line; raise EosCommandError with EOS's message if it is not understood."""
        words = tuple(line.split())
        if not words or words[0].startswith("!"):
            return
        prefix = words[0] if words[0] in {"no", "default"} else ""
        found = self._match(words[1:] if prefix else words, prefix)
        if (
            prefix == "default"
            or (prefix and not (found.rule.is_on_by_default or found.rule.keeps_no))
            or (found.rule.is_on_by_default and not prefix)
        ):
            for setting in found.lines:
                self._stack[-1].drop(setting)
        else:
            self._put(found, is_negated=bool(prefix))

    def _match(self, words: Words, prefix: str) -> Match:
        """Enter the innermost mode that accepts the line."""
        furthest = 0
        for depth in range(len(self._stack), 0, -1):
            mode = self._stack[depth - 1].mode
            found = self._grammar.match(mode, words, self._ports, is_negated=bool(prefix))
            if isinstance(found, Mismatch):
                furthest = max(furthest, found.understood)
                continue
            del self._stack[depth:]
            return found
        raise invalid((prefix, *words) if prefix else words, furthest + bool(prefix))

    def _put(self, found: Match, *, is_negated: bool) -> None:
        here = self._stack[-1]
        for setting in found.lines:
            known = here.entries.get(setting.key)
            if found.rule.is_single and known and known.words != setting.words:
                raise EosCommandError(f"{known.words[1].upper()} is already running with AS number {known.words[-1]}")
            entry = here.put(found.rule, setting, is_negated=is_negated)
            if entry.section is not None:
                self._stack.append(entry.section)


TX_QUEUE_ASICS = ("Tomahawk", "Tomahawk 2", "Jericho", "Jericho 2", "Jericho 3")
"""ASICs whose queues are configured as `tx-queue` instead of `uc-tx-queue`."""


def release_of(version: str) -> tuple[int, ...]:
    """Split a version such as 4.35.1F into numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def grammar_of(switch: Switch) -> EosGrammar:
    keyword = "tx-queue" if switch.model.asic in TX_QUEUE_ASICS else "uc-tx-queue"
    return load(keyword, release_of(switch.version))


def parse(text: str, grammar: EosGrammar, ports: Sequence[str]) -> EosSection:
    """Parse a configuration file; raise EosCommandError with every line that is not understood."""
    root = EosSection()
    editor = Editor(grammar, ports, root)
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped == "end":
            break
        if stripped == "exit":
            if editor.depth:
                editor.leave()
            continue
        try:
            editor.type(stripped)
        except EosCommandError as error:
            problems.append(f"line {number}: {stripped}: {error}")
    if problems:
        raise EosCommandError(*problems)
    return root


def body(config: EosSection) -> str:
    """Print a configuration without the header comments."""
    lines = list(config.lines())
    return "\n".join((*lines, "!", "end", "")) if lines else "end\n"


def differences(running: EosSection, intended: EosSection, name: str) -> str:
    """Print a diff as `show session-config diffs` does."""
    lines = difflib.unified_diff(
        body(running).splitlines(),
        body(intended).splitlines(),
        "system:/running-config",
        f"session:/{name}-session-config",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def as_commands(config: EosSection) -> dict[str, object]:
    """The JSON form of a configuration, as eAPI returns it."""
    result: dict[str, object] = {}
    for entry in config.sorted():
        line = f"{'no ' if entry.is_negated else ''}{' '.join(entry.words)}"
        nested = {"comments": [], "cmds": as_commands(entry.section)} if entry.section is not None else None
        result[line] = nested
    return result


def complaints(config: EosSection) -> Iterator[str]:
    """Yield every reason why a configuration cannot be committed."""
    for _, bgp in config.sections("router", "bgp"):
        known = {rest[0] for rest in bgp.find("neighbor") if rest[1:] == ("peer", "group")}
        used = {rest[0] for rest in bgp.find("neighbor") if rest[0] != "interface"}
        used |= {rest[2] for rest in bgp.find("neighbor", "interface")}
        for _, family in bgp.sections("address-family"):
            used |= {rest[0] for rest in family.find("neighbor")}
        known |= {rest[0] for rest in bgp.find("neighbor") if rest[1] == "remote-as" and rest[0].count(".") == 3}
        for name in sorted(used - known):
            yield f"Peer group {name} is not defined"
    yield from _overlaps(config)
    for (name,), profile in config.sections("qos", "profile"):
        for keyword in ("tx-queue", "uc-tx-queue"):
            for (number,), queue in profile.sections(keyword):
                found = queue.one("random-detect", "ecn", "minimum-threshold")
                if found and found[1] == found[4] and int(found[0]) > int(found[3]):
                    yield f"qos profile {name}, {keyword} {number}: minimum-threshold is above maximum-threshold"


def _overlaps(config: EosSection) -> Iterator[str]:
    taken: list[tuple[str, str, ipaddress.IPv4Network]] = []
    for (name,), section in config.sections("interface"):
        vrf = section.word("vrf")
        for (address,) in section.find("ip", "address"):
            network = ipaddress.IPv4Interface(address).network
            for other, other_vrf, known in taken:
                if other_vrf == vrf and known.overlaps(network):
                    yield f"Address {address} of {name} overlaps with a subnet of {other}"
            taken.append((name, vrf, network))
