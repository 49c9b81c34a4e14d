"""CONFIG_DB as plain values (table → row key → leaf → text or list of texts), and the files on flash."""

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
"""Read-only tables."""

SEPARATOR = "|"


def parse(text: str, name: str = "config_db.json") -> Tables:
    """Parse a CONFIG_DB; raise ConfigRefusedError for any other content."""
    return shaped(parse_json(text, name), name)


def parse_json(text: str, name: str) -> object:
    """Parse JSON; a duplicate key is refused."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError(f"duplicate key {next(key for key in keys if keys.count(key) > 1)}")
        return dict(pairs)

    try:
        found: object = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise ConfigRefusedError(f"{name} is not valid JSON: {error}") from error
    return found


def shaped(found: object, name: str) -> Tables:
    """Check that parsed JSON has the structure of tables."""
    if not isinstance(found, dict):
        raise ConfigRefusedError(f"{name}: expected an object of tables")
    tables: Tables = {}
    for table, rows in found.items():
        if not isinstance(rows, dict):
            raise ConfigRefusedError(f"{name}: {table}: expected an object of rows")
        tables[table] = {}
        for key, row in rows.items():
            where = f"{name}: {table}{SEPARATOR}{key}"
            if not isinstance(row, dict):
                raise ConfigRefusedError(f"{where}: expected an object of fields")
            for leaf, value in row.items():
                items = value if isinstance(value, list) else [value]
                if not all(isinstance(item, str) for item in items):
                    raise ConfigRefusedError(f"{where}: {leaf}: expected a text or a list of texts")
            tables[table][key] = dict(row)
    return tables


def dump(tables: View) -> str:
    """Print tables as SONiC does: in natural order, an empty row as {}."""
    return json.dumps(ordered(tables), indent=4) + "\n"


def ordered(tables: View) -> Tables:
    """A deep copy in natural order, without empty tables."""
    return {
        name: {
            key: {leaf: list(value) if isinstance(value, list) else value for leaf, value in sorted(rows[key].items())}
            for key in sorted(rows, key=natural)
        }
        for name, rows in sorted(tables.items())
        if rows
    }


def natural(key: str) -> tuple[tuple[int, int | str], ...]:
    """Sort Ethernet8 before Ethernet64."""
    return tuple(
        (0, int(part)) if part[0] in "0123456789" else (1, part) for part in re.findall(r"[0-9]+|[^0-9]+", key)
    )


def text(tables: View, table: str, key: str, leaf: str, default: str = "") -> str:
    """One leaf as text; a list is joined by commas."""
    value = tables.get(table, {}).get(key, {}).get(leaf, default)
    return ",".join(value) if isinstance(value, list) else value


def parts(key: str) -> tuple[str, ...]:
    """Split a row key."""
    return tuple(key.split(SEPARATOR))


FEATURES = ("bgp", "database", "lldp", "pmon", "snmp", "swss", "syncd")


def image_rows(branch: int) -> Tables:
    """The defaults of the image, which a reload merges below the configuration."""
    return {
        "FEATURE": {name: {"state": "enabled", "auto_restart": "enabled"} for name in FEATURES},
        "VERSIONS": {"DATABASE": {"VERSION": f"version_{branch}_01"}},
    }


def with_image_rows(tables: Tables, switch: Switch, branch: int) -> Tables:
    """Add the image's defaults and the MAC address of the switch."""
    found = copy.deepcopy(tables)
    found.setdefault("DEVICE_METADATA", {}).setdefault("localhost", {}).setdefault("mac", board_mac(switch))
    for table, rows in image_rows(branch).items():
        for key, row in rows.items():
            found.setdefault(table, {})[key] = {**row, **found.get(table, {}).get(key, {})}
    return found


