"""`netkit serve` with a certificate of its own."""

import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.serve.server import TOKEN, serving


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a self-signed certificate for this machine."""
    made, key = folder / "own.crt", folder / "own.key"
    names = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    files = ("-out", str(made), "-keyout", str(key))
    subprocess.run(["openssl", "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    return made, key


@pytest.mark.daemon
def test_with_a_certificate_it_serves_tls(places: tuple[Path, Path], tmp_path: Path) -> None:
    made, key = certificate(tmp_path)
    options = ("--from", places[1], "--every=1d", "--certificate", made, "--key", key)
    with serving(places[0], tmp_path / "state", *options, is_tls=True) as server:
        context = ssl.create_default_context(cafile=str(made))
        asked = urllib.request.Request(
            f"https://127.0.0.1:{server.port}/api/v1/status", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        direct = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with direct.open(asked, timeout=120) as answer:
            assert answer.status == 200
