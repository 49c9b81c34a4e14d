"""CONFIG_DB as plain values (table → row key → leaf → text, or a list of texts), and what of it is on flash."""

import copy
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from netkit.design.fabric import Switch
from netkit.lab.node import ConfigRefusedError, Node

Value = str | list[str]
Row = dict[str, Value]
Table = dict[str, Row]
Tables = dict[str, Table]
View = Mapping[str, Mapping[str, Mapping[str, Value]]]
"""The same, for who only reads."""

SEPARATOR = "|"


def parse(text: str, name: str = "config_db.json") -> Tables:
    """Return the tables of a JSON text, or say where it is not a CONFIG_DB."""
    return shaped(parse_json(text, name), name)


def parse_json(text: str, name: str) -> object:
    """Return a JSON text as values; a key that stands twice is refused, where Python would keep the last."""
    try:
        found: object = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ConfigRefusedError(f"{name} is not valid JSON: {error}") from error
    return found


def shaped(found: object, name: str) -> Tables:
    """Return parsed JSON as tables, or refuse what has another shape."""
    if not isinstance(found, dict):
        raise ConfigRefusedError(f"{name}: expected an object of tables")
    tables: Tables = {}
    for table, rows in found.items():
        if not isinstance(rows, dict):
            raise ConfigRefusedError(f"{name}: {table}: expected an object of rows")
        tables[table] = {key: _row(f"{name}: {table}{SEPARATOR}{key}", row) for key, row in rows.items()}
    return tables


def dump(tables: View) -> str:
    """Return tables as SONiC writes them: sorted, numbers in their order, and an empty row as {}."""
    return json.dumps(ordered(tables), indent=4) + "\n"


def ordered(tables: View) -> Tables:
    """Return a deep copy, with tables, rows and leaves in natural order."""
    return {
        name: {
            key: {leaf: list(value) if isinstance(value, list) else value for leaf, value in sorted(rows[key].items())}
            for key in sorted(rows, key=natural)
        }
        for name, rows in sorted(tables.items())
        if rows
    }


def natural(key: str) -> tuple[tuple[int, int | str], ...]:
    """Return what sorts Ethernet8 before Ethernet64."""
    return tuple(
        (0, int(part)) if part[0] in "0123456789" else (1, part) for part in re.findall(r"[0-9]+|[^0-9]+", key)
    )


def text(tables: View, table: str, key: str, leaf: str, otherwise: str = "") -> str:
    """Return one leaf as text."""
    value = tables.get(table, {}).get(key, {}).get(leaf, otherwise)
    return ",".join(value) if isinstance(value, list) else value


def parts(key: str) -> tuple[str, ...]:
    """Return the parts of a row key."""
    return tuple(key.split(SEPARATOR))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)} stands twice")
    return found


def _row(where: str, row: object) -> Row:
    if not isinstance(row, dict):
        raise ConfigRefusedError(f"{where}: expected an object of fields")
    return {leaf: _value(f"{where}: {leaf}", value) for leaf, value in row.items()}


def _value(where: str, value: object) -> Value:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [str(item) for item in value]
    raise ConfigRefusedError(f"{where}: every value is a text or a list of texts, and this is neither")


FEATURES = ("bgp", "database", "lldp", "pmon", "snmp", "swss", "syncd")


def image_rows(branch: int) -> Tables:
    """Return the rows of the image's own defaults, which a reload lays below a configuration."""
    return {
        "FEATURE": {name: {"state": "enabled", "auto_restart": "enabled"} for name in FEATURES},
        "VERSIONS": {"DATABASE": {"VERSION": f"version_{branch}_01"}},
    }


def with_image_rows(tables: Tables, switch: Switch, branch: int) -> Tables:
    """Return tables with the image's defaults below them, and the address of the switch's own board."""
    found = copy.deepcopy(tables)
    found.setdefault("DEVICE_METADATA", {}).setdefault("localhost", {}).setdefault("mac", board_mac(switch))
    for table, rows in image_rows(branch).items():
        for key, row in rows.items():
            found.setdefault(table, {})[key] = {**row, **found.get(table, {}).get(key, {})}
    return found


def factory(switch: Switch, branch: int) -> Tables:
    """Return the configuration of a new switch: every cage whole and down, and nothing else."""
    data: dict[str, Any] = dict(switch.model.platforms.get("sonic", {}))
    metadata: Row = {
        "hostname": "sonic",
        "hwsku": _hwsku(data, branch),
        "platform": str(data.get("platform", "unknown")),
        "type": "LeafRouter",
        "buffer_model": str(data.get("buffer_model", "traditional")),
        "docker_routing_config_mode": "separated",
        "synchronous_mode": "enable",
        "timezone": "UTC",
    }
    tables: Tables = {"DEVICE_METADATA": {"localhost": metadata}}
    ports = dict(_ports(switch, data))
    return with_image_rows({**tables, "PORT": ports} if ports else tables, switch, branch)


