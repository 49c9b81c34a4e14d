"""A configuration as EOS keeps it: settings by key, in sections; the order of typing is forgotten."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import Self

from netkit.lab.personalities.eos.grammar import ROOT, EosLine, EosRule, Words, short_list

INDENT = "   "


@dataclass(slots=True)
class EosEntry:
    """One setting; a section when its rule opens a mode."""

    rule: EosRule
    words: Words
    is_negated: bool = False
    section: "EosSection | None" = None


@dataclass(slots=True)
class EosSection:
    """The settings of one mode."""

    mode: str = ROOT
    entries: dict[Words, EosEntry] = field(default_factory=dict)

    def copy(self) -> Self:
        """Return the same settings, to be changed apart."""
        entries = {
            key: EosEntry(entry.rule, entry.words, entry.is_negated, entry.section.copy() if entry.section else None)
            for key, entry in self.entries.items()
        }
        return type(self)(self.mode, entries)

    def put(self, rule: EosRule, line: EosLine, *, is_negated: bool = False) -> EosEntry:
        """Set something; a section that is there already keeps what it has."""
        section = None
        if rule.opens:
            known = self.entries.get(line.key)
            section = known.section if known and known.section else EosSection(rule.opens)
        entry = EosEntry(rule, line.words, is_negated, section)
        self.entries[line.key] = entry
        return entry

    def drop(self, line: EosLine) -> None:
        """Take a setting away; a peer group takes along all that was said of it."""
        self.entries.pop(line.key, None)
        if line.words[0] == "neighbor" and line.words[-2:] == ("peer", "group"):
            self._forget(line.words[1])

    def _forget(self, group: str) -> None:
        for section in (self, *(entry.section for entry in self.entries.values() if entry.section)):
            for key in [key for key in section.entries if key[:2] == ("neighbor", group)]:
                del section.entries[key]

    def find(self, *start: str) -> Iterator[Words]:
        """Yield the rest of every positive line that starts like this."""
        for entry in self._starting(start):
            if not entry.is_negated:
                yield entry.words[len(start) :]

    def one(self, *start: str) -> Words | None:
        """Return the rest of the line that starts like this; None without one."""
        return next(self.find(*start), None)

    def word(self, *start: str) -> str:
        """Return the word behind a start; empty when there is none."""
        found = self.one(*start)
        return found[0] if found else ""

    def has(self, *words: str) -> bool:
        """Whether this very line stands there."""
        return any(entry.words == words and not entry.is_negated for entry in self.entries.values())

    def is_off(self, *words: str) -> bool:
        """Whether `no` and these words stands there."""
        return any(entry.words == words and entry.is_negated for entry in self.entries.values())

    def sections(self, *start: str) -> Iterator[tuple[Words, "EosSection"]]:
        """Yield the rest of the header, and the section, of each that starts like this."""
        for entry in self._starting(start):
            if entry.section is not None:
                yield entry.words[len(start) :], entry.section

    def section(self, *words: str) -> "EosSection":
        """Return a section by its header; an empty one when it is not there."""
        entry = self.entries.get(words)
        return entry.section if entry is not None and entry.section is not None else EosSection()

    def sorted(self) -> list[EosEntry]:
        """Return the entries in the order of the grammar."""
        return sorted(self.entries.values(), key=_place)

    def _starting(self, start: Words) -> list[EosEntry]:
        found = [entry for entry in self.entries.values() if entry.words[: len(start)] == start]
        return sorted(found, key=_place) if len(found) > 1 else found  # most of what is looked for is there once

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the section as EOS prints it, without anything around it."""
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
    """Yield the entries with the items of one list together on one line, as EOS does."""
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
    """Return where an entry stands: by its rule, all lines about one neighbour together, then by natural order."""
    rule = entry.rule
    cluster = natural(entry.words[1]) if rule.group else ()
    return (rule.block, rule.group or rule.rank, cluster, rule.rank, natural(" ".join(entry.words)))


@lru_cache(maxsize=1 << 14)
def natural(text: str) -> tuple[object, ...]:
    """Return a key that puts Ethernet2 before Ethernet10."""
    return tuple((1, int(part)) if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text) if part)
