"""The observed state of a Kubernetes cluster: objects, and the NICs of pods on rails."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PodNic:
    """An interface of a pod, as Multus reports it."""

    network: str
    interface: str
    addresses: tuple[str, ...] = ()
    pci: str = ""
    """Of the device behind it; empty if it is not reported."""


@dataclass(frozen=True, slots=True)
class PodRoute:
    """A route in a pod, of any of its tables."""

    prefix: str
    gateway: str
    interface: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that asks for networks of rails, and runs or waits on its node."""

    name: str
    """Namespace and name."""
    node: str
    wanted: tuple[str, ...] = ()
    """The networks that it asks for."""
    nics: tuple[PodNic, ...] = ()
    phase: str = "Running"
    since_s: float = 0.0
    """When the node accepted it, in seconds since the epoch; 0 if that is not reported."""
    waiting: str = ""
    """Why its containers wait, such as ContainerCreating."""
    routes: tuple[PodRoute, ...] | None = None
    """Its routes by a gateway; None if they were not read."""
    routes_failure: str = ""


@dataclass(frozen=True, slots=True)
class ObjectDrift:
    """An object that is missing, is not rendered any more, or differs from what is rendered."""

    name: str
    is_missing: bool = False
    values: tuple[str, ...] = ()
    """`path: before → after`."""
    is_left: bool = False


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a cluster was seen to have."""

    kind: str
    drift: tuple[ObjectDrift, ...] = ()
    compared: int = 0
    """How many objects were compared, those included that are not rendered any more."""
    pods: tuple[Pod, ...] = ()
    virtual: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Node → PCI address of a virtual function → that of its NIC."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Kinds that could not be read, and why."""
