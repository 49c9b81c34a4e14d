"""Values for the files of a Slurm cluster: nodes, topology and GPUs, and what slurm.conf needs for them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, product

from netkit.design.clusters import BLOCKS, UNEQUAL_BLOCKS, SlurmCluster, SlurmNode
from netkit.design.fabric import Fabric
from netkit.render.output import Artifact

NUMBERED = re.compile(r"(.*[^0-9])([0-9]{1,9})")


def fold(names: Iterable[str]) -> str:
    """Write names as a hostlist, in their order. Slurm allows a number in brackets only at the end of a name."""
    split = (NUMBERED.fullmatch(name) or (name, name, "") for name in names)
    return ",".join(
        prefix if is_plain else _bracketed(prefix, [found[2] for found in group])
        for (prefix, is_plain), group in groupby(split, lambda found: (found[1], not found[2]))
    )


def _bracketed(prefix: str, numbers: Iterable[str]) -> str:
    ranges: list[tuple[str, str]] = []
    for number in numbers:
        if ranges and number == _after(*ranges[-1]):
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    parts = [first if first == last else f"{first}-{last}" for first, last in ranges]
    return f"{prefix}{parts[0]}" if parts == [ranges[0][0]] else f"{prefix}[{','.join(parts)}]"


def _after(first: str, last: str) -> str:
    """The number that continues a range; the width of its first number holds for all."""
    return f"{int(last) + 1:0{len(first)}}"


def expand(text: str) -> Iterator[str]:
    """Yield the names of a hostlist."""
    for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        parts = re.split(r"\[([^\]]*)\]", name)
        choices = [[*_numbers(part)] if place % 2 else [part] for place, part in enumerate(parts)]
        yield from map("".join, product(*choices))


def _numbers(ranges: str) -> Iterator[str]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        yield from (f"{number:0{len(first)}}" for number in range(int(first), int(last or first) + 1))


SWITCH_RANK, BLOCK_RANK = (23, 2), (25, 11)
"""The first releases with TopologyParam=SwitchAsNodeRank, and with BlockAsNodeRank."""
NVIDIA_DETECTION = (24, 11)
"""The first release that finds NVIDIA GPUs without a library of the vendor."""
YAML = (25, 5)
"""The first release that reads topology.yaml, and leaves topology.conf unread where there is one."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that share a line of nodes.conf."""

    nodes: str
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A line of the topology; each of its lists is a hostlist or empty."""

    name: str
    nodes: str
    switches: str


@dataclass(frozen=True, slots=True)
class SlurmView:
    """Values for all templates of a cluster."""

    fabric: str
    partition: str
    version: str
    cpus: int | None
    memory_mb: int | None
    nodes: str
    groups: tuple[NodeGroup, ...]
    gpus: str
    """The GPUs of a node, as Gres has them."""
    gpu_type: str | None
    gpu_files: str
    is_detected: bool
    """Whether slurmd compares the device files with the GPUs that it finds."""
    plugin: str
    has_topology_yaml: bool
    parameter: str
    """TopologyParam; empty: none."""
    switches: tuple[Group, ...]
    block_sizes: tuple[int, ...]
    block_levels: tuple[int, ...]
    """Slurm 23.11 counts the same in doublings; empty: block_sizes has them."""


def artifacts(fabric: Fabric, cluster: SlurmCluster) -> Iterator[Artifact]:
    """Yield the files of a cluster."""
    context = {"slurm": view(fabric, cluster)}
    topology = "topology.yaml" if context["slurm"].has_topology_yaml else "topology.conf"
    for file in ("nodes.conf", "fabric.conf", "gres.conf", topology):
        yield Artifact(file, f"slurm/{file}.j2", context)


def view(fabric: Fabric, cluster: SlurmCluster) -> SlurmView:
    settings, release = cluster.settings, cluster.release
    gpus = cluster.nodes[0].host.model.gpus
    is_block = settings.topology == "block"
    rank, since = ("BlockAsNodeRank", BLOCK_RANK) if is_block else ("SwitchAsNodeRank", SWITCH_RANK)
    counts_levels = is_block and BLOCKS <= release < UNEQUAL_BLOCKS
    return SlurmView(
        fabric=fabric.name,
        partition=settings.partition,
        version=settings.version,
        cpus=settings.cpus,
        memory_mb=settings.memory_mb,
        nodes=fold(node.name for node in cluster.nodes),
        groups=tuple(_groups(cluster.nodes)),
        gpus=gres(cluster),
        gpu_type=settings.gpu_type,
        gpu_files=fold(f"/dev/nvidia{number}" for number in range(gpus)),
        is_detected=release >= NVIDIA_DETECTION,
        plugin=f"topology/{settings.topology}",
        has_topology_yaml=release >= YAML,
        parameter=rank if release >= since else "",
        switches=tuple(
            Group(switch.name, fold(switch.nodes), fold(switch.switches))
            for switch in (cluster.units if is_block else cluster.switches)
        ),
        block_sizes=cluster.block_sizes if is_block else (),
        block_levels=tuple((size // cluster.block_sizes[0]).bit_length() - 1 for size in cluster.block_sizes)
        if counts_levels
        else (),
    )


def _groups(nodes: tuple[SlurmNode, ...]) -> Iterator[NodeGroup]:
    """Yield runs of nodes with the same features: Slurm takes nodes of consecutive lines for neighbours."""
    for features, group in groupby(nodes, lambda node: node.features):
        yield NodeGroup(fold(node.name for node in group), features)


def gres(cluster: SlurmCluster) -> str:
    """The GPUs of a node, as Gres has them."""
    kind = f":{cluster.settings.gpu_type}" if cluster.settings.gpu_type else ""
    return f"gpu{kind}:{cluster.nodes[0].host.model.gpus}"
