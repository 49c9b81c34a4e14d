"""Fabrics with a Slurm cluster, and the files rendered for it."""

from collections.abc import Mapping
from typing import Any

from netkit.design import Fabric
from netkit.design.clusters import SlurmCluster
from netkit.render import Engine, render_clusters
from tests import intents

SWITCH = {"model": "SN5600", "platform": "nvue", "version": "5.16.1"}
THREE_TIERS: dict[str, Any] = {
    "topology": "three-tier",
    "ceilings": {"pods": 3, "units": 4, "hosts_per_unit": 4, "spines": 4, "cores": 2},
    "switches": {
        "spine": {"uplink_breakout": "2x400G"},
        "core": {**SWITCH, "breakout": "2x400G", "slots": 1, "planes": 2},
    },
    "cables": {"core": {"media": "800G-2xDR4", "length_m": 40}},
    "names": {"spine": "spine{number:02}", "core": "core{number:02}"},
    "units": [{"pod": "1-2", "unit": "1-2", "hosts": 2}],
}
RAIL_ONLY: dict[str, Any] = {
    "topology": "rail-only",
    "cross_rail": "blocked",
    "ceilings": {"units": 1, "hosts_per_unit": 4, "spines": 0},
    "switches": {"spine": None, "leaf": {"uplink_breakout": None}},
    "cables": {"spine": None},
    "names": {"spine": None},
    "units": [{"unit": 1, "hosts": 3}],
}
SHAPES: dict[str, dict[str, Any]] = {
    "two-tier": {"overrides": {"gpu01": {"rack": "R1"}, "gpu02": {"rack": "R2"}, "gpu05": {"rack": "R1"}}},
    "three-tier": THREE_TIERS,
    "rail-only": RAIL_ONLY,
}
FULL = {"cpus": 224, "memory_mb": 2_000_000, "gpu_type": "h100"}


def built(shape: str, settings: Mapping[str, Any]) -> Fabric:
    return intents.fabric(intents.values({**SHAPES[shape], "clusters": {"slurm": dict(settings)}}))


def cluster_of(fabric: Fabric) -> SlurmCluster:
    (cluster,) = fabric.clusters
    assert isinstance(cluster, SlurmCluster)
    return cluster


def files_of(fabric: Fabric) -> dict[str, str]:
    (rendered,) = render_clusters(fabric, fabric.clusters, Engine())
    return dict(rendered.files)
