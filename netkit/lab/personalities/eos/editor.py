"""Typing configuration: which mode a line belongs to, and what it changes there."""

from collections.abc import Sequence

from netkit.lab.personalities.eos.grammar import Grammar, Match, Mismatch, Words
from netkit.lab.personalities.eos.reply import CommandError, invalid
from netkit.lab.personalities.eos.tree import Section


class Editor:
    """Someone who types into a configuration; remembers the mode.

    A line a mode does not know is tried in the modes around it, as EOS does, so a section needs no explicit end.
    """

    def __init__(self, grammar: Grammar, ports: Sequence[str], root: Section) -> None:
        self._grammar = grammar
        self._ports = ports
        self._stack = [root]

    @property
    def depth(self) -> int:
        """Return how many modes below the global one this is."""
        return len(self._stack) - 1

    def leave(self) -> None:
        """Go to the mode around this one."""
        self._stack.pop()

    def type(self, line: str) -> None:
        """Take one line; raises CommandError with what EOS says of one it does not understand."""
        words = tuple(line.split())
        if not words or words[0].startswith("!"):
            return
        prefix = words[0] if words[0] in {"no", "default"} else ""
        found = self._match(words[1:] if prefix else words, prefix)
        if prefix == "default" or (prefix and not _keeps_no(found)) or (found.rule.is_on_by_default and not prefix):
            for setting in found.lines:
                self._stack[-1].drop(setting)
        else:
            self._put(found, is_negated=bool(prefix))

    def _match(self, words: Words, prefix: str) -> Match:
        """Find the nearest mode that knows a line, and go there."""
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
                raise CommandError(f"{known.words[1].upper()} is already running with AS number {known.words[-1]}")
            entry = here.put(found.rule, setting, is_negated=is_negated)
            if entry.section is not None:
                self._stack.append(entry.section)


def _keeps_no(found: Match) -> bool:
    return found.rule.is_on_by_default or found.rule.keeps_no
