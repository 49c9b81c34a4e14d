"""What SONiC tells over gNMI: rows of its databases as one JSON tree a path.

COUNTERS_DB has paths of its own that lead past object ids; there ports are called by their aliases.
"""

from collections.abc import Iterator, Mapping

from netkit.lab.personalities.sonic.database import DATABASES, Hashes, rows
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import text
from netkit.lab.personality import Elem, Told

COUNTERS, EVERY_PORT, QUEUES = "COUNTERS", "Ethernet*", "Queues"
SEPARATORS = {"CONFIG_DB": "|", "STATE_DB": "|"}


def told(system: System, target: str, path: tuple[Elem, ...]) -> Iterator[Told]:
    """Yield the tree at a path; LookupError when the database has none there."""
    names = [name for name, _ in path]
    if target not in DATABASES or not names:
        raise LookupError(f"{target}: no such database")
    if target == "COUNTERS_DB" and names[0] == COUNTERS:
        found = _counted(system, names[1:])
    else:
        found = _rows(system, target, names)
    if not found:
        raise LookupError(f"{target}: {'/'.join(names)}")
    yield path, found


def _counted(system: System, names: list[str]) -> Mapping[str, object]:
    """Return the counters of ports, or of their queues."""
    if not names or len(names) > 2 or (len(names) == 2 and names[1] != QUEUES):
        return {}
    database = rows(system, "COUNTERS_DB", "COUNTERS")
    kind = "COUNTERS_QUEUE_NAME_MAP" if len(names) == 2 else "COUNTERS_PORT_NAME_MAP"
    found = {name: database[f"{COUNTERS}:{oid}"] for name, oid in database.get(kind, {}).items()}
    if names[0] == EVERY_PORT:
        return {_called(system, name): row for name, row in found.items()}
    wanted = {name: row for name, row in found.items() if names[0] in _names(system, name.partition(":")[0])}
    return wanted if len(names) == 2 else next(iter(wanted.values()), {})


def _called(system: System, name: str) -> str:
    """Return how the server calls a port or a queue of it."""
    port, separator, queue = name.partition(":")
    return f"{_alias(system, port)}{separator}{queue}"


def _names(system: System, port: str) -> tuple[str, str]:
    return port, _alias(system, port)


def _alias(system: System, port: str) -> str:
    return text(system.running, "PORT", port, "alias") or port


def _rows(system: System, target: str, names: list[str]) -> Mapping[str, object]:
    """Return a table by row, or one row of it."""
    separator = SEPARATORS.get(target, ":")
    prefix = f"{names[0]}{separator}"
    database: Hashes = rows(system, target, prefix)
    found = {key.removeprefix(prefix): row for key, row in database.items() if key.startswith(prefix)}
    return found if len(names) == 1 else found.get(names[1], {})
