"""The ends of an acceptance run in the design, the rate of their NICs, and which runs compete."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from netkit.design import Fabric, Host, Nic
from netkit.design.layout import nic_distance
from netkit.facts.device import without_domain
from netkit.facts.snapshot import Collective, Stream, Trial

COLLECTIVE, TRANSFER, LOAD = "nccl-tests", "perftest", "iperf3"
LEAST_BYTES = 2**30
"""Of a collective; smaller messages measure latency."""
LEAST_TRANSFER_BYTES = 2**15
RING = ("", "all_reduce_perf", "all_gather_perf", "reduce_scatter_perf")
"""Collectives that reach the rate of the network; for others no number is known to be too low."""


@dataclass(frozen=True)
class CollectiveRate:
    """The largest message of a collective over several hosts, and what the NICs it used can carry."""

    trial: Trial
    row: Collective
    gbytes_s: float
    line_gbytes_s: float

    @property
    def hosts(self) -> int:
        return len(self.trial.ends)


def measured(fabric: Fabric, trial: Trial) -> CollectiveRate | str:
    """The largest message of a run, or why it does not measure the network."""
    rows = [row for row in trial.collectives if row.bus_gbytes_s is not None]
    if len(trial.ends) < 2:
        return "ran on one host only"
    if not rows or rows[-1].size_bytes < LEAST_BYTES:
        return "its largest message is too small to fill the links"
    used = max(1, trial.ranks // (len(trial.ends) * trial.groups)) if trial.ranks else len(fabric.rails)
    line = min(used, len(fabric.rails)) * slowest_gbps(fabric) / 8
    return CollectiveRate(trial, rows[-1], rows[-1].bus_gbytes_s or 0.0, line)


def slowest_gbps(fabric: Fabric) -> int:
    """The rate of the slowest NIC."""
    return min(port.speed_gbps for leaf in fabric.tier("leaf") for port in leaf.host_ports)


def line_gbps(fabric: Fabric, trial: Trial) -> int:
    """The rate of the NIC of a run, or of the slowest one if that is unknown."""
    found = nic_of(fabric, trial, 0)
    leaf = fabric.switch(found[1].leaf) if found else None
    ports = [port for port in leaf.ports if found and port.name == found[1].leaf_port] if leaf else []
    return ports[0].speed_gbps if ports else slowest_gbps(fabric)


def nic_of(fabric: Fabric, trial: Trial, end: int) -> tuple[Host, Nic] | None:
    """One end of a run as designed: by the address of its NIC, or by host and device."""
    name = trial.ends[end] if len(trial.ends) > end else ""
    owner = without_domain(name, fabric.device)
    for host in fabric.hosts:
        for nic in host.nics:
            is_device = host.name == owner and trial.nic and trial.nic in {nic.rdma, nic.interface}
            if nic.address == name or is_device:
                return host, nic
    return None


def place_of(fabric: Fabric, trial: Trial, end: int = 0) -> tuple[str, str]:
    """The device and port of one end of a run; empty if it is not in the design."""
    found = nic_of(fabric, trial, end)
    if found:
        return found[0].name, found[1].interface
    name = trial.ends[end] if len(trial.ends) > end else ""
    host = fabric.device(without_domain(name, fabric.device))
    return host.name if isinstance(host, Host) else "", ""


def distance(fabric: Fabric, trial: Trial) -> str:
    """The distance of the two ends of a run."""
    near, far = nic_of(fabric, trial, 0), nic_of(fabric, trial, 1)
    return nic_distance(fabric, near[1], far[1]) if near and far else "over an unknown distance"


def contests(trials: Iterator[Trial]) -> Iterator[Sequence[tuple[Trial, Stream]]]:
    """Yield groups of streams that competed for one NIC at the same time, two or more together."""
    by_end: dict[str, list[tuple[Trial, Stream]]] = {}
    for trial in trials:
        for stream in trial.streams:
            if len(trial.ends) == 2 and trial.at_s is not None:
                by_end.setdefault(trial.ends[1], []).append((trial, stream))
    for runs in by_end.values():
        together: list[tuple[Trial, Stream]] = []
        until_s = 0.0
        for trial, stream in sorted(runs, key=lambda run: run[0].at_s or 0.0):
            began_s = trial.at_s or 0.0
            if together and began_s >= until_s:
                yield together
                together = []
            together.append((trial, stream))
            until_s = max(until_s, began_s + stream.seconds)
        yield together
