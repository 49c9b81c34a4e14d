"""What a switch model's data file says for SONiC, typed. What it does not say is refused, never invented."""

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
    """A buffer pool as the image of the model configures it."""

    size_bytes: int
    shared_headroom_bytes: int
    mode: str


@dataclass(frozen=True, slots=True)
class BufferPools:
    """The buffer pools of a model. Where it has no lossy ones, lossy traffic lives in the lossless ones."""

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
        """Return the front-panel name, which is also what LLDP sends as port ID."""
        pattern = self.alias if split.ports == 1 else self.subport_alias
        return pattern.format(cage=cage, letter=LETTERS[port], sub=port + 1)

    def port_lanes(self, split: Split, cage: int, port: int) -> str:
        """Return the lanes of one port of a cage."""
        first = port * split.lanes_per_port
        return ",".join(self.lanes[cage - 1][first : first + split.lanes_per_port])

    def breakout_mode(self, split: Split) -> str:
        """Return the breakout as platform.json writes it; where the data do not tell, the plain form."""
        return self.breakout_modes.get(split.mode, split.mode)


def missing(model: SwitchModel, version: str) -> tuple[str, ...]:
    """Return what a model's data must say, and does not, before a SONiC branch can be rendered for it."""
    data = {**model.platforms.get("sonic", {}), "hwsku": _hwsku(model, version)}
    return tuple(key for key in NEEDED if data.get(key) is None)


def _hwsku(model: SwitchModel, version: str) -> str | None:
    """Return the layout a branch has for a model: of several by branch, the newest that is not newer."""
    given = model.platforms.get("sonic", {}).get("hwsku")
    if not isinstance(given, Mapping):
        return given
    branches = (branch for branch in given if version_key(str(branch)) <= version_key(version))
    return given.get(max(branches, default=None))


def hardware(model: SwitchModel, version: str) -> SonicHardware:
    """Return the SONiC part of a model, or say what it lacks."""
    lacks, hwsku = missing(model, version), _hwsku(model, version)
    if lacks or hwsku is None:
        raise RenderError(
            Problem(
                f"no source tells what SONiC {version} on {model.name} needs: {', '.join(lacks)}",
                f"put the values from your image into models/switches/{model.name}.yaml, under platforms.sonic",
            )
        )
    data = model.platforms["sonic"]
    return SonicHardware(
        hwsku=hwsku,
        platform=data["platform"],
        is_dynamic=data["buffer_model"] == "dynamic",
        alias=data["alias"],
        subport_alias=data["subport_alias"],
        lanes=_lanes(
            model.cages, model.lanes_per_cage, data["lanes"] if data["lanes"] == REGULAR else tuple(data["lanes"])
        ),
        port_index_base=data["port_index_base"],
        breakout_modes=data.get("breakout_modes") or {},
        pools=_pools(data["buffer_pools"]),
    )


@lru_cache(maxsize=32)
def _lanes(cages: int, count: int, given: str | tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the lanes of each cage; regular ones count on from cage to cage."""
    if given == REGULAR:
        return tuple(tuple(str(lane) for lane in range(count * cage, count * (cage + 1))) for cage in range(cages))
    return tuple(tuple(cage.split(",")) for cage in given)


def _pools(data: Mapping[str, Any]) -> BufferPools:
    return BufferPools(
        ingress_lossless=_pool(data["ingress_lossless"]),
        egress_lossless=_pool(data["egress_lossless"]),
        lossy_static_th=data.get("lossless_static_th") or 0,
        egress_lossy_bytes=data.get("egress_lossy_bytes") or 0,
    )


def _pool(data: Mapping[str, Any]) -> Pool:
    return Pool(data["size"], data.get("xoff") or 0, data["mode"])
