"""Where a device is managed, and by what it is opened."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Transport = Literal["ssh", "eapi", "nvue-rest"]


@dataclass(frozen=True, slots=True)
class GnmiEndpoint:
    """Where the gNMI server of a device listens; port 0 when it offers none."""

    port: int = 0
    certificate: str = ""
    """The SHA-256 fingerprint it is pinned to."""
    is_wanted: bool = False
    """Whether access.yaml speaks of it, and so its certificate is to be trusted."""
    password: str = field(default="", repr=False)
    """Where it takes another than the one the device is driven by."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """All that is needed to connect to one device. The password is never part of its text."""

    device: str
    platform: str
    """A platform's name; `linux` for hosts."""
    host: str
    port: int
    user: str
    transport: str = "ssh"
    password: str = ""
    key_file: Path | None = None
    known_hosts: Path | None = None
    ssh_config: Path | None = None
    certificate: str = ""
    """The SHA-256 fingerprint that HTTPS is pinned to; empty to verify it by the system's authorities."""
    timeout_s: float = 30.0
    snmp_port: int = 161
    gnmi: GnmiEndpoint = GnmiEndpoint()

    def __repr__(self) -> str:
        return f"Endpoint({self.device}, {self.transport}://{self.user}@{self.host}:{self.port})"
