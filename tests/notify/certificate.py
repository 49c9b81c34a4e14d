"""A certificate for loopback."""

import subprocess
from pathlib import Path


def made(folder: Path) -> tuple[Path, Path]:
    """The files of a certificate and its key."""
    certificate, key = folder / "server.pem", folder / "server.key"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    files = ["-out", str(certificate), "-keyout", str(key)]
    subprocess.run([*words, *names, *files], check=True, capture_output=True)
    return certificate, key
