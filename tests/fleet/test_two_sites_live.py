"""A fabric at two sites: one site after another, and none after one that did not succeed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from netkit.deploy import Journal, Phase
from netkit.project.project import Project
from tests.fleet.bed import FABRIC, eventually
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.fleet.site import SiteScene, site_scene
from tests.lab.running import needs_lab

pytestmark = [needs_rabbitmq, needs_lab, pytest.mark.whole]
UNITS: dict[str, Any] = {
    "units": [{"unit": 1, "hosts": 1}, {"unit": 2, "hosts": 1}],
    "ceilings": {"units": 2, "hosts_per_unit": 4, "spines": 4},
}
AT_TOKYO, AT_OSAKA = {"leaf01", "leaf02", "spine01", "spine02"}, {"leaf03", "leaf04"}


@pytest.fixture(scope="module")
def running_scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteScene]:
    path = FABRIC["tokyo"]
    fabrics = {"tokyo": {path: (1,)}, "osaka": {path: (2,)}}
    with site_scene(tmp_path_factory.mktemp("sites"), fabrics, **UNITS) as found:
        yield found


@pytest.fixture
def scene(running_scene: SiteScene) -> Iterator[SiteScene]:
    running_scene.worker("in-tokyo", "tokyo")
    running_scene.worker("in-osaka", "osaka")
    yield running_scene
    running_scene.end_workers()


def test_one_site_is_deployed_after_another(scene: SiteScene) -> None:
    scene.change(services={"ntp": ["127.0.0.8"]})
    plan = json.loads(scene.netkit("plan", "--format", "json").stdout)
    assert {one["name"] for one in plan["devices"] if one["changes"]} == AT_TOKYO | AT_OSAKA
    done = scene.netkit("deploy", "--yes", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["stopped"], [one["site"] for one in found["sites"]]) == ("", ["tokyo", "osaka"])
    changed = [
        {one["device"] for one in site["outcome"]["devices"] if one["result"] == "done"} for site in found["sites"]
    ]
    assert changed == [AT_TOKYO, AT_OSAKA]
    journals = [Journal(next(iter(scene.runs(site)))) for site in ("tokyo", "osaka")]
    assert journals[0].entries()[-1].at_s < journals[1].entries()[0].at_s
    assert scene.netkit("plan", "--detailed-exitcode").returncode == 0
    assert [*json.loads(scene.netkit("history", "--format", "json").stdout)] == ["tokyo", "osaka"]
    back = scene.netkit("rollback", journals[1].run, "--yes", "--format", "json")
    assert back.returncode == 0, back.stderr
    assert [one["site"] for one in json.loads(back.stdout)["sites"]] == ["osaka"]
    again = json.loads(scene.netkit("plan", "--format", "json").stdout)
    assert {one["name"] for one in again["devices"] if one["changes"]} == AT_OSAKA


def test_the_next_site_does_not_begin_when_more_fails_than_before(scene: SiteScene) -> None:
    scene.change(services={"ntp": ["127.0.0.9"]})
    known = scene.runs("tokyo")
    deploying = scene.begun("deploy", "--yes")

    def is_under_way() -> bool:
        begun = [Journal(folder) for folder in scene.runs("tokyo") - known]
        return any(entry.step == Phase.COMMIT for one in begun for entry in one.entries())

    eventually(is_under_way)
    runs_at_osaka = scene.runs("osaka")
    port = Project.open(scene.fabric).fabric.switch("leaf03").fabric_ports[0].name
    mtu = scene.lab.run("leaf03", "cat", f"/sys/class/net/{port}/mtu").strip()
    scene.lab.run("leaf03", "ip", "link", "set", port, "mtu", "1500")
    try:
        out, err = deploying.communicate(timeout=300)
    finally:
        scene.lab.run("leaf03", "ip", "link", "set", port, "mtu", mtu)
    assert deploying.returncode == 1, out + err
    assert "stopped: osaka: not started, because " in out
    assert f" now fails on leaf03 {port}" in out
    assert scene.runs("osaka") == runs_at_osaka


def test_routing_that_changes_at_both_sites_is_refused(scene: SiteScene) -> None:
    scene.change(services={"ntp": ["127.0.0.9"]}, ceilings={"units": 2, "hosts_per_unit": 8, "spines": 4})
    done = scene.netkit("deploy", "--yes")
    assert done.returncode == 3, done.stdout
    assert "routing changes at tokyo and osaka: no site sees enough to find an order without losses" in done.stderr
