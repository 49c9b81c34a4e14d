"""SNMP as a source of facts, for switches whose management allows nothing else; netkit never sends a SET.

The credentials are here: whatever reads `access.yaml` needs them, and must not load what connects.
"""

from dataclasses import dataclass, field
from typing import Literal

AuthProtocol = Literal["sha1", "sha224", "sha256", "sha384", "sha512"]
PrivProtocol = Literal["aes128", "aes256"]


@dataclass(frozen=True, slots=True)
class Community:
    """The community string of SNMPv2c."""

    word: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """A user of SNMPv3, with its authentication and privacy secrets; an empty secret means noAuth or noPriv."""

    name: str
    auth: str = field(default="", repr=False)
    auth_protocol: AuthProtocol = "sha1"
    priv: str = field(default="", repr=False)
    priv_protocol: PrivProtocol = "aes128"


Credential = Community | User
