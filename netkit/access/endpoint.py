"""Where a device is managed, and by what it is opened."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Transport = Literal["ssh", "eapi", "nvue-rest"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """All that is needed to connect to one device. The password is never part of its text."""

    device: str
    platform: str
    """A platform's name; `linux` for hosts."""
    host: str
    port: int
    user: str
    transport: Transport = "ssh"
    password: str = ""
    key_file: Path | None = None
    known_hosts: Path | None = None
    ssh_config: Path | None = None
    certificate: str = ""
    """The SHA-256 fingerprint that HTTPS is pinned to; empty to verify it by the system's authorities."""
    timeout_s: float = 30.0
    snmp_port: int = 161

    def __repr__(self) -> str:
        return f"Endpoint({self.device}, {self.transport}://{self.user}@{self.host}:{self.port})"
