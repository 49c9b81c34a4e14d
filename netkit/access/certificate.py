"""Pinned HTTPS certificates: lines of `host port sha256` in a file beside known_hosts."""

import hashlib
import socket
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

from netkit.errors import AccessError, Problem

FILE = "known_certificates"
HEAD = "# HTTPS certificates of devices: host, port, SHA-256 fingerprint. Written by `netkit trust`.\n"
Place = tuple[str, int]


def file_beside(known_hosts: Path) -> Path:
    return known_hosts.with_name(FILE)


def known_certificates(known_hosts: Path) -> Mapping[Place, str]:
    """Return the trusted fingerprints by host and port."""
    return dict(_entries(file_beside(known_hosts)))


def _entries(file: Path) -> Iterator[tuple[Place, str]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(Problem(f"{file} cannot be read: {error}", "repair it, or remove it")) from None
    for line in lines:
        words = line.split()
        if len(words) == 3 and words[1].isdecimal() and not line.startswith("#"):
            yield (words[0], int(words[1])), words[2].lower()


def written(certificates: Mapping[Place, str]) -> str:
    """Format fingerprints as a file."""
    return HEAD + "".join(f"{host} {port} {sha256}\n" for (host, port), sha256 in sorted(certificates.items()))


def shown_by(host: str, port: int, timeout_s: float) -> str:
    """Return the fingerprint of a server's certificate; OSError if it has none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the user decides whether to trust it
    with (
        socket.create_connection((host, port), timeout_s) as line,
        context.wrap_socket(line, server_hostname=host) as shielded,
    ):
        return hashlib.sha256(shielded.getpeercert(binary_form=True) or b"").hexdigest()
