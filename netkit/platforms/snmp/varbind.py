"""What an agent answered, as text: one value a line, `COLUMN.INDEX KIND VALUE`, names relative to their table.

Kinds: `i` a number, `s` text, `x` bytes in hex, `o` an object identifier. What is no such line says nothing.
"""

import re
from collections.abc import Iterable, Mapping

Oid = tuple[int, ...]
Value = int | bytes | Oid
Table = Mapping[int, Mapping[Oid, Value]]
"""Column → index → value."""
LARGEST_PART = 2**32 - 1
ARCS = r"\d{1,10}(?:\.\d{1,10}){0,127}"
LINE = re.compile(rf"({ARCS}) ([isxo]) (.*)", re.ASCII)
NUMBER = re.compile(r"-?\d{1,20}", re.ASCII)
HEX = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)


def oid(text: str) -> Oid:
    """Return the name that a text spells; it must be one."""
    return tuple(map(int, text.split(".")))


def spelled(name: Oid) -> str:
    """Return a name as text."""
    return ".".join(map(str, name))


def line(name: Oid, value: Value) -> str:
    """Return one value as a line."""
    return f"{spelled(name)} {_value(value)}"


def _value(value: Value) -> str:
    if isinstance(value, int):
        return f"i {value}"
    if isinstance(value, tuple):
        return f"o {spelled(value)}"
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    return f"s {text}" if text and text.isprintable() and text == text.strip() else f"x {value.hex()}"


def table(text: str) -> Table:
    """Return what the lines say; whatever they are, nothing is raised."""
    found: dict[int, dict[Oid, Value]] = {}
    for name, value in _read(text.split("\n")):
        if len(name) > 1:
            found.setdefault(name[0], {})[name[1:]] = value
    return found


def _read(lines: Iterable[str]) -> Iterable[tuple[Oid, Value]]:
    for one in lines:
        matched = LINE.fullmatch(one)
        name = _name(matched[1]) if matched else None
        value = _parsed(matched[2], matched[3]) if matched else None
        if name is not None and value is not None:
            yield name, value


def _parsed(kind: str, text: str) -> Value | None:
    if kind == "s":
        return text.encode("utf-8", "replace")
    if kind == "i":
        return int(text) if NUMBER.fullmatch(text) else None
    if kind == "x":
        return bytes.fromhex(text) if HEX.fullmatch(text) else None
    return _name(text) if re.fullmatch(ARCS, text, re.ASCII) else None


def _name(text: str) -> Oid | None:
    found = oid(text)
    return found if max(found) <= LARGEST_PART else None


def number(rows: Table, column: int, index: Oid) -> int | None:
    """Return a number of a table; None where there is none."""
    value = rows.get(column, {}).get(index)
    return value if isinstance(value, int) else None


def octets(rows: Table, column: int, index: Oid) -> bytes:
    """Return bytes of a table; empty where there are none."""
    value = rows.get(column, {}).get(index)
    return value if isinstance(value, bytes) else b""


def words(rows: Table, column: int, index: Oid) -> str:
    """Return text of a table; empty where there is none."""
    text = octets(rows, column, index).decode("utf-8", "replace").strip().strip("\0")
    return text if text.isprintable() else ""


def mac(value: bytes) -> str:
    """Return an Ethernet address as everybody writes it; empty when it is none."""
    return ":".join(f"{byte:02x}" for byte in value) if len(value) == 6 else ""
