"""What an SNMP table is made of: an object identifier, the type of its value, the value."""

from dataclasses import dataclass
from enum import IntEnum

Oid = tuple[int, ...]
TRUE, FALSE = 1, 2
MIB_2: Oid = (1, 3, 6, 1, 2, 1)
ENTERPRISES: Oid = (1, 3, 6, 1, 4, 1)


class Kind(IntEnum):
    """The types of SMIv2 that are used here, by their numbers in AgentX."""

    INTEGER = 2
    STRING = 4
    OBJECT = 6
    COUNTER32 = 65
    GAUGE32 = 66
    TIMETICKS = 67
    COUNTER64 = 70


@dataclass(frozen=True, slots=True)
class Row:
    """One object with its value."""

    oid: Oid
    kind: Kind
    value: int | bytes | Oid


def integer(oid: Oid, value: int) -> Row:
    """Return a signed number of 32 bits."""
    return Row(oid, Kind.INTEGER, max(-(2**31), min(2**31 - 1, value)))


def gauge(oid: Oid, value: int) -> Row:
    """Return an unsigned number of 32 bits that stays at its largest value when it is too large."""
    return Row(oid, Kind.GAUGE32, max(0, min(2**32 - 1, value)))


def counter32(oid: Oid, value: int) -> Row:
    """Return a counter that wraps at 32 bits."""
    return Row(oid, Kind.COUNTER32, value % 2**32)


def counter64(oid: Oid, value: int) -> Row:
    """Return a counter that wraps at 64 bits."""
    return Row(oid, Kind.COUNTER64, value % 2**64)


def string(oid: Oid, value: str) -> Row:
    """Return text."""
    return Row(oid, Kind.STRING, value.encode())


def octets(oid: Oid, value: bytes) -> Row:
    """Return bytes, such as a MAC address."""
    return Row(oid, Kind.STRING, value)


def truth(oid: Oid, value: bool) -> Row:
    """Return a TruthValue."""
    return Row(oid, Kind.INTEGER, TRUE if value else FALSE)


def mac_octets(mac: str) -> bytes:
    """Return a MAC address as bytes; nothing when there is none."""
    return bytes.fromhex(mac.replace(":", ""))
