"""Typical changes of a fabric: what ran before, and what is intended now."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from netkit.design import Fabric
from netkit.plan import Running
from netkit.platforms.config import Files
from tests import intents
from tests.platforms.samples import files_of

VERSIONS = {"nvue": "5.16.1", "sonic": "202411", "eos": "4.35.1F", "frr": "8.4.4"}
ECN = {"lossless": {"ecn": {400: {"min_bytes": 200_000, "max_bytes": 900_000}}}}
BREAKOUT = {
    "switches": {"leaf": {"uplink_breakout": "1x800G"}, "spine": {"breakout": "1x800G"}},
    "cables": {"spine": {"media": "800G-DR8", "length_m": 20}},
}


@dataclass(frozen=True)
class Scene:
    """One kind of change: the intent before and after, and edits made on a device by hand."""

    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    by_hand: tuple[tuple[str, str, str], ...] = ()


SCENES = {
    "description": Scene(by_hand=(("leaf01", "gpu01:rail0", "spare"),)),
    "ecn-threshold": Scene(after=ECN),
    "new-spine": Scene(after={"switches": {"spine": {"slots": 3}}}),
    "removed-host": Scene(after={"units": [{"unit": "1-2", "hosts": 1}]}),
    "breakout": Scene(after=BREAKOUT),
    "new-unit": Scene(after={"units": [{"unit": "1-3", "hosts": 2}]}),
    "script": Scene(by_hand=(("gpu01", "set -u\n", "set -eu\n"), ("gpu01", "PRIORITY=3", "PRIORITY=4"))),
    "removed-rail": Scene(after={"rails": 1}),
    "host-mtu": Scene(after={"hosts": {"mtu_bytes": 4200}}),
    "only-spine": Scene(
        before={"switches": {"spine": {"slots": 1}}},
        after={"switches": {"spine": {"slots": 1}}, "pools": {"asn_base": 4_200_100_000}},
    ),
    "timers": Scene(after={"routing": {"keepalive_s": 5, "hold_s": 15}}),
    "asn": Scene(after={"pools": {"asn_base": 4_200_100_000}}),
}


@dataclass(frozen=True)
class Staged:
    """A scene on one platform."""

    fabric: Fabric
    running: dict[str, Running]
    intended: dict[str, Files]


def staged(platform: str, name: str) -> Staged:
    """A scene on a platform, with the devices of both fabrics only."""
    scene, version = SCENES[name], VERSIONS[platform]
    before = files_of(intents.fabric(intents.on_platform(platform, version, scene.before)))
    fabric = intents.fabric(intents.on_platform(platform, version, scene.after))
    intended = files_of(fabric)
    running = {device: dict(files) for device, files in before.items() if device in intended}
    for device, text, other in scene.by_hand:
        running[device] = {file: content.replace(text, other) for file, content in running[device].items()}
    return Staged(fabric, {device: Running(files, version) for device, files in running.items()}, intended)
