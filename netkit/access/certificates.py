"""The trusted HTTPS certificates of devices: their file beside the known host keys."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from netkit.errors import AccessError, Problem
from netkit.private import read_text

FILE = "known_certificates"
HEAD = "# HTTPS certificates of devices: host, port, SHA-256 fingerprint. Written by `netkit trust`.\n"
Place = tuple[str, int]


def file_beside(known_hosts: Path) -> Path:
    return known_hosts.with_name(FILE)


def known_certificates(known_hosts: Path) -> Mapping[Place, str]:
    """The trusted fingerprints by host and port."""
    return dict(_entries(file_beside(known_hosts)))


def _entries(file: Path) -> Iterator[tuple[Place, str]]:
    try:
        lines = read_text(file).splitlines()
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
