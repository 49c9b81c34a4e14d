"""`sonic-db-cli`: redis commands on the databases. Only CONFIG_DB can be written, and only with what is valid.

`sonic-db-dump` prints many rows at once.
"""

import fnmatch
import json
from collections.abc import Callable

from netkit.lab.personalities.sonic.command import Command, Commands, Line, UsageError
from netkit.lab.personalities.sonic.database import DATABASES, Hashes, rows
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import SEPARATOR, Tables
from netkit.lab.personality import Call

Read = Callable[[Hashes, tuple[str, ...]], str]
MANY = 10_000
DEFAULT = "APPL_DB"


def _answer(system: System, call: Call, line: Line) -> None:
    if line.arguments == ("PING",):
        call.out("PONG\n")
        return
    if len(line.arguments) < 2:
        raise UsageError("give a database and a command")
    name, verb, *rest = line.arguments
    if name not in DATABASES:
        raise UsageError(f"Invalid database name input : '{name}'")
    verb = verb.lower()
    if verb in READS:
        call.out(f"{READS[verb](rows(system, name, rest[0] if rest else '*'), tuple(rest))}\n")
    elif verb in WRITES and name == "CONFIG_DB":
        tables = system.edited()
        count = WRITES[verb](tables, tuple(rest))
        system.write({table: rows for table, rows in tables.items() if rows})
        call.out(f"{count}\n")
    else:
        raise UsageError(f"the lab answers {', '.join([*READS, *WRITES])}, and writes CONFIG_DB alone")


def _dump(system: System, call: Call, line: Line) -> None:
    name = line.options.get("-n", line.options.get("--dbname", DEFAULT))
    if name not in DATABASES:
        raise UsageError(f"Invalid database name input : '{name}'")
    pattern = line.options.get("-k", line.options.get("--keys", "*"))
    found = rows(system, name, pattern)
    shown = {
        key: {"expireat": None, "ttl": -1, "type": "hash", "value": dict(found[key])}
        for key in fnmatch.filter(found, pattern.replace("[^", "[!"))
    }
    call.out(json.dumps(shown, indent=2 if line.has("-y", "--pretty") else None, sort_keys=True))


def _keys(found: Hashes, words: tuple[str, ...]) -> str:
    pattern = words[0] if words else "*"
    return "\n".join(key for key in found if fnmatch.fnmatchcase(key, pattern))


def _hgetall(found: Hashes, words: tuple[str, ...]) -> str:
    return str(dict(found.get(_key(words), {})))


def _hget(found: Hashes, words: tuple[str, ...]) -> str:
    return found.get(_key(words), {}).get(words[1] if len(words) > 1 else "", "")


def _hkeys(found: Hashes, words: tuple[str, ...]) -> str:
    return "\n".join(found.get(_key(words), {}))


def _exists(found: Hashes, words: tuple[str, ...]) -> str:
    return str(int(_key(words) in found))


def _key(words: tuple[str, ...]) -> str:
    if not words:
        raise UsageError("wrong number of arguments")
    return words[0]


def _place(words: tuple[str, ...]) -> tuple[str, str]:
    table, separator, key = _key(words).partition(SEPARATOR)
    if not separator:
        raise UsageError(f"{table} is no row of a table")
    return table, key


def _hset(tables: Tables, words: tuple[str, ...]) -> int:
    table, key = _place(words)
    row = tables.setdefault(table, {}).setdefault(key, {})
    fields = list(zip(words[1::2], words[2::2], strict=False))
    added = sum(name.removesuffix("@") not in row for name, _ in fields)
    for name, value in fields:
        if name.endswith("@"):
            row[name.removesuffix("@")] = value.split(",")
        elif name != "NULL":
            row[name] = value
    return added


def _hdel(tables: Tables, words: tuple[str, ...]) -> int:
    table, key = _place(words)
    row = tables.get(table, {}).get(key, {})
    return sum(row.pop(name.removesuffix("@"), None) is not None for name in words[1:])


def _delete(tables: Tables, words: tuple[str, ...]) -> int:
    places = [_place((word,)) for word in words]
    return sum(tables.get(table, {}).pop(key, None) is not None for table, key in places)


READS: dict[str, Read] = {"keys": _keys, "hgetall": _hgetall, "hget": _hget, "hkeys": _hkeys, "exists": _exists}
WRITES: dict[str, Callable[[Tables, tuple[str, ...]], int]] = {"hset": _hset, "hdel": _hdel, "del": _delete}
COMMANDS: Commands = {(): Command(_answer, MANY)}
DUMP: Commands = {
    (): Command(_dump, 0, frozenset({"-y", "--pretty"}), frozenset({"-n", "--dbname", "-k", "--keys"})),
}
