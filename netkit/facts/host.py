"""Sessions and routes as a device sees them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BgpSession:
    """A BGP session, by the interface it runs on; None where the device does not tell."""

    is_established: bool
    state: str = ""
    peer_asn: int | None = None
    received_prefixes: int | None = None
    sent_prefixes: int | None = None
    uptime_s: float | None = None
    drops: int | None = None
    """How often it went down, since it is counted."""
    is_bfd_up: bool | None = None
    is_draining: bool | None = None
    """Whether this end asks the other one to go around it (graceful shutdown)."""


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A way of a host to everything it knows no better way to, in its main table."""

    interface: str
    gateway: str = ""
    metric: int = 0
    """Of several of one family the lowest holds."""
    family: int = 4
    """Version of the Internet Protocol."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a host's kernel answers when asked where a packet would go."""

    source: str
    interface: str
    destination: str
    out_interface: str = ""
    gateway: str = ""
    failure: str = ""
    """Why there is no way; empty when there is one."""


@dataclass(frozen=True, slots=True)
class NicFacts:
    """One NIC of a host, by the interface its PCI address has; None and empty where it is not told."""

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
    """What slot and card could do."""
    pci_full_width: int | None = None
    read_request_bytes: int | None = None
    has_relaxed_ordering: bool | None = None
    active_mtu_bytes: int | None = None
    roce_gid_index: int | None = None
    """Index of the RoCEv2 GID of its IPv4 address."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Firmware settings (mlxconfig): name → what is in force."""
    next_settings: Mapping[str, str] = field(default_factory=dict)
    """Firmware settings that hold from the next boot on."""
    numa: int | None = None
    is_adaptive_routing_forced: bool | None = None
    """Whether it asks for adaptive routing on all its RoCE packets (register ROCE_ACCL)."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The host itself."""

    sysctls: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Interface → addresses with prefix length, of all interfaces; those of one link left out."""
    default_routes: tuple[DefaultRoute, ...] | None = None
    """None when they could not be seen."""
    bridges_with_acs: tuple[str, ...] | None = None
    """PCI bridges on which ACS redirects; None when it could not be seen."""
    is_iommu_on: bool | None = None
    gpu_pcis: tuple[str, ...] = ()
    nearest_nic: Mapping[str, str] = field(default_factory=dict)
    """PCI address of a GPU → interface of the NIC that shares a PCIe switch with it."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Name → version of what is installed and matters, such as the driver package."""
    nccl: Mapping[str, str] | None = None
    """What NCCL's file sets for every job; empty when there is no file, None when it could not be seen."""
