"""A checker for EOS configurations: known lines, in order, in their section, with references that resolve."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_network,
)
from pathlib import Path
from typing import Any

import yaml

INDENT = 3
ALPHAS = {str(Fraction(1, 128) * 2**step) for step in range(11)}
PATTERNS = {
    "int": r"\d+",
    "dec": r"\d+(?:\.\d+)?",
    "one": r"\S+",
    "word": r"\S+",
    "text": r"\S(?:.*\S)?",
    "ip": r"\d+\.\d+\.\d+\.\d+",
    "server": r"[0-9a-f.:]+",
    "ip6": r"[0-9a-f:]+",
    "prefix6": r"[0-9a-f:]+/\d+",
    "host6": r"[0-9a-f:]+/\d+",
    "prefix": r"\S+",
    "rule": r"\S+(?: (?:eq|le) \d+)?",
    "host": r"\S+",
    "secret": r"@secret:[A-Z][A-Z0-9_]*@",
    "alpha": r"\S+",
    "dscps": r"\d+(?: \d+)*",
    "ref": r"\S+",
    "vlans": r"\d+(?:,\d+)*",
}


@dataclass(frozen=True)
class Line:
    """A line of the text, with the lines below it."""

    number: int
    text: str
    after_mark: bool
    below: "list[Line]" = field(default_factory=list)


@dataclass(frozen=True)
class Form:
    """A line of the grammar."""

    pattern: re.Pattern[str]
    fields: tuple[tuple[str, str], ...]
    place: tuple[int, int]
    below: "tuple[Form, ...]"
    has_section: bool
    is_bare: bool


def problems(text: str, version: str) -> list[str]:
    """All errors in a switch's whole configuration."""
    return [*line_problems(text), *_meaning(parse(text), version)]


def line_problems(text: str) -> list[str]:
    """The lines that EOS would not accept individually, and the references that do not resolve."""
    checker = Checker()
    found = list(checker.check(parse(text), grammar().forms))
    return [*_layout(text), *_refused(text), *found, *checker.unresolved()]


def parse(text: str) -> list[Line]:
    """The lines of a configuration as a tree, without separators and comments."""
    top: list[Line] = []
    open_blocks = [top]
    is_after_mark = True
    for number, raw in enumerate(text.splitlines(), 1):
        stripped = raw.strip()
        if stripped.startswith("!"):
            is_after_mark = True
            continue
        depth = (len(raw) - len(raw.lstrip())) // INDENT
        del open_blocks[depth + 1 :]
        line = Line(number, stripped, is_after_mark)
        open_blocks[-1].append(line)
        open_blocks.append(line.below)
        is_after_mark = False
    return top


@dataclass(frozen=True)
class Grammar:
    """The grammar file, compiled."""

    forms: tuple[Form, ...]
    kinds: Mapping[str, list[str]]
    refused: tuple[re.Pattern[str], ...]


