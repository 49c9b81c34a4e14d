"""`netkit serve` on a lab: real checks on a schedule, a fault that comes and goes, a nightly backup, and TLS."""

import ssl
import subprocess
import urllib.request
from pathlib import Path

from tests.lab.running import intent, needs_lab, running, until, write_fabric
from tests.serve.server import TOKEN, serving


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a self-signed certificate for this machine."""
    made, key = folder / "own.crt", folder / "own.key"
    names = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    files = ("-out", str(made), "-keyout", str(key))
    subprocess.run(["openssl", "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    return made, key


@needs_lab
def test_rounds_on_a_lab_find_a_fault_and_its_end(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    with running(write_fabric(tmp_path / "fabric", intent())) as lab:
        options = (f"--lab={lab.name}", "--every=5s", "--window=1", "--backup", saved)
        with serving(lab.fabric, tmp_path / "state", *options, NETKIT_LAB_DIR=str(lab.home)) as server:
            until(lambda: bool(server.get("runs")["items"]), "the first round")
            assert server.get("states?check=optics.heat")["items"] == []
            assert lab.lab("break", "hot-optic", "leaf01:swp33s0").returncode == 0
            until(lambda: bool(server.get("states?check=optics.heat")["items"]), "a round finds the fault")
            fault = server.get("states?check=optics.heat")["items"][0]
            assert lab.lab("heal", "--all").returncode == 0
            until(lambda: server.get("states?check=optics.heat")["items"] == [], "a round finds it well again")
            until(lambda: any(one["kind"] == "backup" for one in server.ended_rounds()), "a backup")
            diary = server.diary
            output = server.output()
        assert fault["device"] == "leaf01"
        assert {path.stem for path in saved.glob("*.conf")} == {
            "leaf01",
            "leaf02",
            "spine01",
            "spine02",
            "gpu01",
            "gpu02",
        }
        assert {one["exit_code"] for one in diary["rounds"] if one["kind"] == "backup" and one["ended_s"]} == {0}
        assert "Traceback" not in output
        assert "gone    was warn leaf01:swp33s0" in output


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