def _hwsku(data: dict[str, Any], branch: int) -> str:
    """Return the layout the image of a branch installs, as far as it is known."""
    given = data.get("hwsku", "unknown")
    if isinstance(given, dict):
        known = [since for since in given if int(since) <= branch]
        return str(given[max(known)]) if known else "unknown"
    return str(given)


def board_mac(switch: Switch) -> str:
    """Return a MAC address that stays the same for a device of this name."""
    number = zlib.crc32(switch.name.encode())
    return ":".join(["02", "00", *(f"{number >> shift & 0xFF:02x}" for shift in (24, 16, 8, 0))])


def _ports(switch: Switch, data: dict[str, Any]) -> Iterator[tuple[str, Row]]:
    speeds = [split.speed_gbps for split in switch.model.splits if split.ports == 1]
    step = int(data.get("lanes_per_index") or switch.model.lanes_per_cage)
    for cage in range(1, switch.model.cages + 1) if speeds and data else ():
        yield (
            f"Ethernet{int(data.get('first_index') or 0) + (cage - 1) * step}",
            {
                "alias": str(data["alias"]).format(cage=cage),
                "index": str(int(data["port_index_base"]) + cage - 1),
                "lanes": _lanes(switch, data, cage),
                "speed": str(max(speeds) * 1000),
                "mtu": "9100",
                "admin_status": "down",
            },
        )


def _lanes(switch: Switch, data: dict[str, Any], cage: int) -> str:
    given, count = data["lanes"], switch.model.lanes_per_cage
    if given != "regular":
        return str(given[cage - 1])
    return ",".join(str(lane) for lane in range(count * (cage - 1), count * cage))


FOLDER = "/etc/sonic"
CONFIG = f"{FOLDER}/config_db.json"
GOLDEN = f"{FOLDER}/golden_config_db.json"
FRR = f"{FOLDER}/frr/frr.conf"
CHECKPOINTS = f"{FOLDER}/checkpoints"
CHECKPOINT_SUFFIX = ".cp.json"


class SonicFlash:
    """What of a SONiC switch is on disk."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def prepare(self) -> None:
        """Make the folders."""
        for folder in (f"{FOLDER}/frr", CHECKPOINTS):
            self._node.file(folder).mkdir(parents=True, exist_ok=True)

    def install(self, files: Mapping[str, str]) -> None:
        """Write rendered files where the image looks for them."""
        self.prepare()
        for name in (CONFIG, FRR):
            if Path(name).name in files:
                write(self._node.file(name), files[Path(name).name])

    def has_config(self) -> bool:
        """Whether a configuration was ever saved."""
        return self._node.file(CONFIG).exists()

    def frr_conf(self) -> str:
        """Return the routing file, empty when there is none."""
        return self.text(FRR) if self._node.file(FRR).exists() else ""

    def text(self, path: str) -> str:
        """Return the text of a file of the node."""
        try:
            return self._node.file(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigRefusedError(f"{path}: {_reason(error)}") from error

    def save(self, tables: View) -> None:
        """Make tables the saved configuration."""
        write(self._node.file(CONFIG), dump(tables))

    def golden_mode(self) -> str:
        """Return the routing mode golden_config_db.json insists on; empty when it does not."""
        file = self._node.file(GOLDEN)
        if not file.exists():
            return ""
        try:
            found = json.loads(file.read_text(encoding="utf-8"))["DEVICE_METADATA"]["localhost"]
            return str(found.get("docker_routing_config_mode", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            return ""

    def checkpoints(self) -> tuple[str, ...]:
        """Return the names of the checkpoints, the oldest first."""
        files = self._node.file(CHECKPOINTS).glob(f"*{CHECKPOINT_SUFFIX}")
        by_age = sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))
        return tuple(file.name.removesuffix(CHECKPOINT_SUFFIX) for file in by_age)

    def checkpoint(self, name: str) -> Tables:
        """Return the tables of a checkpoint."""
        file = self._checkpoint_file(name)
        if not file.exists():
            raise ConfigRefusedError(f"Checkpoint '{name}' does not exist")
        return parse(file.read_text(encoding="utf-8"), f"checkpoint {name}")

    def keep_checkpoint(self, name: str, tables: View) -> None:
        """Write a checkpoint; one of the same name is replaced."""
        write(self._checkpoint_file(name), dump(tables))

    def drop_checkpoint(self, name: str) -> None:
        """Delete a checkpoint."""
        file = self._checkpoint_file(name)
        if not file.exists():
            raise ConfigRefusedError(f"Checkpoint '{name}' does not exist")
        file.unlink()

    def _checkpoint_file(self, name: str) -> Path:
        if not name or "/" in name or name.startswith("."):
            raise ConfigRefusedError(f"{name!r} is no name for a checkpoint")
        return self._node.file(f"{CHECKPOINTS}/{name}{CHECKPOINT_SUFFIX}")


def write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    draft = file.with_name(f".{file.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigRefusedError(f"{file.name}: {_reason(error)}") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or "cannot be read" if isinstance(error, OSError) else "not UTF-8"
