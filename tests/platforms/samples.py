"""Rendered files of small fabrics, for tests that parse configurations."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from netkit.design import Fabric
from netkit.design.fabric import Host, Switch
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Files
from netkit.render import Engine, render
from tests import intents

ENGINE = Engine()
VERSIONS = {
    "nvue": ("5.14.0", "5.16.1"),
    "sonic": ("202411", "202511"),
    "eos": ("4.32.3F", "4.35.1F"),
    "frr": ("8.4.4", "10.2"),
}
EVERYTHING = {
    "attachment": "vlan",
    "adaptive_routing": True,
    "lossless": {"ecn": {400: {"min_bytes": 200_000, "max_bytes": 900_000}}},
    "overrides": {"spine01": {"drain": True}, "leaf01": {"drain_neighbors": ["spine02"]}},
}


def files_of(fabric: Fabric) -> dict[str, Files]:
    """The files of every device, without those that are only documentation and never in a plan."""
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    return {found.device: dict(found.files) for found in render(fabric, devices, ENGINE)}


@lru_cache
def samples(platform: str) -> Mapping[str, Files]:
    """The files of all devices of a platform, for two releases and with few and many features."""
    return dict(_samples(platform))


def _samples(platform: str) -> Iterator[tuple[str, Files]]:
    on = "nvue" if platform == "linux" else platform
    for version in VERSIONS[on]:
        for label, changes in (("plain", {}), ("full", EVERYTHING)):
            is_lean = on in {"frr", "sonic"} and label == "full"
            given = {key: value for key, value in changes.items() if not is_lean or key != "adaptive_routing"}
            fabric = intents.fabric(intents.on_platform(on, version, given))
            hosts = {host.name for host in fabric.hosts}
            for name, files in files_of(fabric).items():
                if (name in hosts) == (platform == "linux"):
                    compared = {file: text for file, text in files.items() if MODELS[platform].reads(file)}
                    yield f"{version}/{label}/{name}", compared


def all_samples() -> list[tuple[str, str]]:
    """Every platform with the name of each of its samples."""
    found = [(platform, name) for platform in MODELS for name in samples(platform)]
    assert len(found) >= 20 * len(MODELS)
    return found
