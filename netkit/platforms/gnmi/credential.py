"""By what a gNMI server lets in, and how it is known to be the right one. No secret is part of a text of these."""

from dataclasses import dataclass, field
from typing import Literal

Shield = Literal["pinned", "authorities", "none"]
"""How a connection is protected: by one trusted certificate, by the system's authorities, or not at all."""


@dataclass(frozen=True, slots=True)
class GnmiLogin:
    """An account of the switch."""

    user: str
    password: str = field(default="", repr=False)
    is_basic: bool = False
    """Whether the server wants HTTP's basic authentication, as Cumulus Linux does, which ignores what others take."""


@dataclass(frozen=True, slots=True)
class GnmiServer:
    """Where a server listens, by what it is known, and how long one answer may take."""

    host: str
    port: int
    shield: Shield = "pinned"
    certificate: str = ""
    """The SHA-256 fingerprint it is pinned to."""
    patience_s: float = 30.0
