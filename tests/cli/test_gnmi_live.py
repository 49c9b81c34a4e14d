"""gNMI on lab switches: watch, check and trust; each failure is reported in one line."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from netkit.facts import Absent, Snapshot
from netkit.facts.serial import read
from tests.facts.live_switch import broken
from tests.lab.gnmi_bed import needs_gnmi
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = [needs_lab, needs_gnmi]
LEAF = {"model": "DCS-7060X6-64PE", "platform": "eos", "version": "4.35.1F", "host_breakout": "2x400G"}
SPINE = {"model": "SN5600", "platform": "sonic", "version": "202411", "breakout": "2x400G", "slots": 2}
SWITCHES = {"leaf": {**LEAF, "uplink_breakout": "2x400G"}, "spine": SPINE}
OF_EOS = "configure\nmanagement api gnmi\ntransport grpc default\nssl profile GNMI\nvrf MGMT\nend\n"
CERTIFICATES = {"server_crt": "/etc/sonic/telemetry/server.crt", "server_key": "/etc/sonic/telemetry/server.key"}
OF_SONIC = {"gnmi": {"port": "8080", "client_auth": "false", "user_auth": "password"}, "certs": CERTIFICATES}
LIMIT = "leaf01,spine01"


class Site(NamedTuple):
    """A lab in which two switches offer gNMI."""

    lab: RunningLab

    def netkit(self, verb: str, *words: str | Path) -> tuple[int, str]:
        done = self.lab.netkit(verb, "--fabric", self.lab.fabric, f"--lab={self.lab.name}", *words)
        return done.returncode, done.stdout + done.stderr

    def seen(self, file: Path, source: str) -> Snapshot:
        code, text = self.netkit("snapshot", "-o", file, "--limit", LIMIT, "--window", "0", "--source", source)
        assert code == 0, text
        return read(file)

    def watched(self, seconds: int) -> Any:
        words = ("--source", "gnmi", "--limit", LIMIT, "--for", f"{seconds}s", "--format", "json")
        code, text = self.netkit("watch", *words)
        assert code == 0, text
        return json.loads(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    fabric = write_fabric(tmp_path_factory.mktemp("fabric"), intent(switches=SWITCHES))
    with running(fabric) as lab:
        lab.run("leaf01", "Cli", "-p", "15", "-c", OF_EOS)
        patch = [{"op": "add", "path": "/GNMI", "value": OF_SONIC}]
        lab.run("spine01", "config", "apply-patch", "/dev/stdin", stdin=json.dumps(patch))
        yield Site(lab)


@pytest.fixture(scope="module")
def looks(site: Site, tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, Snapshot, Snapshot]:
    """Collect by the platform's own commands, by gNMI, and by commands again, once both have counted traffic."""
    folder = tmp_path_factory.mktemp("looks")
    before = site.seen(folder / "before.json", "native")
    asked = site.seen(folder / "asked.json", "gnmi")

    def has_moved() -> bool:
        after = site.seen(folder / "after.json", "native")
        return all(received(after, device) > received(before, device) for device in ("leaf01", "spine01"))

    until(has_moved, "both switches have received something: BGP keeps its sessions alive")
    return before, asked, read(folder / "after.json")


def counters(seen: Snapshot, device: str) -> Any:
    found = seen.devices[device].facts.counters
    assert not isinstance(found, Absent), found
    return found


def received(seen: Snapshot, device: str) -> int:
    return sum(counters(seen, device)["rx_bytes"].values())


@pytest.mark.parametrize("device", ["leaf01", "spine01"])
def test_gnmi_counters_lie_between_two_readings_of_the_platform(
    looks: tuple[Snapshot, Snapshot, Snapshot], device: str
) -> None:
    before, asked, after = (counters(seen, device) for seen in looks)
    assert {"rx_bytes", "tx_packets", "queue_tx_bytes", "queue_drops", "carrier_changes"} <= set(asked)
    for name, places in asked.items():
        for place, count in places.items():
            assert before[name][place] <= count <= after[name][place], (name, place)


def test_watch_subscribes_to_the_streams(site: Site) -> None:
    found = site.watched(6)
    states = {one["device"]: one["state"] for one in found["devices"]}
    assert states == {"leaf01": "live", "spine01": "live"}
    assert min(one["samples"] for one in found["devices"]) >= 2
    assert all(port["highest"]["rx_bps"] is not None for port in found["ports"])
    assert any(port["highest"]["rx_bps"] > 0 for port in found["ports"])


def test_an_unreachable_switch_is_reported_alone(site: Site) -> None:
    with broken(site.lab, ("unreachable", "spine01")):
        found = {one["device"]: one for one in site.watched(4)["devices"]}
    assert (found["leaf01"]["state"], found["spine01"]["state"]) == ("live", "gone")
    assert found["spine01"]["why"].endswith("port 8080: the connection was lost")


def test_gnmi_settings_of_the_operator_are_left_alone(site: Site) -> None:
    code, text = site.netkit("plan", "--limit", LIMIT)
    assert (code, "nothing to change on 2 devices" in text) == (0, True), text


def test_a_switch_without_gnmi_is_reported(site: Site) -> None:
    code, text = site.netkit("check", "--source", "gnmi", "--limit", "leaf02", "--window", "0", "links.up")
    assert (code, "leaf02: gNMI is not available; turn gNMI on" in text) == (4, True), text


def test_a_server_is_trusted_by_its_certificate_and_logged_in_to_by_password(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = json.loads((site.lab.home / site.lab.name / "lab.json").read_text(encoding="utf-8"))["devices"]["leaf01"]
    password = (site.lab.home / site.lab.name / "password").read_text(encoding="utf-8").strip()
    folder = Path(shutil.copytree(site.lab.fabric, tmp_path / "fabric"))
    settings = {
        "facts": "gnmi",
        "gnmi": {"port": record["gnmi_port"], "user": "admin", "password": {"env": "GNMI_WORD"}},
        "addresses": {"leaf01": record["address"]},
        "platforms": {"eos": {"port": record["https_port"]}},
    }
    (folder / "access.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    words = ("check", "--fabric", folder, "--limit", "leaf01", "--window", "0", "links.up")
    monkeypatch.setenv("GNMI_WORD", password)
    assert "its certificate is not trusted yet: run netkit trust" in site.lab.netkit(*words).stdout
    trusted = site.lab.netkit("trust", "--fabric", folder, "--limit", "leaf01", "--yes")
    assert (trusted.returncode, f":{record['gnmi_port']} " in trusted.stdout) == (0, True), trusted.stderr
    right = site.lab.netkit(*words)
    assert right.returncode == 0, right.stdout + right.stderr
    monkeypatch.setenv("GNMI_WORD", "another-word-1")
    refused = site.lab.netkit(*words)
    assert (refused.returncode, "the user or password is wrong" in refused.stdout) == (4, True)
    assert "another-word-1" not in refused.stdout + refused.stderr
