"""By what an SNMP agent lets in. No secret is part of a text of these."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

AuthProtocol = Literal["sha1", "sha224", "sha256", "sha384", "sha512"]
PrivProtocol = Literal["aes128", "aes256"]
AUTH_PROTOCOLS: Mapping[AuthProtocol, str] = {
    "sha1": "USM_AUTH_HMAC96_SHA",
    "sha224": "USM_AUTH_HMAC128_SHA224",
    "sha256": "USM_AUTH_HMAC192_SHA256",
    "sha384": "USM_AUTH_HMAC256_SHA384",
    "sha512": "USM_AUTH_HMAC384_SHA512",
}
"""Name → what pysnmp calls it."""
PRIV_PROTOCOLS: Mapping[PrivProtocol, str] = {"aes128": "USM_PRIV_CFB128_AES", "aes256": "USM_PRIV_CFB256_AES"}
"""Keys of 256 bits are made as Cisco and net-snmp's default do; the draft of Blumenthal makes others."""


@dataclass(frozen=True, slots=True)
class Community:
    """Version 2c: a word that travels in the clear."""

    word: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """Version 3: a user, with what it proves itself and hides its questions by; empty for neither."""

    name: str
    auth: str = field(default="", repr=False)
    auth_protocol: AuthProtocol = "sha1"
    priv: str = field(default="", repr=False)
    priv_protocol: PrivProtocol = "aes128"


Credential = Community | User
