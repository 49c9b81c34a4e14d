"""The grammar of EOS configuration: readers of words, and the rules of `grammar.txt` that use them."""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Literal

Reader = Callable[[str], str | None]
"""A word in the form EOS stores, or None if it is not of this kind."""

SEVERITIES = ("emergencies", "alerts", "critical", "errors", "warnings", "notifications", "informational", "debugging")
SHARES = ("1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8")
SPEEDS = (
    "auto|10g|25g|40g|40g-4|50g-1|50g-2|100g-1|100g-2|100g-4|200g-1|200g-2|200g-4|400g-2|400g-4|400g-8|800g-4|800g-8"
)
ECN_UNITS = ("segments", "bytes", "kbytes", "mbytes", "milliseconds")
LARGEST_ASN = 2**32 - 1


def reader(kind: str) -> Reader:
    """The reader of a kind such as `int:1-8` or `=permit|deny`; raise KeyError for an unknown kind."""
    if kind.startswith("="):
        return one_of(kind.removeprefix("=").split("|"))
    name, _, limits = kind.partition(":")
    if name == "int":
        low, high = limits.split("-")
        return integer(int(low), int(high))
    if name == "decimal":
        low, high = limits.split("-")
        return decimal(Decimal(low), Decimal(high))
    return READERS[name]


def one_of(words: list[str]) -> Reader:
    known = frozenset(words)
    return lambda word: word if word in known else None


def integer(low: int, high: int) -> Reader:
    def read(word: str) -> str | None:
        fits = word.isascii() and word.isdigit() and len(word) <= 10 and low <= int(word) <= high
        return str(int(word)) if fits else None

    return read


def decimal(low: Decimal, high: Decimal) -> Reader:
    def read(word: str) -> str | None:
        if not re.fullmatch(r"\d{1,10}(\.\d{1,6})?", word, re.ASCII):
            return None
        value = Decimal(word)
        return f"{value.normalize():f}" if low <= value <= high else None

    return read


def matching(pattern: str) -> Reader:
    form = re.compile(pattern, re.ASCII)
    return lambda word: word if form.fullmatch(word) else None


def ip(parse: Callable[[str], object], *, has_slash: bool) -> Reader:
    def read(word: str) -> str | None:
        try:
            return str(parse(word)) if ("/" in word) == has_slash else None
        except ValueError:
            return None

    return read


def _address(word: str) -> str | None:
    """Accept an interface address unless it is the subnet or broadcast address."""
    try:
        address = ipaddress.IPv4Interface(word)
    except ValueError:
        return None
    network = address.network
    reserved = (network.network_address, network.broadcast_address) if network.prefixlen < 31 else ()
    return None if "/" not in word or address.ip in reserved or address.ip.is_multicast else str(address)


def _asn(word: str) -> str | None:
    """Convert asdot to asplain."""
    dotted = re.fullmatch(r"(\d{1,5})\.(\d{1,5})", word, re.ASCII)
    if dotted:
        high, low = map(int, dotted.groups())
        return str(high * 65536 + low) if max(high, low) < 65536 and high + low else None
    return integer(1, LARGEST_ASN)(word)


def _as_range(word: str) -> str | None:
    first, dash, last = word.partition("-")
    low, high = _asn(first), _asn(last if dash else first)
    if low is None or high is None or int(low) > int(high):
        return None
    return f"{low}-{high}" if dash else low


def _interface(prefix: str, shortest: str, numbers: str) -> Reader:
    """A reader of interface names in any case, abbreviated down to `shortest`."""
    form = re.compile(rf"([a-z-]+)({numbers})", re.ASCII | re.IGNORECASE)

    def read(word: str) -> str | None:
        found = form.fullmatch(word)
        if not found:
            return None
        typed = found[1].lower()
        fits = len(typed) >= len(shortest) and prefix.lower().startswith(typed)
        return f"{prefix}{found[2]}" if fits else None

    return read


_ethernet = _interface("Ethernet", "et", r"\d{1,3}(?:/\d{1,3}){0,2}")
_loopback = _interface("Loopback", "lo", r"\d{1,4}")
_management = _interface("Management", "ma", r"\d{1,2}(?:/\d{1,2})?")
_svi = _interface("Vlan", "vl", r"\d{1,4}")
_portchannel = _interface("Port-Channel", "po", r"\d{1,4}")


