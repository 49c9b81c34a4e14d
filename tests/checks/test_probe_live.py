"""Probes in a running lab: real packets between hosts, and faults that are found where they are."""

import contextlib
import json
from collections.abc import Iterator

import pytest

from netkit.facts.device import NOT_ASKED
from netkit.judge import CheckContext
from netkit.judge.catalog import select
from netkit.judge.run import run
from netkit.project.checking import Checking
from netkit.project.project import Project
from tests.checks.judging import results, said, shipped
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = needs_lab
NAME = "probes"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), intent(rails=2)), name=NAME) as lab:
        yield lab


@pytest.fixture
def looked(up: RunningLab, monkeypatch: pytest.MonkeyPatch) -> "Look":
    monkeypatch.setenv("NETKIT_LAB_DIR", str(up.home))
    return Look(up)


class Look:
    """The current probe findings of a lab."""

    def __init__(self, lab: RunningLab) -> None:
        self.lab = lab

    def scene(self, limit: str = "role=host", *more: str) -> CheckContext:
        checks = select(shipped(), ["probe", *more])
        return Checking.of(Project.open(self.lab.fabric, lab=NAME), limit=limit).base_context(checks)

    def places(self) -> list[tuple[str, str]]:
        return [(device, place) for _, device, place, _ in said(self.scene(), "probe.loss")]

    def uplinks(self, leaf: str) -> list[str]:
        links = json.loads(self.lab.run(leaf, "ip", "-j", "link", "show"))
        ports = [port.name for port in self.scene().fabric.switch(leaf).ports if port.role == "up"]
        return [link["ifname"] for link in links if link["ifname"] in ports]

    @contextlib.contextmanager
    def broken(self, *fault: str) -> Iterator[None]:
        assert self.lab.lab("break", *fault).returncode == 0
        try:
            yield
        finally:
            assert self.lab.lab("heal", "--all").returncode == 0


def test_a_healthy_fabric_loses_no_packet_of_any_size(looked: Look) -> None:
    found = looked.scene()
    assert said(found, "probe") == []
    assert results(found, "probe.loss")["fabric"].examined == 2 * 2 * 2 * 3


def test_without_probe_checks_nothing_is_sent(looked: Look) -> None:
    checks = select(shipped(), ["routes"])
    scene = Checking.of(Project.open(looked.lab.fabric, lab=NAME), limit="role=host").base_context(checks)
    assert {seen.facts.probes for seen in scene.hosts} == {NOT_ASKED}


def test_a_small_mtu_is_found_at_the_nic_that_has_it(looked: Look) -> None:
    with looked.broken("wrong-mtu", "gpu01:rail1"):
        found = said(looked.scene(), "probe.loss")
    assert [(device, place) for _, device, place, _ in found] == [("gpu01", "rail1")]
    assert "0 % of 64, 0 % of 1500, 100 % of 9000 bytes" in found[0][3]


def test_a_dead_rail_is_found(looked: Look) -> None:
    looked.lab.run("gpu02", "ip", "link", "set", "rail0", "down")
    try:
        assert looked.places() == [("gpu02", "rail0")]
    finally:
        looked.lab.run("gpu02", "ip", "link", "set", "rail0", "up")
    until(lambda: looked.places() == [], "the rail is back", 60)


def test_a_small_mtu_between_switches_is_found_with_the_cable_that_has_it(looked: Look) -> None:
    for port in looked.uplinks("leaf01"):
        assert looked.lab.lab("break", "wrong-mtu", f"leaf01:{port}").returncode == 0
    try:
        scene = looked.scene("", "links.mtu")
    finally:
        assert looked.lab.lab("heal", "--all").returncode == 0
    findings = run(scene, select(shipped(), ["probe.loss", "links.mtu"])).findings
    lost = [one for one in findings if one.check == "probe.loss"]
    assert all(one.is_symptom for one in lost)
    assert {one.cause for one in lost} == {scene.cable("leaf01", looked.uplinks("leaf01")[0])}
    assert looked.places() == []


def test_loss_of_large_packets_only_is_found_on_its_path(looked: Look) -> None:
    for port in looked.uplinks("leaf01"):
        assert looked.lab.lab("break", "lossy", f"leaf01:{port}").returncode == 0
    try:
        found = said(looked.scene(), "probe.loss")
    finally:
        assert looked.lab.lab("heal", "--all").returncode == 0
    assert found
    assert {text.partition(" loses ")[0].partition(" (")[2] for _, _, _, text in found} == {"same unit)"}
    assert all("0 % of 64, 0 % of 1500" in text for _, _, _, text in found)
    assert looked.places() == []
