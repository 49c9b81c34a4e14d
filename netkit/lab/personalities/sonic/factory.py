"""What a switch is before anybody configured it, and the rows an image adds to every configuration."""

import copy
import zlib
from collections.abc import Iterator
from typing import Any

from netkit.design.fabric import Switch
from netkit.lab.personalities.sonic.tables import Row, Tables

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
