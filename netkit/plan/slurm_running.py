"""A running Slurm cluster, from what scontrol prints, compared with its design."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from netkit.design.clusters import SlurmCluster, SlurmNode, TopologySwitch
from netkit.errors import PlanError, Problem
from netkit.render.slurm import expand, fold, gres

PAIR = re.compile(r"(?:^|(?<=\s))(\w+)=(\S*)")
FREE_TEXT = re.compile(r"(?:^|\s)(?:Comment|Extra|Reason)=")
REASON = re.compile(r"(?:^|\s)Reason=(.*?)(?: \[[^\[\]]*@[^\[\]]*\])?$")
SOCKETS = re.compile(r"\(S:[^)]*\)")
"""The CPU sockets of a resource, which a node reports."""
UNIT = re.compile(r"(pod\d+-)?unit\d+")
"""The feature that every designed node has."""
NO_TOPOLOGY = "No topology information available"

Kind = Literal["tree", "block", "none"]


@dataclass(frozen=True, slots=True)
class SlurmNodeState:
    """A node as slurmctld has it."""

    name: str
    gres: str
    features: tuple[str, ...]
    cpus: int
    memory_mb: int
    partitions: tuple[str, ...]
    states: tuple[str, ...]
    """Its base state and flags, such as IDLE and DRAIN."""
    reason: str


@dataclass(frozen=True, slots=True)
class RunningTopology:
    """The topology that slurmctld schedules by."""

    kind: Kind
    switches: tuple[TopologySwitch, ...]


@dataclass(frozen=True, slots=True)
class SlurmDifference:
    """A value of a node, a partition, a switch or block, or the topology; empty: it is not there."""

    kind: Literal["node", "partition", "switch", "topology"]
    name: str
    key: str
    running: str
    intended: str


def parse_nodes(text: str) -> tuple[SlurmNodeState, ...]:
    """Read `scontrol show nodes`, with or without `--oneliner`."""
    records = re.split(r"^(?=NodeName=)", text, flags=re.MULTILINE)[1:]
    if not records:
        raise _unreadable("nodes", text, "have scontrol show nodes print it")
    return tuple(map(_node, records))


def _node(record: str) -> SlurmNodeState:
    values: dict[str, str] = {}
    reason = ""
    for line in record.splitlines():
        free = FREE_TEXT.search(line)
        for key, value in PAIR.findall(line[: free.start()] if free else line):
            values.setdefault(key, value)
        if free and (found := REASON.search(line)):
            reason = found[1]
    try:
        return SlurmNodeState(
            name=values["NodeName"],
            gres=_known(SOCKETS.sub("", values["Gres"])),
            features=_list(values["AvailableFeatures"]),
            cpus=int(values["CPUTot"]),
            memory_mb=int(values["RealMemory"]),
            partitions=_list(values.get("Partitions", "")),
            states=tuple(re.findall(r"\w+", values["State"])),
            reason=reason,
        )
    except (KeyError, ValueError):
        raise _unreadable("nodes", record, "have scontrol show nodes print it") from None


def _known(value: str) -> str:
    return "" if value == "(null)" else value


def _list(value: str) -> tuple[str, ...]:
    return tuple(part for part in _known(value).split(",") if part)


def parse_topology(text: str) -> RunningTopology:
    """Read `scontrol show topology`. Blocks of blocks follow from the blocks and are left out."""
    if NO_TOPOLOGY in text or not text.strip():
        return RunningTopology("none", ())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("AggregatedBlock=")]
    kind: Kind = "block" if lines and lines[0].startswith("BlockName=") else "tree"
    name = "BlockName" if kind == "block" else "SwitchName"
    return RunningTopology(kind, tuple(_switch(name, line) for line in lines))


def _switch(name: str, line: str) -> TopologySwitch:
    """A switch with its own nodes; above the lowest tier, scontrol prints those of its children."""
    row = dict(PAIR.findall(line))
    if name not in row or any(value.count("[") != value.count("]") for value in row.values()):
        raise _unreadable("topology", line, "have scontrol show topology print it, with SLURM_TOPO_LEN unset")
    children = tuple(expand(_known(row.get("Switches", ""))))
    return TopologySwitch(row[name], () if children else tuple(expand(_known(row.get("Nodes", "")))), children)


def _unreadable(what: str, text: str, remedy: str) -> PlanError:
    first = next(iter(text.strip().splitlines()), "")[:60]
    return PlanError(Problem(f"not the {what} of a Slurm cluster: {first!r}", remedy))


def differences(
    cluster: SlurmCluster, nodes: Iterable[SlurmNodeState], topology: RunningTopology
) -> Iterator[SlurmDifference]:
    """Yield what differs from the design. Nodes outside its partition, and switches without its nodes, are others'."""
    running = {node.name: node for node in nodes}
    wanted, own = cluster.settings.partition, {feature for node in cluster.nodes for feature in node.features}
    has_partition = any(wanted in node.partitions for node in running.values())
    former = () if has_partition else tuple(_former_partitions(cluster, running.values()))
    for node in cluster.nodes:
        found = running.pop(node.name, None)
        if found is None:
            yield SlurmDifference("node", node.name, "NodeName", "", node.name)
        else:
            yield from _of_node(cluster, node, found, own)
            if has_partition and wanted not in found.partitions:
                yield SlurmDifference("node", node.name, "Partitions", ",".join(found.partitions), wanted)
    left = [node.name for node in running.values() if {wanted, *former} & {*node.partitions}]
    yield from (SlurmDifference("node", name, "NodeName", name, "") for name in left)
    if not has_partition:
        yield SlurmDifference("partition", wanted, "PartitionName", "", wanted)
        yield from (SlurmDifference("partition", name, "PartitionName", name, "") for name in former)
    if topology.kind != cluster.settings.topology:
        yield SlurmDifference("topology", "", "TopologyPlugin", topology.kind, cluster.settings.topology)
    yield from _of_topology(cluster, topology, left)


