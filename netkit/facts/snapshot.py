"""What an acceptance run measured: collectives of many GPUs, RDMA between two NICs, or shares of several streams."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from netkit.facts.counter import Sample
from netkit.facts.device import Facts


@dataclass(frozen=True, slots=True)
class Collective:
    """One message size of a collective; None where it was not measured."""

    size_bytes: int
    out_of_place_gbytes_s: float | None = None
    """Bus bandwidth: what every link carries, whatever the number of ranks."""
    in_place_gbytes_s: float | None = None
    wrong: int | None = None
    """Values that came out wrong, in both ways together."""

    @property
    def bus_gbytes_s(self) -> float | None:
        """Return the lower bus bandwidth of both ways."""
        told = [one for one in (self.out_of_place_gbytes_s, self.in_place_gbytes_s) if one is not None]
        return min(told, default=None)


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
    """Streams of one process, all marked alike."""

    dscp: int | None
    gbps: float
    seconds: float
    protocol: str = ""
    retransmits: int | None = None
    lost_percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of one tool. Of what it measured, only that of its own kind is there."""

    tool: str
    """nccl-tests, perftest or iperf3."""
    test: str = ""
    """The program, such as all_reduce_perf; empty when nothing tells."""
    file: str = ""
    at_s: float | None = None
    """When it began, in seconds of the epoch."""
    ends: tuple[str, ...] = ()
    """Hosts, or addresses of their NICs; of two, the one that sends is first."""
    version: str = ""
    failure: str = ""
    """Why it did not come to its end; empty when it did."""
    ranks: int = 0
    groups: int = 1
    """Into how many collectives of their own the ranks were split, such as one for each rail."""
    nic: str = ""
    """RDMA device or interface it ran on, at the first end."""
    is_both_ways: bool = False
    collectives: tuple[Collective, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    streams: tuple[Stream, ...] = ()
    mean_gbytes_s: float | None = None
    """What nccl-tests averages over all sizes: it says little unless there was only one."""
    out_of_bounds: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of one device."""

    device: str
    platform: str
    facts: Facts = field(default_factory=Facts)
    samples: tuple[Sample, ...] = ()
    """Its counters, earliest first; the last one is also in the facts."""
    failure: str = ""
    """Why nothing was seen of it; empty when it was reached."""
    seconds: float = 0.0
    """How long it took to read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was seen of a fabric."""

    fabric: str
    taken_s: float
    """When it was complete, in seconds of the epoch."""
    devices: Mapping[str, Observation]
    plan: str = ""
    """What differs between running and intended configuration, as a plan file; empty when it was not looked at."""
    trials: tuple[Trial, ...] = ()
    """What acceptance runs measured; none unless somebody gave their results."""
