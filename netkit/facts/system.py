"""What a device is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class System:
    """A device and what it runs. None and empty where it does not tell."""

    hostname: str = ""
    version: str = ""
    model: str = ""
    serial: str = ""
    uptime_s: float | None = None
    boot: str = ""
    """What changes with each boot, such as the kernel's boot id."""
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Interface:
    """One port or NIC."""

    is_up: bool | None = None
    is_enabled: bool | None = None
    speed_gbps: float | None = None
    mtu_bytes: int | None = None
    fec: str = ""
    """`rs`, `fc`, `none`, or as the device says it; empty when it does not tell."""
    mac: str = ""
    description: str = ""
    alias: str = ""
    """What the device calls the port beside, such as the name it announces to its neighbours."""
    link_up_s: float | None = None
    """How long the link took to come up the last time."""
    outage_s: float | None = None
    """How long the link was gone the last time; 0 when it was not, as far back as the device tells."""
    outage_ended_ago_s: float | None = None
    """How long ago it came back; None when it was not gone."""


@dataclass(frozen=True, slots=True)
class Neighbor:
    """Who is at the other end of a cable, by LLDP."""

    system: str
    port: str = ""
    """The port id the neighbor announces: a name, or the MAC address of a NIC."""
    description: str = ""
    """The port description: where the id is an address, often the interface name."""
    age_s: float | None = None


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system that the device, or whoever configures it, writes to."""

    size_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    """What is left for programs: what is kept for root is not."""
    files: int | None = None
    """How many files it can hold; not told where there is no such limit."""
    free_files: int | None = None
    is_read_only: bool | None = None
    kind: str = ""
    """Such as `ext4` or `tmpfs`."""
