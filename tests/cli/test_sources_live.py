"""Checks of a lab through SNMP and NAPALM getters: healthy, broken, and with wrong secrets."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.facts.live_switch import broken
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric
from tests.lanes import daily

pytestmark = [needs_lab, pytest.mark.skipif(not shutil.which("snmpd"), reason="snmpd is not installed")]
LEAF = {"model": "SN5600", "platform": "sonic", "version": "202411", "host_breakout": "2x400G"}
SPINE = {"model": "DCS-7060X6-64PE", "platform": "eos", "version": "4.35.1F", "breakout": "2x400G", "slots": 2}
SWITCHES = {"leaf": {**LEAF, "uplink_breakout": "2x400G"}, "spine": SPINE}
RIGHT = {"SNMP_AUTH_WORD": "@secret:SNMP_AUTH@", "SNMP_PRIV_WORD": "@secret:SNMP_PRIV@"}


class Site(NamedTuple):
    """A lab, the port of a leaf to the first host, and the cable of a leaf to a spine."""

    lab: RunningLab
    to_host: str
    to_spine: str
    of_spine: str

    def judged(self, *words: str) -> tuple[int, Any]:
        done = self.lab.netkit(
            "check", "--fabric", self.lab.fabric, f"--lab={self.lab.name}", "--window", "2", "--format", "json", *words
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module", params=daily(["nvue", "mixed"], "nvue"))
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    values = intent() if request.param == "nvue" else intent(switches=SWITCHES)
    ports = ("swp1s0", "swp33s0", "swp1s0") if request.param == "nvue" else ("Ethernet0", "Ethernet256", "Ethernet1/1")
    fabric = write_fabric(tmp_path_factory.mktemp("fabric"), values)
    (fabric / "access.yaml").write_text("platforms: {eos: {napalm: eos}}\n", encoding="utf-8")  # NAPALM's own driver
    with running(fabric, name=request.param) as made:
        yield Site(made, *ports)


def wrong(found: Any) -> set[tuple[str, str, str]]:
    """Check, device and port of each warning and failure."""
    return {
        (finding["check"], finding["device"], finding["place"])
        for result in found["results"]
        for finding in result["findings"]
        if finding["verdict"] in {"warn", "fail", "error"}
    }


def skipped(found: Any) -> dict[str, str]:
    """Check → a reason why it could not judge something."""
    findings = [finding for result in found["results"] for finding in result["findings"]]
    return {finding["check"]: finding["text"] for finding in findings if finding["verdict"] == "skipped"}


def test_a_healthy_lab_is_clean_and_checks_that_snmp_cannot_serve_are_skipped(site: Site) -> None:
    seen: list[Any] = []

    def is_clean() -> bool:
        seen.append(site.judged("--source", "snmp")[1])
        return not wrong(seen[-1])

    until(is_clean, "LLDP knows every cable, and nothing warns or fails")
    found = seen[-1]
    assert (found["exit_code"], found["unreached"]) == (0, [])
    assert "only the platform's own commands show the configuration" in skipped(found)["drift.configuration"]
    assert "BGP4-MIB" in skipped(found)["bgp.sessions"]
    judged = {result["id"] for result in found["results"] if result["examined"]}
    assert {"links.up[leaf01]", "load.errors[spine01]", "optics.light[leaf01]", "inventory.version[spine01]"} <= judged


def test_a_healthy_lab_is_clean_through_napalm_getters(site: Site) -> None:
    until(lambda: not wrong(site.judged("--source", "napalm", "--limit", "!role=host")[1]), "nothing warns or fails")


def test_low_optical_power_and_a_pause_storm_are_found_through_snmp(site: Site) -> None:
    faults = (
        ("dim-optic", "gpu01:rail0", "db=11"),
        ("dim-optic", f"spine01:{site.of_spine}", "db=11"),
        ("pause-storm", "gpu02:rail1"),
    )
    with broken(site.lab, *faults):
        code, found = site.judged("--source", "snmp", "optics.light", "optics.loss", "pfc")
    reported = wrong(found)
    assert code == 1
    assert ("optics.light", "leaf01", site.to_host) in reported
    assert ("pfc.origin", "gpu02", "rail1/3") in reported
    assert ("pfc.rate", "leaf01", f"{site.to_spine}/3") in reported
    if site.lab.name == "mixed":  # of these two agents, only EOS exposes the thresholds of its modules
        assert ("optics.light", "spine01", site.of_spine) in reported


@pytest.mark.parametrize("site", ["nvue"], indirect=True)
def test_secrets_come_from_access_yaml_and_wrong_ones_are_reported(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = json.loads((site.lab.home / site.lab.name / "lab.json").read_text(encoding="utf-8"))["devices"]["leaf01"]
    folder = Path(shutil.copytree(site.lab.fabric, tmp_path / "fabric"))
    snmp = {"port": device["snmp_port"], "user": "watcher"}
    snmp |= {"auth": {"env": "SNMP_AUTH_WORD"}, "priv": {"env": "SNMP_PRIV_WORD"}}
    settings = {"facts": "snmp", "snmp": snmp, "addresses": {"leaf01": device["address"]}, "timeout_s": 60}
    (folder / "access.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    words = ("check", "--fabric", folder, "--limit", "leaf01", "--window", "0", "links.up")
    for name, value in RIGHT.items():
        monkeypatch.setenv(name, value)
    right = site.lab.netkit(*words)
    assert right.returncode == 0, right.stdout + right.stderr
    monkeypatch.setenv("SNMP_AUTH_WORD", "another-word-1")
    refused = site.lab.netkit(*words)
    assert refused.returncode == 4
    assert "user watcher: the authentication secret or protocol of the user is wrong" in refused.stdout
    assert "another-word-1" not in refused.stdout + refused.stderr