def _former_partitions(cluster: SlurmCluster, running: Collection[SlurmNodeState]) -> Iterator[str]:
    """Yield partitions like the designed one: with nodes of the design, and none without the feature of a unit."""
    designed = {node.name for node in cluster.nodes}
    for name in dict.fromkeys(name for node in running for name in node.partitions):
        members = [node for node in running if name in node.partitions]
        if not designed.isdisjoint(node.name for node in members) and all(
            any(map(UNIT.fullmatch, node.features)) for node in members
        ):
            yield name


def _gpus(resources: str) -> str:
    return ",".join(one for one in resources.split(",") if one.partition(":")[0] == "gpu")


def _of_node(cluster: SlurmCluster, node: SlurmNode, found: SlurmNodeState, own: set[str]) -> Iterator[SlurmDifference]:
    """Yield what differs on a node; features that no node is designed with (not in `own`) are the site's."""
    settings = cluster.settings
    compared = [("Gres", _gpus(found.gres), gres(cluster))]
    if {*found.features} & own != {*node.features}:
        compared.append(("Features", ",".join(sorted(found.features)), ",".join(sorted(node.features))))
    if settings.cpus is not None:
        compared.append(("CPUs", str(found.cpus), str(settings.cpus)))
    if settings.memory_mb is not None:
        compared.append(("RealMemory", str(found.memory_mb), str(settings.memory_mb)))
    for key, running, intended in compared:
        if running != intended:
            yield SlurmDifference("node", node.name, key, running, intended)


def _of_topology(cluster: SlurmCluster, topology: RunningTopology, left: Collection[str]) -> Iterator[SlurmDifference]:
    designed = cluster.units if cluster.settings.topology == "block" else cluster.switches
    running = {switch.name: switch for switch in topology.switches}
    for switch in designed:
        found = running.get(switch.name)
        if found is None:
            yield SlurmDifference("switch", switch.name, "SwitchName", "", switch.name)
            continue
        for key, here, wanted in (
            ("Nodes", found.nodes, switch.nodes),
            ("Switches", found.switches, switch.switches),
        ):
            if {*here} != {*wanted}:
                yield SlurmDifference("switch", switch.name, key, fold(here), fold(wanted))
    own, names = {*left, *(node.name for node in cluster.nodes)}, {switch.name for switch in designed}
    for extra in topology.switches:
        # A tier may also be the site's, above the fabric and others.
        below = {*_nodes_below(extra, running)}
        if extra.name not in names and (not own.isdisjoint(extra.nodes) or (below and below <= {*left})):
            yield SlurmDifference("switch", extra.name, "SwitchName", extra.name, "")


def _nodes_below(top: TopologySwitch, running: Mapping[str, TopologySwitch]) -> Iterator[str]:
    waiting, seen = [top], {top.name}
    while waiting:
        switch = waiting.pop()
        yield from switch.nodes
        waiting += [running[name] for name in switch.switches if name in running and name not in seen]
        seen.update(switch.switches)
