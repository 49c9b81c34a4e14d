"""Typing configuration: which mode a line belongs to, and what it changes there."""

import difflib
import ipaddress
import re
from collections.abc import Iterator, Sequence

from netkit.design.fabric import Switch
from netkit.lab.personalities.eos.grammar import EosGrammar, Match, Mismatch, Words, load
from netkit.lab.personalities.eos.reply import EosCommandError, invalid
from netkit.lab.personalities.eos.tree import EosSection


class Editor:
    """Someone who types into a configuration; remembers the mode.

    A line a mode does not know is tried in the modes around it, as EOS does, so a section needs no explicit end.
    """

    def __init__(self, grammar: EosGrammar, ports: Sequence[str], root: EosSection) -> None:
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
                raise EosCommandError(f"{known.words[1].upper()} is already running with AS number {known.words[-1]}")
            entry = here.put(found.rule, setting, is_negated=is_negated)
            if entry.section is not None:
                self._stack.append(entry.section)


def _keeps_no(found: Match) -> bool:
    return found.rule.is_on_by_default or found.rule.keeps_no


# The queues of older Tomahawks and of Jericho are named otherwise.
OLD_QUEUES = ("Tomahawk", "Tomahawk 2", "Jericho", "Jericho 2", "Jericho 3")


def release_of(version: str) -> tuple[int, ...]:
    """Return a version such as 4.35.1F as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def grammar_of(switch: Switch) -> EosGrammar:
    """Return the language a switch speaks."""
    keyword = "tx-queue" if switch.model.asic in OLD_QUEUES else "uc-tx-queue"
    return load(keyword, release_of(switch.version))


def parse(text: str, grammar: EosGrammar, ports: Sequence[str]) -> EosSection:
    """Return the configuration a file holds; raises CommandError with every line that is not understood."""
    root = EosSection()
    editor = Editor(grammar, ports, root)
    wrong: list[str] = []
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
            wrong.append(f"line {number}: {stripped}: {error}")
    if wrong:
        raise EosCommandError(*wrong)
    return root


def body(config: EosSection) -> str:
    """Return a configuration as text, without a head."""
    lines = list(config.lines())
    return "\n".join((*lines, "!", "end", "")) if lines else "end\n"


def differences(running: EosSection, intended: EosSection, name: str) -> str:
    """Return what a session would change, as `show session-config diffs` prints it."""
    lines = difflib.unified_diff(
        body(running).splitlines(),
        body(intended).splitlines(),
        "system:/running-config",
        f"session:/{name}-session-config",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def as_commands(config: EosSection) -> dict[str, object]:
    """Return a configuration as eAPI shows it in JSON."""
    result: dict[str, object] = {}
    for entry in config.sorted():
        line = f"{'no ' if entry.is_negated else ''}{' '.join(entry.words)}"
        nested = {"comments": [], "cmds": as_commands(entry.section)} if entry.section is not None else None
        result[line] = nested
    return result


VIRTUAL = ("peer", "group")


def complaints(config: EosSection) -> tuple[str, ...]:
    """Return why a configuration cannot be committed; empty when it can."""
    return (*_peer_groups(config), *_overlaps(config), *_thresholds(config))


def _peer_groups(config: EosSection) -> Iterator[str]:
    for _, bgp in config.sections("router", "bgp"):
        known = {rest[0] for rest in bgp.find("neighbor") if rest[1:] == VIRTUAL}
        used = {rest[0] for rest in bgp.find("neighbor") if rest[0] != "interface"}
        used |= {rest[2] for rest in bgp.find("neighbor", "interface")}
        for _, family in bgp.sections("address-family"):
            used |= {rest[0] for rest in family.find("neighbor")}
        for name in sorted(used - known):
            yield f"Peer group {name} is not defined"


def _overlaps(config: EosSection) -> Iterator[str]:
    """Yield interfaces whose subnets overlap within a VRF."""
    taken: list[tuple[str, str, ipaddress.IPv4Network]] = []
    for (name,), section in config.sections("interface"):
        vrf = section.word("vrf")
        for (address,) in section.find("ip", "address"):
            network = ipaddress.IPv4Interface(address).network
            for other, other_vrf, known in taken:
                if other_vrf == vrf and known.overlaps(network):
                    yield f"Address {address} of {name} overlaps with a subnet of {other}"
            taken.append((name, vrf, network))


def _thresholds(config: EosSection) -> Iterator[str]:
    for (name,), profile in config.sections("qos", "profile"):
        for keyword in ("tx-queue", "uc-tx-queue"):
            for (number,), queue in profile.sections(keyword):
                found = queue.one("random-detect", "ecn", "minimum-threshold")
                if found and found[1] == found[4] and int(found[0]) > int(found[3]):
                    yield f"qos profile {name}, {keyword} {number}: minimum-threshold is above maximum-threshold"