def factory(switch: Switch, branch: int) -> Tables:
    """The configuration of a new switch: every cage unsplit and down."""
    data: dict[str, Any] = dict(switch.model.platforms.get("sonic", {}))
    hwsku = data.get("hwsku", "unknown")
    if isinstance(hwsku, dict):  # by the first branch that has it
        known = [since for since in hwsku if int(since) <= branch]
        hwsku = hwsku[max(known)] if known else "unknown"
    metadata: Row = {
        "hostname": "sonic",
        "hwsku": str(hwsku),
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


def board_mac(switch: Switch) -> str:
    """A MAC address that is stable for a device name."""
    number = zlib.crc32(switch.name.encode())
    return ":".join(["02", "00", *(f"{number >> shift & 0xFF:02x}" for shift in (24, 16, 8, 0))])


def _ports(switch: Switch, data: dict[str, Any]) -> Iterator[tuple[str, Row]]:
    speeds = [split.speed_gbps for split in switch.model.splits if split.ports == 1]
    lane_count = switch.model.lanes_per_cage
    step = int(data.get("lanes_per_index") or lane_count)
    for cage in range(1, switch.model.cages + 1) if speeds and data else ():
        if data["lanes"] == "regular":
            lanes = ",".join(map(str, range(lane_count * (cage - 1), lane_count * cage)))
        else:
            lanes = data["lanes"][cage - 1]
        yield (
            f"Ethernet{int(data.get('first_index') or 0) + (cage - 1) * step}",
            {
                "alias": str(data["alias"]).format(cage=cage),
                "index": str(int(data["port_index_base"]) + cage - 1),
                "lanes": str(lanes),
                "speed": str(max(speeds) * 1000),
                "mtu": "9100",
                "admin_status": "down",
            },
        )


FOLDER = "/etc/sonic"
CONFIG = f"{FOLDER}/config_db.json"
GOLDEN = f"{FOLDER}/golden_config_db.json"
FRR = f"{FOLDER}/frr/frr.conf"
CHECKPOINTS = f"{FOLDER}/checkpoints"
CHECKPOINT_SUFFIX = ".cp.json"


class SonicFlash:
    """The files of a switch."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def prepare(self) -> None:
        for folder in (f"{FOLDER}/frr", CHECKPOINTS):
            self._node.file(folder).mkdir(parents=True, exist_ok=True)

    def install(self, files: Mapping[str, str]) -> None:
        self.prepare()
        for name in (CONFIG, FRR):
            if Path(name).name in files:
                write(self._node.file(name), files[Path(name).name])

    def has_config(self) -> bool:
        return self._node.file(CONFIG).exists()

    def frr_conf(self) -> str:
        return self.text(FRR) if self._node.file(FRR).exists() else ""

    def text(self, path: str) -> str:
        try:
            return self._node.file(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigRefusedError(f"{path}: {_reason(error)}") from error

    def save(self, tables: View) -> None:
        write(self._node.file(CONFIG), dump(tables))

    def golden_mode(self) -> str:
        """The routing mode in golden_config_db.json; empty if it sets none."""
        file = self._node.file(GOLDEN)
        if not file.exists():
            return ""
        try:
            found = json.loads(file.read_text(encoding="utf-8"))["DEVICE_METADATA"]["localhost"]
            return str(found.get("docker_routing_config_mode", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            return ""

    def checkpoints(self) -> tuple[str, ...]:
        """The checkpoints, the oldest first."""
        files = self._node.file(CHECKPOINTS).glob(f"*{CHECKPOINT_SUFFIX}")
        by_age = sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))
        return tuple(file.name.removesuffix(CHECKPOINT_SUFFIX) for file in by_age)

    def checkpoint(self, name: str) -> Tables:
        file = self._checkpoint_file(name)
        if not file.exists():
            raise ConfigRefusedError(f"Checkpoint '{name}' does not exist")
        return parse(file.read_text(encoding="utf-8"), f"checkpoint {name}")

    def keep_checkpoint(self, name: str, tables: View) -> None:
        """Write a checkpoint, replacing one of the same name."""
        write(self._checkpoint_file(name), dump(tables))

    def drop_checkpoint(self, name: str) -> None:
        file = self._checkpoint_file(name)
        if not file.exists():
            raise ConfigRefusedError(f"Checkpoint '{name}' does not exist")
        file.unlink()

    def _checkpoint_file(self, name: str) -> Path:
        if not name or "/" in name or name.startswith("."):
            raise ConfigRefusedError(f"invalid checkpoint name {name!r}")
        return self._node.file(f"{CHECKPOINTS}/{name}{CHECKPOINT_SUFFIX}")


def write(file: Path, text: str) -> None:
    draft = file.with_name(f".{file.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigRefusedError(f"{file.name}: {_reason(error)}") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or "cannot be read" if isinstance(error, OSError) else "not UTF-8"
