"""SONiC data of a switch model, typed. Missing data are refused, never invented."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from netkit.errors import Problem, RenderError
from netkit.hardware import Split, SwitchModel
from netkit.platforms.platform import version_key

NEEDED = ("hwsku", "platform", "buffer_model", "alias", "subport_alias", "lanes", "port_index_base", "buffer_pools")
REGULAR = "regular"
LETTERS = "abcdefgh"


@dataclass(frozen=True, slots=True)
class Pool:
    """A buffer pool as the vendor's image configures it."""

    size_bytes: int
    shared_headroom_bytes: int
    mode: str


@dataclass(frozen=True, slots=True)
class BufferPools:
    """The buffer pools of a model. Without lossy pools lossy traffic uses the lossless ones."""

    ingress_lossless: Pool
    egress_lossless: Pool
    lossy_static_th: int
    egress_lossy_bytes: int


@dataclass(frozen=True, slots=True)
class SonicHardware:
    """Names and numbers of a model in SONiC."""

    hwsku: str
    platform: str
    is_dynamic: bool
    alias: str
    subport_alias: str
    lanes: tuple[tuple[str, ...], ...]
    port_index_base: int
    breakout_modes: Mapping[str, str]
    pools: BufferPools

    def port_alias(self, split: Split, cage: int, port: int) -> str:
        """The front-panel name, which is also the LLDP port ID."""
        return port_alias(self.alias if split.ports == 1 else self.subport_alias, cage, port, split.lanes_per_port)

    def port_lanes(self, split: Split, cage: int, port: int) -> str:
        first = port * split.lanes_per_port
        return ",".join(self.lanes[cage - 1][first : first + split.lanes_per_port])

    def breakout_mode(self, split: Split) -> str:
        """The breakout as platform.json has it; without data, the plain form."""
        return self.breakout_modes.get(split.mode, split.mode)


def port_alias(pattern: str, cage: int, port: int, lanes_per_port: int) -> str:
    """The alias of a port by the pattern of its model: {lane} is the port's first lane in the cage, from 1."""
    return pattern.format(cage=cage, letter=LETTERS[port], sub=port + 1, lane=1 + port * lanes_per_port)


def missing(model: SwitchModel, version: str) -> tuple[str, ...]:
    """List the keys that a model's data file lacks for rendering a branch."""
    data = {**model.platforms.get("sonic", {}), "hwsku": _hwsku(model, version)}
    return tuple(key for key in NEEDED if data.get(key) is None)


def _hwsku(model: SwitchModel, version: str) -> str | None:
    """The hwsku of a model; if there is one per branch, that of the newest branch that is not newer."""
    hwsku = model.platforms.get("sonic", {}).get("hwsku")
    if not isinstance(hwsku, Mapping):
        return hwsku
    branches = (branch for branch in hwsku if version_key(str(branch)) <= version_key(version))
    return hwsku.get(max(branches, default=None))


def hardware(model: SwitchModel, version: str) -> SonicHardware:
    """The SONiC data of a model; raises RenderError if some are missing."""
    lacks, hwsku = missing(model, version), _hwsku(model, version)
    if lacks or hwsku is None:
        raise RenderError(
            Problem(
                f"no source documents what SONiC {version} on {model.name} needs: {', '.join(lacks)}",
                f"put the values from your image into models/switches/{model.name}.yaml, under platforms.sonic",
            )
        )
    data = model.platforms["sonic"]
    pools = data["buffer_pools"]
    return SonicHardware(
        hwsku=hwsku,
        platform=data["platform"],
        is_dynamic=data["buffer_model"] == "dynamic",
        alias=data["alias"],
        subport_alias=data["subport_alias"],
        lanes=_regular_lanes(model.cages, model.lanes_per_cage)
        if data["lanes"] == REGULAR
        else tuple(tuple(cage.split(",")) for cage in data["lanes"]),
        port_index_base=data["port_index_base"],
        breakout_modes=data.get("breakout_modes") or {},
        pools=BufferPools(
            ingress_lossless=_pool(pools["ingress_lossless"]),
            egress_lossless=_pool(pools["egress_lossless"]),
            lossy_static_th=pools.get("lossless_static_th") or 0,
            egress_lossy_bytes=pools.get("egress_lossy_bytes") or 0,
        ),
    )


@lru_cache(maxsize=32)
def _regular_lanes(cages: int, count: int) -> tuple[tuple[str, ...], ...]:
    """Count lanes through, from cage to cage."""
    return tuple(tuple(str(lane) for lane in range(count * cage, count * (cage + 1))) for cage in range(cages))


def _pool(data: Mapping[str, Any]) -> Pool:
    return Pool(data["size"], data.get("xoff") or 0, data["mode"])
