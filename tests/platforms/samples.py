"""Rendered files of small fabrics, for tests that parse configurations."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import product

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
    reads = MODELS[platform].reads
    found = {
        f"{kind}/{rendered.device}": {file: text for file, text in rendered.files.items() if reads(file)}
        for kind, fabric in _fabrics(platform).items()
        for rendered in render(fabric, _devices(platform, fabric), ENGINE)
    }
    assert list(found) == names(platform)
    return found


@lru_cache
def _fabrics(platform: str) -> Mapping[str, Fabric]:
    """The fabrics by release and features."""
    on = "nvue" if platform == "linux" else platform
    found = {}
    for version, (label, changes) in product(VERSIONS[on], (("plain", {}), ("full", EVERYTHING))):
        is_lean = on in {"frr", "sonic"} and label == "full"
        given = {key: value for key, value in changes.items() if not is_lean or key != "adaptive_routing"}
        found[f"{version}/{label}"] = intents.fabric(intents.on_platform(on, version, given))
    return found


def _devices(platform: str, fabric: Fabric) -> tuple[Switch | Host, ...]:
    return fabric.hosts if platform == "linux" else fabric.switches


def names(platform: str) -> list[str]:
    """The names of the samples of a platform, which is less work than to render them."""
    return [
        f"{kind}/{device.name}" for kind, fabric in _fabrics(platform).items() for device in _devices(platform, fabric)
    ]


def all_samples() -> list[tuple[str, str]]:
    """Every platform with the name of each of its samples."""
    found = [(platform, name) for platform in MODELS for name in names(platform)]
    assert len(found) >= 20 * len(MODELS)
    return found
