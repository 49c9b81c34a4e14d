"""Snapshots of a fabric, and results of acceptance runs: collectives, RDMA between two NICs, or TCP streams."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from netkit.facts.cluster import ClusterFacts
from netkit.facts.counter import Sample
from netkit.facts.device import Facts


@dataclass(frozen=True, slots=True)
class Collective:
    """One message size of a collective; None where it was not measured."""

    size_bytes: int
    out_of_place_gbytes_s: float | None = None
    """Bus bandwidth: the load of every link, independent of the number of ranks."""
    in_place_gbytes_s: float | None = None
    wrong: int | None = None
    """Number of wrong values, out of place and in place together."""

    @property
    def bus_gbytes_s(self) -> float | None:
        """The lower bus bandwidth of out of place and in place."""
        known = [one for one in (self.out_of_place_gbytes_s, self.in_place_gbytes_s) if one is not None]
        return min(known, default=None)


@dataclass(frozen=True, slots=True)
class Transfer:
    """One message size between two NICs: bandwidth, or latency."""

    size_bytes: int
    mean_gbps: float | None = None
    peak_gbps: float | None = None
    least_us: float | None = None
    typical_us: float | None = None
    mean_us: float | None = None
    p99_us: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """Streams of one process, all with the same DSCP."""

    dscp: int | None
    gbps: float
    seconds: float
    protocol: str = ""
    retransmits: int | None = None
    lost_percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of one tool; only the kind of results that it measures is filled."""

    tool: str
    """nccl-tests, perftest or iperf3."""
    test: str = ""
    """The program, such as all_reduce_perf; empty if unknown."""
    file: str = ""
    at_s: float | None = None
    """Start, in seconds since the epoch."""
    ends: tuple[str, ...] = ()
    """Hosts, or addresses of their NICs; of two, the sender is first."""
    version: str = ""
    failure: str = ""
    """Why it did not complete; empty if it did."""
    ranks: int = 0
    groups: int = 1
    """Number of independent collectives the ranks were split into, such as one for each rail."""
    nic: str = ""
    """RDMA device or interface at the first end."""
    is_both_ways: bool = False
    collectives: tuple[Collective, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    streams: tuple[Stream, ...] = ()
    mean_gbytes_s: float | None = None
    """nccl-tests' average over all sizes, which is only meaningful for a single size."""
    out_of_bounds: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The facts and samples of one device."""

    device: str
    platform: str
    facts: Facts = field(default_factory=Facts)
    samples: tuple[Sample, ...] = ()
    """Counter samples, earliest first; the last one is also in the facts."""
    failure: str = ""
    """Why it could not be read; empty if it was reached."""
    seconds: float = 0.0
    """How long it took to read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The observed state of a fabric."""

    fabric: str
    taken_s: float
    """Time of completion, in seconds since the epoch."""
    devices: Mapping[str, Observation]
    plan: str = ""
    """Drift between running and intended configuration, as a plan file; empty if it was not read."""
    trials: tuple[Trial, ...] = ()
    """Results of acceptance runs, if provided."""
    cluster: ClusterFacts | None = None
    """What a Kubernetes cluster on the hosts was seen to have; None if none was read."""
