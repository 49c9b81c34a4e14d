"""The management address of a device, and what opens a connection to it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Transport = Literal["ssh", "eapi", "nvue-rest"]


@dataclass(frozen=True, slots=True)
class GnmiEndpoint:
    """The gNMI server of a device; port 0 if it has none."""

    port: int = 0
    certificate: str = ""
    """The pinned SHA-256 fingerprint."""
    is_wanted: bool = False
    """access.yaml configures it, so its certificate has to be trusted."""
    password: str = field(default="", repr=False)
    """The password, if it differs from that of the device."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Everything needed to connect to a device. Its repr does not contain the password."""

    device: str
    platform: str
    """The name of the platform; `linux` for hosts."""
    host: str
    port: int
    user: str
    transport: str = "ssh"
    password: str = ""
    key_file: Path | None = None
    known_hosts: Path | None = None
    ssh_config: Path | None = None
    certificate: str = ""
    """The pinned SHA-256 fingerprint for HTTPS; empty: verified by the system's CAs."""
    timeout_s: float = 30.0
    snmp_port: int = 161
    gnmi: GnmiEndpoint = GnmiEndpoint()

    def __repr__(self) -> str:
        return f"Endpoint({self.device}, {self.transport}://{self.user}@{self.host}:{self.port})"
