"""SONiC's configuration: CONFIG_DB as table, row and field, and in split mode FRR's own file."""

import json
from collections.abc import Iterator

from netkit.errors import ConfigError, Problem
from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import PRESENT, Config, Files, Path
from netkit.platforms.frr.model import FRR_CONF, ROUTING
from netkit.platforms.frr.procedure import foreign, without_left
from netkit.platforms.ownership import LEFT, Ownership, declared
from netkit.platforms.secrets import SECRET, is_secret_name
from netkit.platforms.sonic.router import keeping, router
from netkit.platforms.sonic.strategy import RISKS, constraints, strategy

OWNERSHIP = declared("sonic")
SPLIT_MODES = frozenset({"split", "split-unified"})
DRAIN = " bgp graceful-shutdown"
ENDS = ("!", "exit", "end")
OF_VTYSH = ("frr version", "hostname", "service integrated-vtysh-config")
# The container adds these to frr.conf itself; not every FRR release shows them.
FORWARDING = ("no fpm ", "fpm ", "no zebra nexthop ")


def shown(text: str) -> str:
    """Strip the header of `show running-config`."""
    head, mark, rest = text.partition("\n!\n")
    return rest if mark and "Current configuration" in head else text


def running(text: str, forwarding: str, *, is_draining: bool = False) -> str:
    """The running configuration with the zebra lines of frr.conf, and without netkit's own drain."""
    lines = [line for line in shown(text).splitlines() if not (is_draining and line == DRAIN)]
    saved = (line for line in map(str.rstrip, forwarding.splitlines()) if line.startswith(FORWARDING))
    missing = [line for line in dict.fromkeys(saved) if line not in lines]
    return "\n".join([*missing, *lines]) + "\n"


def whole(running_text: str, rendered: str, ownership: Ownership = OWNERSHIP) -> str:
    """Add what runs and is not netkit's to the intended file: frr-reload removes what a file lacks."""
    intended = without_left(rendered, ownership)
    known = ROUTING.parse(intended, FRR_CONF)
    others = []
    for block in _blocks(shown(running_text)):
        entries = ROUTING.parse(block, FRR_CONF)
        is_known = entries.keys() <= known.keys()
        if entries and not is_known and all(ownership.precedence(path) < 0 for path in entries):
            others.append(block)
        elif any(ownership.precedence(path) == LEFT for path in entries):
            others.append("".join(foreign(block, intended, ownership)).rstrip())
    lines = intended.rstrip().removesuffix("\nend").rstrip()
    return "\n".join([lines, *(f"!\n{block}" for block in others), "!", "end"]) + "\n"


def _blocks(text: str) -> Iterator[str]:
    """Yield each top-level line with the lines below it."""
    block: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            block.append(line)
        elif line == "exit":
            block.append(line)
            yield "\n".join(block)
            block = []
        else:
            if block:
                yield "\n".join(block)
            block = [line] if line.strip() and line not in ENDS and not line.startswith(OF_VTYSH) else []
    if block:
        yield "\n".join(block)


CONFIG_DB = "config_db.json"
SECRET_ROWS = frozenset({"SNMP_COMMUNITY"})
NO_FIELDS = {"NULL": "NULL"}  # how redis keeps a row without fields
FRR_TEXT = "bgpraw"  # `show runningconfiguration all` adds FRR's configuration as one text


def parse(files: Files) -> Config:
    """Parse config_db.json, or the output of `show runningconfiguration all`, and frr.conf."""
    entries = _tables(files[CONFIG_DB]) if CONFIG_DB in files else {}
    if FRR_CONF in files:
        entries |= ROUTING.parse(files[FRR_CONF], FRR_CONF)
    return entries


def _tables(text: str) -> dict[Path, str]:
    if not text.strip():
        return {}
    try:
        document = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        message = f"cannot be read: {error.msg}"
        raise ConfigError(Problem(message, "read it again", file=CONFIG_DB, line=error.lineno)) from None
    except RecursionError:
        raise _malformed("the whole of it") from None
    if not isinstance(document, dict):
        raise _malformed("the whole of it")
    entries: dict[Path, str] = {}
    for table, rows in document.items():
        if table in {FRR_TEXT, FRR_CONF}:
            continue
        if not isinstance(rows, dict):
            raise _malformed(table)
        for key, row in rows.items():
            if not isinstance(row, dict):
                raise _malformed(f"{table}|{key}")
            _row(table, SECRET if table in SECRET_ROWS else key, row, entries)
    return entries


def _row(table: str, key: str, row: dict[str, object], entries: dict[Path, str]) -> None:
    if not row or row == NO_FIELDS:
        entries[table, key] = PRESENT
        return
    for field, value in row.items():
        if is_secret_name(field):
            entries[table, key, field] = SECRET
        elif isinstance(value, str):  # almost always
            entries[table, key, field] = value
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            entries[table, key, field] = json.dumps(value)
        elif isinstance(value, bool):
            entries[table, key, field] = str(value).lower()
        else:
            raise _malformed(f"{table}|{key}|{field}")


def _malformed(place: str) -> ConfigError:
    remedy = "tables hold rows, rows hold fields, fields hold text or lists of text"
    return ConfigError(Problem(f"{place} does not have the form of CONFIG_DB", remedy, file=CONFIG_DB))


def text(config: Config) -> dict[str, str]:
    """Format a configuration as config_db.json, and as frr.conf if it holds FRR lines."""
    tables: dict[str, dict[str, dict[str, object]]] = {}
    for path, value in config.items():
        if path[0] == FRR_CONF:
            continue
        row = tables.setdefault(path[0], {}).setdefault(path[1], {})
        if len(path) > 2:
            row[path[2]] = _listed(value)
    files = {CONFIG_DB: json.dumps(tables, indent=1, sort_keys=True) + "\n"} if tables else {}
    routing = ROUTING.text(config, FRR_CONF)
    return files | ({FRR_CONF: routing} if routing else {})


def _listed(value: str) -> object:
    if not value.startswith("["):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    is_list = isinstance(found, list) and all(isinstance(item, str) for item in found) and json.dumps(found) == value
    return found if is_list else value


MODEL = ConfigModel(
    "sonic",
    (CONFIG_DB, FRR_CONF),
    parse,
    text,
    OWNERSHIP,
    RISKS,
    strategy,
    tuple(constraints()),
    router,
    keeping=keeping,
)
