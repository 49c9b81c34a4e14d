"""The kinds of words EOS takes: each reader returns a word as EOS keeps it, or nothing when it is not one."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

Reader = Callable[[str], str | None]

SEVERITIES = ("emergencies", "alerts", "critical", "errors", "warnings", "notifications", "informational", "debugging")
SHARES = ("1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8")
SPEEDS = (
    "auto|10g|25g|40g|40g-4|50g-1|50g-2|100g-1|100g-2|100g-4|200g-1|200g-2|200g-4|400g-2|400g-4|400g-8|800g-4|800g-8"
)
ECN_UNITS = ("segments", "bytes", "kbytes", "mbytes", "milliseconds")
LARGEST_ASN = 2**32 - 1


def reader(kind: str) -> Reader:
    """Return the reader of a kind, such as `int:1-8` or `=permit|deny`; KeyError when there is none."""
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
    """Return a reader of exactly these words."""
    known = frozenset(words)
    return lambda word: word if word in known else None


def integer(low: int, high: int) -> Reader:
    """Return a reader of whole numbers within limits."""

    def read(word: str) -> str | None:
        fits = word.isascii() and word.isdigit() and len(word) <= 10 and low <= int(word) <= high
        return str(int(word)) if fits else None

    return read


def decimal(low: Decimal, high: Decimal) -> Reader:
    """Return a reader of decimal fractions within limits."""

    def read(word: str) -> str | None:
        if not re.fullmatch(r"\d{1,10}(\.\d{1,6})?", word, re.ASCII):
            return None
        value = Decimal(word)
        return f"{value.normalize():f}" if low <= value <= high else None

    return read


def matching(pattern: str) -> Reader:
    """Return a reader of words of one form."""
    form = re.compile(pattern, re.ASCII)
    return lambda word: word if form.fullmatch(word) else None


def _ip(word: str) -> str | None:
    try:
        return str(ipaddress.IPv4Address(word))
    except ValueError:
        return None


def _prefix(word: str) -> str | None:
    """Return a prefix without host bits: EOS masks what is typed."""
    try:
        return str(ipaddress.IPv4Network(word, strict=False)) if "/" in word else None
    except ValueError:
        return None


def _address(word: str) -> str | None:
    """Return an interface address; one that names a subnet or a broadcast is none."""
    try:
        address = ipaddress.IPv4Interface(word)
    except ValueError:
        return None
    network = address.network
    reserved = (network.network_address, network.broadcast_address) if network.prefixlen < 31 else ()
    return None if "/" not in word or address.ip in reserved or address.ip.is_multicast else str(address)


def _asn(word: str) -> str | None:
    """Return an AS number in the plain form; both forms are taken."""
    dotted = re.fullmatch(r"(\d{1,5})\.(\d{1,5})", word, re.ASCII)
    if dotted:
        high, low = map(int, dotted.groups())
        return str(high * 65536 + low) if max(high, low) < 65536 and high + low else None
    return integer(1, LARGEST_ASN)(word)


def _poll(word: str) -> str | None:
    return word if word == "auto" else decimal(Decimal("0.005"), Decimal(30))(word)


def _interface(prefix: str, shortest: str, numbers: str) -> Reader:
    """Return a reader of interface names; EOS takes them in any case and as short as two letters."""
    form = re.compile(rf"([a-z]+)({numbers})", re.ASCII | re.IGNORECASE)

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


def _routed(word: str) -> str | None:
    return _management(word) or _loopback(word) or _svi(word) or _ethernet(word)


def numbers(word: str, highest: int) -> tuple[int, ...]:
    """Return the numbers of a list such as `3,8-11`; empty when it is none."""
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
    "poll": _poll,
    "ip": _ip,
    "prefix": _prefix,
    "address": _address,
    "asn": _asn,
    "ethernet": _ethernet,
    "loopback": _loopback,
    "management": _management,
    "svi": _svi,
    "routed": _routed,
}
