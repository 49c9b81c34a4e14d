"""Small intents for the tests: plain values, as they would be in a fabric.yaml."""

import copy
from collections.abc import Mapping
from typing import Any

from netkit import design
from netkit.design import Fabric
from netkit.hardware import Catalog
from netkit.intent import Intent

BASE: dict[str, Any] = {
    "name": "small",
    "site": "lab1",
    "topology": "two-tier",
    "rails": 2,
    "attachment": "p2p",
    "host_routes": "per-leaf",
    "ceilings": {"units": 4, "hosts_per_unit": 4, "spines": 4},
    "switches": {
        "leaf": {
            "model": "SN5600",
            "platform": "nvue",
            "version": "5.16.1",
            "host_breakout": "2x400G",
            "uplink_breakout": "2x400G",
        },
        "spine": {"model": "SN5600", "platform": "nvue", "version": "5.16.1", "breakout": "2x400G", "slots": 2},
    },
    "hosts": {"model": "dgx-h100"},
    "units": [{"unit": "1-2", "hosts": 2}],
    "cables": {
        "host": {"media": "800G-2xDR4", "length_m": 30},
        "spine": {"media": "800G-2xSR4", "length_m": 20},
    },
    "pools": {"loopbacks": "10.255.0.0/24", "hosts": "10.128.0.0/16"},
    "management": {"pool": "192.0.2.0/24", "gateway": "192.0.2.1"},
    "services": {
        "ntp": ["192.0.2.2"],
        "dns": ["192.0.2.3"],
        "syslog": [{"address": "192.0.2.4"}, {"address": "192.0.2.5", "port": 6514, "protocol": "tcp"}],
        "snmp": {
            "user": "watcher",
            "auth_secret": "SNMP_AUTH",
            "priv_secret": "SNMP_PRIV",
            "location": "row 3",
            "contact": "noc",
        },
        "login": {"user": "netkit", "password_hash_secret": "LOGIN_HASH"},
    },
    "names": {"leaf": "leaf{number:02}", "spine": "spine{slot:02}", "host": "gpu{number:02}"},
}

ON_PLATFORM: dict[str, dict[str, dict[str, str]]] = {
    "nvue": {"leaf": {"model": "SN5600", "platform": "nvue"}, "spine": {"model": "SN5600", "platform": "nvue"}},
    "sonic": {"leaf": {"model": "SN5600", "platform": "sonic"}, "spine": {"model": "SN5600", "platform": "sonic"}},
    "eos": {
        "leaf": {"model": "DCS-7060X6-64PE", "platform": "eos"},
        "spine": {"model": "DCS-7060X6-64PE", "platform": "eos"},
    },
    "frr": {"leaf": {"model": "SN5600", "platform": "frr"}, "spine": {"model": "SN5600", "platform": "frr"}},
}


STORAGE: dict[str, Any] = {
    "name": "storage",
    "switches": {
        "model": "SN4600C",
        "platform": "nvue",
        "version": "5.16.1",
        "breakout": "1x100G",
        "asn": 4_200_090_000,
        "loopback": "10.254.0.1",
        "management": "192.0.2.250",
        "peer_cable": {"media": "100G-DAC", "length_m": 1},
    },
    "vlans": [{"number": 200, "prefix": "10.200.0.0/22"}, {"number": 201}],
    "hosts": {"interfaces": ["nic0", "nic1"], "routes": ["10.201.0.0/16"], "media": "100G-DAC", "length_m": 3},
    "servers": [{"name": "nas1", "ports": ["swp45"]}],
}

STORAGE_PEER = {
    "name": "isp-a",
    "device": "storage01",
    "port": "swp40",
    "address": "203.0.113.1/31",
    "peer": "203.0.113.0",
    "asn": 64512,
    "announce": ["10.200.0.0/22"],
}


def storage(**given: Any) -> dict[str, Any]:
    """The values of a storage network on a pair of switches, with some changed."""
    nested = {key: {**STORAGE[key], **given.get(key, {})} for key in ("switches", "hosts")}
    return {**copy.deepcopy(STORAGE), **given, **nested}


def storage_eos(**given: Any) -> dict[str, Any]:
    """The same on switches with EOS."""
    hardware = {"model": "DCS-7060X6-64PE", "platform": "eos", "version": "4.35.1F", "breakout": "2x400G"}
    cable = {"peer_cable": {"media": "400G-DAC", "length_m": 1}}
    servers = [{"name": "nas1", "ports": ["Ethernet45/1"]}]
    own = {
        "switches": {**hardware, **cable, **given.get("switches", {})},
        "hosts": {"media": "400G-DAC", **given.get("hosts", {})},
    }
    return storage(**{"servers": servers, **given, **own})


EOS_PEER = {**STORAGE_PEER, "port": "Ethernet40/1"}


def values(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The small intent's values with nested changes merged in; a value of None removes the key."""
    merged = copy.deepcopy(BASE)
    merge(merged, changes or {})
    return merged


def on_platform(platform: str, version: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The small intent's values with every switch on one platform and version."""
    tiers: dict[str, Any] = {role: {**tier, "version": version} for role, tier in ON_PLATFORM[platform].items()}
    merged = values({"switches": tiers, **({"purpose": "lab"} if platform == "frr" else {})})
    merge(merged, changes or {})
    return merged


def three_tiers(planes: int = 2, spines: int = 2, cores: int = 1) -> dict[str, Any]:
    """Changes for two pods of two rails; each spine is in a plane, which has cores of its own."""
    core = {"model": "SN5600", "platform": "frr", "version": "8.4.4", "breakout": "2x400G"}
    return {
        "topology": "three-tier",
        "ceilings": {"pods": 2, "units": 2, "spines": 2, "cores": 2},
        "units": [{"pod": "1-2", "unit": 1, "hosts": 1}],
        "switches": {
            "spine": {"slots": spines, "uplink_breakout": "2x400G"},
            "core": {**core, "planes": planes, "slots": cores},
        },
        "cables": {"core": {"media": "800G-2xSR4", "length_m": 20}},
        "names": {
            "leaf": "p{pod}r{rail}",
            "spine": "p{pod}s{slot}",
            "core": "c{plane}x{slot}",
            "host": "gpu{number:02}",
        },
    }


def fabric(given: Mapping[str, Any]) -> Fabric:
    """The fabric of an intent given as plain values."""
    return design.build(Intent.model_validate(given), Catalog())


def merge(base: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if value is None:
            base.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = copy.deepcopy(value)
