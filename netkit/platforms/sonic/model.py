"""SONiC's configuration: CONFIG_DB as table, row and field, and in split mode FRR's own file."""

import json

from netkit.errors import ConfigError, Problem
from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import PRESENT, Config, Files, Path
from netkit.platforms.frr.model import FRR_CONF, ROUTING
from netkit.platforms.secrets import SECRET, is_secret_name
from netkit.platforms.sonic.router import keeping, router
from netkit.platforms.sonic.routing import OWNERSHIP
from netkit.platforms.sonic.strategy import RISKS, constraints, strategy

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