@cache
def grammar() -> Grammar:
    data = yaml.load(Path(__file__).with_name("eos_grammar.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    refused = tuple(re.compile(pattern) for pattern in data["refused"])
    return Grammar(tuple(_forms(data["sections"], data["names"])), data["kinds"], refused)


def _forms(entries: list[Any], names: Mapping[str, str]) -> Iterator[Form]:
    for index, entry in enumerate(entries):
        if isinstance(entry, dict) and "each" in entry:
            for inner, nested in enumerate(entry["each"]):
                yield _form(nested, (index, inner), names)
        else:
            yield _form(entry, (index, -1), names)


def _form(entry: Any, place: tuple[int, int], names: Mapping[str, str]) -> Form:
    about = entry if isinstance(entry, dict) else {"line": entry}
    fields: list[tuple[str, str]] = []
    pattern = ""
    for literal, kind, argument in re.findall(r"([^<]*)(?:<(\w+)(?: ([^>]*))?>)?", about["line"]):
        pattern += re.escape(literal)
        if kind:
            fields.append((kind, argument))
            shape = names.get(argument, PATTERNS["word"]) if kind == "def" else PATTERNS[kind]
            pattern += f"({shape})"
    below = tuple(_forms(about.get("lines", []), names))
    return Form(re.compile(pattern), tuple(fields), place, below, bool(below), about.get("bare", False))


class Checker:
    """Matches lines with forms and collects definitions and references."""

    def __init__(self) -> None:
        self.defined: dict[str, set[str]] = {}
        self.referred: list[tuple[int, str, str]] = []

    def check(self, lines: list[Line], forms: tuple[Form, ...], parent: str = "") -> Iterator[str]:
        """Yield every line that is unknown, misplaced or duplicate."""
        at = (-1, -1)
        seen: set[str] = set()
        for line in lines:
            where = f"line {line.number}: {parent}{line.text!r}"
            if line.text in seen:
                yield f"{where} stands there twice"
            seen.add(line.text)
            known = [
                (form, match)
                for form in forms
                if (match := form.pattern.fullmatch(line.text)) and self._fits(form, match)
            ]
            if not known:
                yield f"{where} is not a line EOS knows"
                continue
            fitting = [(form, match) for form, match in known if _may_follow(form.place, at)]
            form, match = (fitting or known)[0]
            if not fitting:
                yield f"{where} is out of order"
            at = form.place
            self._note(line, form, match)
            if form.has_section and not line.after_mark and not form.is_bare:
                yield f"{where} has no mark before it"
            yield from self.check(line.below, form.below, f"{parent}{line.text} / ")

    def _fits(self, form: Form, match: re.Match[str]) -> bool:
        return all(
            _value_fits(kind, argument, value)
            for (kind, argument), value in zip(form.fields, match.groups(), strict=True)
        )

    def _note(self, line: Line, form: Form, match: re.Match[str]) -> None:
        for (kind, argument), value in zip(form.fields, match.groups(), strict=True):
            if kind == "def":
                self.defined.setdefault(argument, set()).add(value)
            elif kind == "ref":
                self.referred.append((line.number, argument, value))

    def unresolved(self) -> Iterator[str]:
        """Yield every reference to something that is not defined."""
        for number, kind, name in self.referred:
            if not any(name in self.defined.get(met, ()) for met in grammar().kinds.get(kind, [kind])):
                yield f"line {number}: no {kind} {name!r}"


def _may_follow(place: tuple[int, int], at: tuple[int, int]) -> bool:
    starts_over = place[0] == at[0] and place[1] == 0
    return place >= at or starts_over


def _value_fits(kind: str, argument: str, value: str) -> bool:
    try:
        return _CHECKS[kind](argument, value) if kind in _CHECKS else True
    except ValueError:
        return False


def _in_range(argument: str, value: str) -> bool:
    low, _, high = argument.partition("-")
    return float(low) <= float(value) <= float(high)


def _rule(_: str, value: str) -> bool:
    prefix, *rest = value.split()
    network = ip_network(prefix)
    return not rest or network.prefixlen <= int(rest[1]) <= network.max_prefixlen


def _ascending(_: str, value: str) -> bool:
    dscps = [int(dscp) for dscp in value.split()]
    return dscps == sorted(set(dscps)) and dscps[-1] < 64


_CHECKS: dict[str, Any] = {
    "int": _in_range,
    "dec": _in_range,
    "one": lambda argument, value: value in argument.split("|"),
    "ip": lambda _, value: bool(IPv4Address(value)),
    "prefix": lambda _, value: bool(IPv4Network(value)),
    "host": lambda _, value: "/" in value and bool(IPv4Interface(value)),
    "server": lambda _, value: str(ip_address(value)) == value,
    "ip6": lambda _, value: str(IPv6Address(value)) == value,
    "prefix6": lambda _, value: bool(IPv6Network(value)),
    "host6": lambda _, value: "/" in value and str(IPv6Interface(value)) == value,
    "rule": _rule,
    "alpha": lambda _, value: value in ALPHAS,
    "dscps": _ascending,
    "vlans": lambda _, value: (found := [*map(int, value.split(","))]) == sorted(set(found)) and found[-1] < 4095,
}


def _layout(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if "\t" in line or line != line.rstrip():
            yield f"line {number}: tab or space at the end"
        elif (len(line) - len(line.lstrip(" "))) % INDENT:
            yield f"line {number}: not indented by a multiple of {INDENT}"
        elif not line:
            yield f"line {number}: empty"
        elif line.lstrip().startswith("!!"):
            yield f"line {number}: a comment EOS would store"


def _refused(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if any(pattern.search(line) for pattern in grammar().refused):
            yield f"line {number}: {line.strip()!r} is a spelling to refuse"


def section(lines: list[Line], start: str) -> list[Line]:
    """The sections whose first line starts with some text."""
    return [line for line in lines if line.text.startswith(start)]


def _meaning(lines: list[Line], version: str) -> Iterator[str]:
    """Yield conflicts between lines that are individually valid."""
    texts = [line.text for line in lines]
    yield from _watchdog(texts)
    yield from _classes(texts)
    for profile in section(lines, "qos profile "):
        yield from _scheduler(profile)
    yield from _sessions(lines)
    yield from _vlan(lines)
    yield from _release(lines, tuple(int(number) for number in re.findall(r"\d+", version)))


def _last_number(texts: list[str], start: str) -> float | None:
    return next((float(text.split()[-1]) for text in texts if text.startswith(start)), None)


def _watchdog(texts: list[str]) -> Iterator[str]:
    start = "priority-flow-control pause watchdog default"
    timeout, recovery, polling = (
        _last_number(texts, f"{start} {name}") for name in ("timeout", "recovery-time", "polling-interval")
    )
    if timeout is None or recovery is None or polling is None:
        yield "the PFC watchdog lacks a time"
    elif polling > min(timeout, recovery) / 2:
        yield f"watchdog polling {polling} is more than half of {min(timeout, recovery)}"


def dscp_classes(text: str) -> dict[int, int]:
    """The traffic class of each DSCP that is mapped."""
    found = {}
    for dscps, traffic_class in re.findall(r"^qos map dscp ([\d ]+) to traffic-class (\d)$", text, re.MULTILINE):
        found.update({int(dscp): int(traffic_class) for dscp in dscps.split()})
    return found


def _classes(texts: list[str]) -> Iterator[str]:
    mapped = dscp_classes("\n".join(texts))
    if sorted(mapped) != list(range(64)):
        yield f"{64 - len(mapped)} DSCPs are left to EOS's defaults"
    for traffic_class in sorted(set(mapped.values())):
        if f"qos map traffic-class {traffic_class} to priority-group {traffic_class}" not in texts:
            yield f"traffic class {traffic_class} has no priority group of its own"


def _scheduler(profile: Line) -> Iterator[str]:
    total = 0
    paused = {line.text.split()[2] for line in profile.below if line.text.endswith("no-drop")}
    for queue in (line for line in profile.below if "tx-queue" in line.text):
        name, has = f"{profile.text} / {queue.text}", [line.text for line in queue.below]
        total += sum(int(text.split()[-1]) for text in has if text.startswith("bandwidth percent"))
        if "priority strict" in has and any(
            text.startswith("bandwidth percent") or text == "no priority" for text in has
        ):
            yield f"{name} is both strict and weighted"
        if "priority strict" in has and queue.text.split()[-1] in paused:
            yield f"{name} is strict and pausable"
        if "no priority" not in has and any(text.startswith("bandwidth percent") for text in has):
            yield f"{name}: a weight without 'no priority' does nothing"
        for low, high in re.findall(r"minimum-threshold (\d+) bytes maximum-threshold (\d+)", "\n".join(has)):
            if int(low) >= int(high):
                yield f"{name}: marking starts at {low}, above {high}"
        if queue.text.split()[-1] in paused and "random-detect ecn count" not in has:
            yield f"{name}: lossless without counted ECN"
    if total > 100:
        yield f"{profile.text}: weights sum to {total}"


def _sessions(lines: list[Line]) -> Iterator[str]:
    ports = {
        line.text.split()[1]: {below.text for below in line.below} for line in section(lines, "interface Ethernet")
    }
    for name, has in ports.items():
        if not any(text.startswith("service-profile") for text in has):
            yield f"{name} has no QoS profile"
        if sum(text.startswith(("ip address", "ipv6 enable", "switchport access")) for text in has) != 1:
            yield f"{name} is not exactly one of unnumbered, routed and in a VLAN"
    for bgp in section(lines, "router bgp"):
        for neighbor in section(bgp.below, "neighbor interface"):
            if "ipv6 enable" not in ports.get(neighbor.text.split()[2], set()):
                yield f"{neighbor.text}: the port has no IPv6 for an unnumbered session"


def _vlan(lines: list[Line]) -> Iterator[str]:
    ageing = _last_number([line.text for line in lines], "mac address-table aging-time")
    (order,) = section(lines, "vlan internal order")
    first, last = map(int, order.text.split()[-2:])
    for vlan in section(lines, "vlan "):
        number = vlan.text.removeprefix("vlan ")
        if number.isdigit() and first <= int(number) <= last:
            yield f"{vlan.text}: a routed port may have this VLAN"
    for svi in section(lines, "interface Vlan"):
        arp = _last_number([line.text for line in svi.below], "arp aging timeout")
        if arp is None or ageing is None or arp >= ageing:
            yield f"{svi.text}: ARP entries live {arp} s, MAC addresses {ageing} s: silent hosts are flooded"


def _release(lines: list[Line], version: tuple[int, ...]) -> Iterator[str]:
    texts = [line.text for line in lines]
    source = [text for text in texts if re.match(r"logging .*(source|local)-interface", text)]
    wanted = "local-interface" if version >= (4, 33) else "source-interface"
    yield from (f"{text}: not in this release" for text in source if wanted not in text)
    if version < (4, 33) and source and any(text.endswith("protocol tcp") for text in texts):
        yield "logging: a source interface beside a TCP host is refused before 4.33"
    edge = "spanning-tree portfast edge" if version >= (4, 33, 2) else "spanning-tree portfast"
    for port in section(lines, "interface Ethernet"):
        yield from (
            f"{port.text}: {line.text} is not kept"
            for line in section(port.below, "spanning-tree")
            if line.text != edge
        )
    pfc = next((line for line in lines if line.text.startswith("priority-flow-control")), None)
    if pfc and pfc.after_mark != (version < (4, 35)):
        yield "the PFC lines stand in the wrong section for this release"
