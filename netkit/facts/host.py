"""Facts about BGP sessions, routes, NICs and hosts."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BgpSession:
    """A BGP session, by the interface it runs on; None where the device does not expose a value."""

    is_established: bool
    state: str = ""
    peer_asn: int | None = None
    received_prefixes: int | None = None
    sent_prefixes: int | None = None
    uptime_s: float | None = None
    drops: int | None = None
    """How often it went down, since counting began."""
    is_bfd_up: bool | None = None
    is_draining: bool | None = None
    """Whether this end signals graceful shutdown."""


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A default route in a host's main table."""

    interface: str
    gateway: str = ""
    metric: int = 0
    """The lowest of one family wins."""
    family: int = 4
    """IP version."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The result of a route lookup in a host's kernel."""

    source: str
    interface: str
    destination: str
    out_interface: str = ""
    gateway: str = ""
    failure: str = ""
    """Why there is no route; empty if there is one."""


@dataclass(frozen=True, slots=True)
class NicFacts:
    """One NIC of a host; None or empty where a value is not exposed."""

    interface: str
    pci: str
    rdma: str = ""
    part: str = ""
    psid: str = ""
    firmware: str = ""
    driver: str = ""
    driver_version: str = ""
    pci_gt_s: float | None = None
    pci_width: int | None = None
    pci_full_gt_s: float | None = None
    """Maximum of slot and card."""
    pci_full_width: int | None = None
    read_request_bytes: int | None = None
    has_relaxed_ordering: bool | None = None
    active_mtu_bytes: int | None = None
    roce_gid_index: int | None = None
    """Index of the RoCEv2 GID of its IPv4 address."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Firmware settings (mlxconfig): name → current value."""
    next_settings: Mapping[str, str] = field(default_factory=dict)
    """Firmware settings after the next boot."""
    numa: int | None = None
    is_adaptive_routing_forced: bool | None = None
    """Whether it requests adaptive routing for all its RoCE packets (register ROCE_ACCL)."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Facts about a host itself."""

    sysctls: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Interface → addresses with prefix length, of all interfaces, without link-local ones."""
    default_routes: tuple[DefaultRoute, ...] | None = None
    """None if they could not be read."""
    bridges_with_acs: tuple[str, ...] | None = None
    """PCI bridges on which ACS redirects; None if it could not be read."""
    is_iommu_on: bool | None = None
    gpu_pcis: tuple[str, ...] = ()
    nearest_nic: Mapping[str, str] = field(default_factory=dict)
    """PCI address of a GPU → interface of the NIC that shares a PCIe switch with it."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Name → version of relevant packages, such as the driver; empty if it could not be read."""
    nccl: Mapping[str, str] | None = None
    """Settings in NCCL's file; empty without a file, None if it could not be read."""