def _vlans(word: str) -> str | None:
    """Print a list of VLANs as EOS does: sorted, with ranges."""
    found: set[int] = set()
    for part in word.split(","):
        ends = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part, re.ASCII)
        low, high = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, 0)
        if not 1 <= low <= high <= 4094:
            return None
        found.update(range(low, high + 1))
    runs: list[list[int]] = []
    for number in sorted(found):
        if runs and runs[-1][-1] + 1 == number:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def numbers(word: str, highest: int) -> tuple[int, ...]:
    """Expand a list such as `3,8-11`; empty if it is not one."""
    found: set[int] = set()
    for part in word.split(","):
        ends = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", part, re.ASCII)
        if not ends:
            return ()
        low, high = int(ends[1]), int(ends[2] or ends[1])
        if low > high or high > highest:
            return ()
        found.update(range(low, high + 1))
    return tuple(sorted(found))


READERS: Mapping[str, Reader] = {
    "word": matching(r"[^\s]+"),
    "name": matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"),
    "hex": matching(r"[0-9a-fA-F]+"),
    "severity": one_of(list(SEVERITIES)),
    "share": one_of(list(SHARES)),
    "speed": one_of(SPEEDS.split("|")),
    "unit": one_of(list(ECN_UNITS)),
    "poll": lambda word: word if word == "auto" else decimal(Decimal("0.005"), Decimal(30))(word),
    "ip": ip(ipaddress.IPv4Address, has_slash=False),
    "prefix": ip(lambda word: ipaddress.IPv4Network(word, strict=False), has_slash=True),  # EOS masks host bits
    "server": ip(ipaddress.ip_address, has_slash=False),
    "ip6": ip(ipaddress.IPv6Address, has_slash=False),
    "prefix6": ip(lambda word: ipaddress.IPv6Network(word, strict=False), has_slash=True),
    "address6": ip(ipaddress.IPv6Interface, has_slash=True),
    "network": lambda word: word if word == "any" else READERS["prefix"](word),
    "address": _address,
    "asn": _asn,
    "as-range": _as_range,
    "ethernet": _ethernet,
    "loopback": _loopback,
    "management": _management,
    "svi": _svi,
    "portchannel": _portchannel,
    "vlans": _vlans,
    "mac": matching(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"),
    "routed": lambda word: _management(word) or _loopback(word) or _svi(word) or _ethernet(word),
}


HIGHEST = {"dscps": 63, "priorities": 7}
SPREAD = frozenset((*HIGHEST, "ethernets"))
_PORT_LIST = re.compile(r"[a-z]+(\d[\d/]*(?:-\d[\d/]*)?(?:,\d[\d/]*(?:-\d[\d/]*)?)*)", re.ASCII | re.IGNORECASE)


def take_list(kind: str, words: Sequence[str], ports: Sequence[str]) -> tuple[tuple[str, ...], int] | None:
    """The items of the list at the start of `words` and the number of words used, or None."""
    if kind == "ethernets":
        found = port_list(words[0], ports) if words else ()
        return (found, 1) if found else None
    items: list[str] = []
    used = 0
    for word in words:
        some = numbers(word, HIGHEST[kind])
        if not some:
            break
        items.extend(map(str, some))
        used += 1
    return (tuple(dict.fromkeys(items)), used) if items else None


def port_list(word: str, ports: Sequence[str]) -> tuple[str, ...]:
    """Expand `Ethernet1/1` or `Et1/1-2/1,5/1`; empty if one of the ports does not exist."""
    found = _PORT_LIST.fullmatch(word)
    typed = re.match(r"[a-zA-Z]+", word)
    if not found or not typed or len(typed[0]) < 2 or not "ethernet".startswith(typed[0].lower()):
        return ()
    result: list[str] = []
    for part in found[1].split(","):
        first, _, last = part.partition("-")
        low, high = f"Ethernet{first}", f"Ethernet{last or first}"
        if low not in ports or high not in ports:
            return ()
        result.extend(ports[ports.index(low) : ports.index(high) + 1])
    return tuple(result)


def short_list(ports: Sequence[str]) -> str:
    """Print ports as EOS does: `Et1/1,1/5`; a single port keeps its full name."""
    if len(ports) == 1:
        return ports[0]
    return "Et" + ",".join(port.removeprefix("Ethernet") for port in ports)


Words = tuple[str, ...]
Part = Literal["literal", "key", "value"]
ROOT = "global"
_PIECE = re.compile(r"<(?P<key>[^>]+)>|\{(?P<value>[^}]+)\}|(?P<literal>\S+)")


@dataclass(frozen=True, slots=True)
class Piece:
    """One position of a rule: a literal, part of the key, or a value."""

    part: Part
    text: str
    read: Reader | None = None

    def take(self, words: Words, ports: Sequence[str]) -> tuple[Words, int] | None:
        """The normalised words (several for a list) and the number of words used, or None."""
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
class EosRule:
    """One form of line in a mode."""

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
        """The kind of list in the rule, if any; each item of the list is a separate entry."""
        return next((piece.text for piece in self.pieces if piece.text in SPREAD), "")


@dataclass(frozen=True, slots=True)
class EosLine:
    """One normalised line, and the key under which a later line replaces it."""

    words: Words
    key: Words


@dataclass(frozen=True, slots=True)
class Match:
    """The lines that a typed line expands to."""

    rule: EosRule
    lines: tuple[EosLine, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How many words the best rule understood."""

    understood: int


class EosGrammar:
    """The rules of every mode."""

    def __init__(self, rules: Mapping[str, tuple[EosRule, ...]]) -> None:
        self._by_first: dict[str, dict[str, list[EosRule]]] = {}
        for mode, found in rules.items():
            first = self._by_first.setdefault(mode, {})
            for rule in found:
                piece = rule.pieces[0]
                first.setdefault(piece.text if piece.part == "literal" else "", []).append(rule)

    def match(self, mode: str, words: Words, ports: Sequence[str], *, is_negated: bool) -> Match | Mismatch:
        """Match a line (without its `no`) in a mode; a negated line may leave its value out."""
        furthest = 0
        known = self._by_first[mode]
        for rule in (*known.get(words[0] if words else "", ()), *known.get("", ())):
            found = _fit(rule, words, ports, is_negated=is_negated)
            if isinstance(found, Match):
                return found
            furthest = max(furthest, found)
        return Mismatch(furthest)


def _fit(rule: EosRule, words: Words, ports: Sequence[str], *, is_negated: bool) -> Match | int:
    """Match one rule, or return how many words it understood."""
    taken: list[Words] = []
    at = 0
    for index, piece in enumerate(rule.pieces):
        if at == len(words) and is_negated and all(rest.part == "value" for rest in rule.pieces[index:]):
            break
        found = piece.take(words[at:], ports)
        if found is None:
            return at
        taken.append(found[0])
        at += found[1]
    return Match(rule, tuple(_lines(rule, taken))) if at == len(words) else at


def _lines(rule: EosRule, taken: Sequence[Words]) -> Iterator[EosLine]:
    count = max(map(len, taken))
    for index in range(count):
        words = tuple(found[index] if len(found) > 1 else found[0] for found in taken)
        pieces = rule.pieces[: len(words)]
        key = tuple(word for word, piece in zip(words, pieces, strict=True) if piece.part != "value")
        if rule.is_single:
            key = tuple(piece.text for piece in pieces if piece.part == "literal")
        yield EosLine(words, key)


@cache
def load(queue_keyword: str, release: tuple[int, ...]) -> EosGrammar:
    """Load the grammar for a queue keyword and a release such as (4, 35, 1)."""
    text = (Path(__file__).parent / "grammar.txt").read_text(encoding="utf-8")
    # 4.33 accepts both keywords and stores the new one; earlier releases know only the old one. 4.35 prints the
    # watchdog lines right after the maps.
    source = "local-interface|source-interface" if release >= (4, 33) else "source-interface"
    text = text.replace("{=SYSLOG_SOURCE}", f"{{={source}}}").replace("QUEUE", queue_keyword)
    text = text.replace("WATCHDOG_MARK", "" if release >= (4, 35) else "!").replace("HIGHEST_MTU", "9214")
    modes: dict[str, tuple[EosRule, ...]] = {}
    for chunk in text.split("%mode ")[1:]:
        mode, _, body = chunk.partition("\n")
        lines = [line for line in map(str.strip, body.splitlines()) if line and not line.startswith("#")]
        modes[mode.strip()] = tuple(_rules(lines))
    return EosGrammar(modes)


def _rules(lines: list[str]) -> Iterator[EosRule]:
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
                yield EosRule(
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
    """Expand the optional parts of a form, longest first."""
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
