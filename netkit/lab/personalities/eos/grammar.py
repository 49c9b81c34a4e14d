"""The configuration language of EOS, read from `grammar.txt`: rules per mode, and what a line means by them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from netkit.lab.personalities.eos.lists import SPREAD, take_list
from netkit.lab.personalities.eos.words import Reader, reader

Words = tuple[str, ...]
Part = Literal["literal", "key", "value"]
ROOT = "global"
_PIECE = re.compile(r"<(?P<key>[^>]+)>|\{(?P<value>[^}]+)\}|(?P<literal>\S+)")


@dataclass(frozen=True, slots=True)
class Piece:
    """One place of a rule: what may stand there, and whether it says what the line is about or its value."""

    part: Part
    text: str
    read: Reader | None = None

    def take(self, words: Words, ports: Sequence[str]) -> tuple[Words, int] | None:
        """Return the words this piece stands for, several for a list, and how many were used up."""
        if self.text == "text":
            return ((" ".join(words),), len(words)) if words else None
        if self.text in SPREAD:
            return take_list(self.text, words, ports)
        if not words:
            return None
        if self.read is None:
            return ((self.text,), 1) if words[0] == self.text else None
        found = self.read(words[0])
        is_unknown_port = self.text in {"ethernet", "routed"} and (found or "").startswith("Eth") and found not in ports
        return None if found is None or is_unknown_port else ((found,), 1)


@dataclass(frozen=True, slots=True)
class Rule:
    """One form of line a mode takes."""

    pieces: tuple[Piece, ...]
    block: int
    rank: int
    group: int
    opens: str
    is_on_by_default: bool
    keeps_no: bool
    is_single: bool
    prints_exit: bool

    @property
    def spread(self) -> str:
        """Return the kind of list in the rule, if any: each of its items is an entry of its own."""
        return next((piece.text for piece in self.pieces if piece.text in SPREAD), "")


@dataclass(frozen=True, slots=True)
class Line:
    """One setting a typed line stands for: the words EOS keeps, and the key a second one would replace."""

    words: Words
    key: Words


@dataclass(frozen=True, slots=True)
class Match:
    """A line understood."""

    rule: Rule
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A line not understood: how many words were, by the rule that understood most."""

    understood: int


class Grammar:
    """The rules of every mode."""

    def __init__(self, rules: Mapping[str, tuple[Rule, ...]]) -> None:
        self._by_first: dict[str, dict[str, list[Rule]]] = {}
        for mode, found in rules.items():
            first = self._by_first.setdefault(mode, {})
            for rule in found:
                first.setdefault(rule.pieces[0].text, []).append(rule)

    def match(self, mode: str, words: Words, ports: Sequence[str], *, is_negated: bool) -> Match | Mismatch:
        """Return what a line without its `no` means in a mode; a `no` may leave the value out."""
        furthest = 0
        for rule in self._by_first[mode].get(words[0] if words else "", ()):
            found = _fit(rule, words, ports, is_negated=is_negated)
            if isinstance(found, Match):
                return found
            furthest = max(furthest, found)
        return Mismatch(furthest)


def _fit(rule: Rule, words: Words, ports: Sequence[str], *, is_negated: bool) -> Match | int:
    """Return the match of one rule, or how many words it understood."""
    taken: list[Words] = []
    at = 0
    for index, piece in enumerate(rule.pieces):
        if at == len(words) and is_negated and all(rest.part == "value" for rest in rule.pieces[index:]):
            break
        got = piece.take(words[at:], ports)
        if got is None:
            return at
        taken.append(got[0])
        at += got[1]
    return Match(rule, tuple(_lines(rule, taken))) if at == len(words) else at


def _lines(rule: Rule, taken: Sequence[Words]) -> Iterator[Line]:
    count = max(map(len, taken))
    for index in range(count):
        words = tuple(found[index] if len(found) > 1 else found[0] for found in taken)
        pieces = rule.pieces[: len(words)]
        key = tuple(word for word, piece in zip(words, pieces, strict=True) if piece.part != "value")
        if rule.is_single:
            key = tuple(piece.text for piece in pieces if piece.part == "literal")
        yield Line(words, key)


@cache
def load(queue_keyword: str, release: tuple[int, ...]) -> Grammar:
    """Return the grammar of a chip's queue keyword and a release such as (4, 35, 1)."""
    text = (Path(__file__).parent / "grammar.txt").read_text(encoding="utf-8")
    # 4.33 takes both words and keeps the new one; before, there is only the old one. 4.35 prints the lines of the
    # watchdog right behind the maps.
    source = "local-interface|source-interface" if release >= (4, 33) else "source-interface"
    text = text.replace("{=SYSLOG_SOURCE}", f"{{={source}}}").replace("QUEUE", queue_keyword)
    text = text.replace("WATCHDOG_MARK", "" if release >= (4, 35) else "!").replace("HIGHEST_MTU", "9214")
    return Grammar({mode: tuple(_rules(body)) for mode, body in _modes(text)})


def _modes(text: str) -> Iterator[tuple[str, list[str]]]:
    for chunk in text.split("%mode ")[1:]:
        mode, _, body = chunk.partition("\n")
        yield mode.strip(), [line for line in map(str.strip, body.splitlines()) if line and not line.startswith("#")]


def _rules(lines: list[str]) -> Iterator[Rule]:
    block = group = 0
    for rank, line in enumerate(lines):
        if line == "!":
            block += 1
        elif line.startswith("%group"):
            group = rank
        elif line == "%end":
            group = 0
        else:
            form, _, rest = line.partition(" -> ")
            opens, *flags = rest.split() or [""]
            for text in _spellings(form.lstrip("+*")):
                yield Rule(
                    pieces=tuple(_piece(found) for found in _PIECE.finditer(text)),
                    block=block,
                    rank=rank,
                    group=group,
                    opens=opens,
                    is_on_by_default=form.startswith("+"),
                    keeps_no=form.startswith("*"),
                    is_single="once" in flags,
                    prints_exit="exit" in flags,
                )


def _spellings(form: str) -> Iterator[str]:
    """Yield a form with each of its optional parts, the fullest first."""
    before, bracket, rest = form.partition("[")
    if not bracket:
        yield form
        return
    inside, _, after = rest.partition("]")
    yield from _spellings(f"{before}{inside}{after}")
    yield from _spellings(f"{before}{after}")


def _piece(found: re.Match[str]) -> Piece:
    if found["literal"]:
        return Piece("literal", found["literal"])
    kind: str = found["key"] or found["value"]
    part: Part = "key" if found["key"] else "value"
    return Piece(part, kind, None if kind in SPREAD or kind == "text" else reader(kind))
