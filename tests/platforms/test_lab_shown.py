"""The lab's switches, which share no code with the models here, print back what netkit rendered."""

import re
from pathlib import Path

import pytest

from netkit.platforms.compare import compare
from netkit.platforms.eos.model import MODEL as EOS
from netkit.platforms.nvue.model import MODEL as NVUE
from netkit.platforms.sonic.model import MODEL as SONIC
from tests import intents
from tests.lab.personalities import eos_node
from tests.lab.personalities.nvue import bench as nvue_bench
from tests.lab.personalities.sonic import bench as sonic_bench
from tests.platforms.samples import EVERYTHING, files_of

PLAIN_SONIC = {key: value for key, value in EVERYTHING.items() if key != "adaptive_routing"}


@pytest.mark.parametrize("form", ["", " -o json"])
@pytest.mark.parametrize("version", ["5.14.0", "5.16.1"])
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_nvue_shows_what_was_rendered(tmp_path: Path, version: str, name: str, form: str) -> None:
    files = files_of(intents.fabric(intents.on_platform("nvue", version, EVERYTHING)))[name]
    desk = nvue_bench.desk(tmp_path, version, name, **EVERYTHING)
    code, shown = desk.type(f"nv config show{form}")
    desk.switch.stop()
    assert code == 0
    assert compare(NVUE, {"startup.yaml": shown}, files).changes == ()


@pytest.mark.parametrize("version", ["202411", "202511"])
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_sonic_shows_what_was_rendered(tmp_path: Path, version: str, name: str) -> None:
    fabric = sonic_bench.fabric(version, PLAIN_SONIC)
    files = files_of(fabric)[name]
    switch = sonic_bench.Bench(tmp_path, fabric, name)
    code, shown, errors = switch.type("show runningconfiguration all")
    assert (code, errors) == (0, "")
    assert compare(SONIC, {"config_db.json": shown}, files).changes == ()


@pytest.mark.parametrize("attachment", ["p2p", "vlan"])
@pytest.mark.parametrize("version", ["4.32.3F", "4.35.1F"])
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_eos_shows_what_was_rendered(tmp_path: Path, version: str, name: str, attachment: str) -> None:
    fabric = eos_node.eos_fabric(attachment, version, drained=attachment == "vlan")
    eos, _ = eos_node.switch_on(tmp_path, name, fabric)
    (shown,) = eos_node.texts(eos, "show running-config")
    assert re.search(r"^router bgp", shown, re.MULTILINE)
    wanted = {"eos.cfg": eos_node.config_of(fabric, name)}
    assert compare(EOS, {"eos.cfg": shown}, wanted).changes == ()
