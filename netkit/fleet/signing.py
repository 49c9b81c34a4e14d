"""Ed25519 signatures of messages: a line with the signature, then exactly the bytes that it covers."""

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from netkit import private
from netkit.access import secrets
from netkit.errors import AccessError, Problem
from netkit.fleet.settings import BrokerSettings, FleetError

LINE_BYTES = 88
"""The length of a signature in base64."""


def signed(body: bytes, purpose: str, key: Ed25519PrivateKey) -> bytes:
    """Sign a body for one purpose, so that it is invalid for any other."""
    return base64.b64encode(key.sign(_covered(body, purpose))) + b"\n" + body


def opened(message: bytes, purpose: str, keys: Iterable[Ed25519PublicKey]) -> bytes | None:
    """The body of a message; None if none of the keys signed it for this purpose."""
    line, separator, body = message[:LINE_BYTES], message[LINE_BYTES : LINE_BYTES + 1], message[LINE_BYTES + 1 :]
    try:
        signature = base64.b64decode(line, validate=True)
    except ValueError:
        return None
    if separator != b"\n":
        return None
    covered = _covered(body, purpose)
    return body if any(_is_by(key, signature, covered) for key in keys) else None


def _covered(body: bytes, purpose: str) -> bytes:
    return f"netkit {purpose} 1\n".encode() + body


def _is_by(key: Ed25519PublicKey, signature: bytes, covered: bytes) -> bool:
    try:
        key.verify(signature, covered)
    except InvalidSignature:
        return False
    return True


def public_text(key: Ed25519PrivateKey) -> str:
    """The public key as fleet.yaml lists it."""
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return base64.b64encode(raw).decode()


def private_pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def read_key(file: Path) -> Ed25519PrivateKey:
    """Read a private key that only its owner can access."""
    try:
        status = file.stat()
        data = file.read_bytes()
    except OSError as error:
        what = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise FleetError(Problem(what, "copy it from what `netkit fleet init` wrote", file=str(file))) from None
    if status.st_mode & private.OTHERS or status.st_uid != os.geteuid():
        raise FleetError(Problem("is a private key that others can access", f"chmod 600 {file}", file=str(file)))
    try:
        key = serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise FleetError(
            Problem("is not an Ed25519 private key", "use the one `netkit fleet init` wrote", file=str(file))
        )
    return key


SIGNING_KEY = "signing.key"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The keys of the coordinator, or of a worker of a site."""

    signing: Ed25519PrivateKey
    authority: Path
    certificate: Path
    key: Path
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.certificate})"

    @classmethod
    def load(cls, folder: Path, broker: BrokerSettings) -> "Credentials":
        """Read the files of a machine; FleetError if one is missing or can be read by others."""
        authority, certificate, key = files = tuple(
            folder / name for name in (broker.authority, broker.certificate, broker.key)
        )
        for file in files:
            if not file.is_file():
                raise FleetError(Problem("is missing", "copy it from what `netkit fleet init` wrote", file=str(file)))
        try:
            password = secrets.read(broker.password, "the password of the broker", "broker")
        except AccessError as error:
            remedy = "load the file `environment` of `netkit fleet init`, or set `password` in fleet.yaml"
            raise FleetError(Problem(error.problems[0].message, remedy)) from None
        return cls(read_key(folder / SIGNING_KEY), authority, certificate, key, password)

    def expect(self, keys: tuple[str, ...], what: str) -> None:
        """FleetError if the public half of the signing key is not one of these."""
        if public_text(self.signing) not in keys:
            problem = f"{SIGNING_KEY} is not a key of {what}"
            raise FleetError(Problem(problem, f"add {public_text(self.signing)} to its keys in fleet.yaml"))
