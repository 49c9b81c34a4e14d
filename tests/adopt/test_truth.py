"""A source of truth beside configurations: its cables and racks are adopted, and its differences are listed."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from netkit.platforms.config import Files
from netkit.project.adopting import adopted
from netkit.truth.difference import TruthRecords, of_fabric
from netkit.truth.source import exported
from tests import intents
from tests.adopt.test_noise import undescribed
from tests.adopt.test_round_trip import files_of
from tests.command import run
from tests.truth.stand_in import TOKEN, NetBox, served
from tests.truth.test_export import api_of, point_to

PLACES: list[dict[str, Any]] = [
    {"role": "leaf", "unit": 1, "rail": 0, "serial": "MT01", "rack": "A07", "rack_unit": 41},
    {"role": "host", "unit": 2, "slot": 1, "serial": "GPU7", "rack": "A08", "rack_unit": 3},
    {"role": "spine", "slot": 2, "rack": "B01"},
]
FABRIC = intents.fabric(intents.on_platform("sonic", "202411", {"tables": {"devices": PLACES}}))
WANTED = {
    "leaf01": ("MT01", "A07", 41),
    "gpu05": ("GPU7", "A08", 3),
    "spine02": ("", "B01", None),
}


@cache
def bare_files() -> Mapping[str, Files]:
    return undescribed(files_of(FABRIC))


def places(fabric: Any) -> dict[str, tuple[str, str, int | None]]:
    every = (*fabric.switches, *fabric.hosts)
    return {one.name: (one.serial, one.rack, one.rack_unit) for one in every if one.serial or one.rack}


def test_cables_and_racks_come_from_the_source() -> None:
    found = adopted("again", bare_files(), {}, Path(), of_fabric(FABRIC))
    assert found.conflicts == ()
    assert found.proposal.links.dangling == ()
    assert {
        frozenset([(one.device, one.port), (one.peer, one.peer_port)]) for one in found.proposal.fabric.links()
    } == {frozenset([(one.device, one.port), (one.peer, one.peer_port)]) for one in FABRIC.links()}
    assert places(found.proposal.fabric) == WANTED
    assert found.remaining == {}


def test_running_configurations_take_precedence_and_differences_are_listed() -> None:
    truth = of_fabric(FABRIC)
    leaf = FABRIC.switch("leaf01")
    one, other = leaf.host_ports[:2]
    near, far = (one.peer, one.peer_port), (leaf.name, other.name)
    peers = {key: end for key, end in truth.peers.items() if key not in {near, (leaf.name, one.name), far}}
    devices = {name: device for name, device in truth.devices.items() if name != "gpu02"}
    found = adopted("again", files_of(FABRIC), {}, Path(), replace(truth, devices=devices, peers={**peers, near: far}))
    assert found.conflicts == (
        "gpu02 is not in it",
        f"gpu01 rail0 leads to leaf01 {other.name} in it, and to leaf01 {one.name} by address",
    )
    assert places(found.proposal.fabric) == WANTED


def test_an_empty_source_changes_nothing() -> None:
    files = files_of(FABRIC)
    alone, beside = adopted("again", files, {}, Path()), adopted("again", files, {}, Path(), TruthRecords({}, {}))
    assert beside.proposal.tables == alone.proposal.tables
    assert len(beside.conflicts) == len(FABRIC.names)


def test_the_command_reads_a_netbox(tmp_path: Path) -> None:
    saved, out = tmp_path / "saved", tmp_path / "out"
    for device, files in bare_files().items():
        for file, text in files.items():
            (saved / device).mkdir(parents=True, exist_ok=True)
            (saved / device / file).write_text(text, encoding="utf-8")
    out.mkdir()
    with served(NetBox()) as one:
        exported(api_of(one), FABRIC, writes=True)
        point_to(one, out)
        done = run("adopt", saved, "--out", out, "--truth", TRUTH_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    assert "the source of truth differs:" not in done.stdout
    assert "a plan against these configurations is empty" in done.stdout
    values = yaml.safe_load((out / "fabric.yaml").read_text(encoding="utf-8"))
    assert values["tables"]["devices"] == "devices.csv"
    assert "MT01" in (out / "devices.csv").read_text(encoding="utf-8")


def test_lldp_of_one_end_takes_precedence_over_the_source_at_both() -> None:
    """A switch hears two NICs of one subnet at the ports that the source has the other way round."""
    fabric = intents.fabric(intents.on_platform("sonic", "202411", {"attachment": "vlan"}))
    leaf = fabric.switch("leaf01")
    one, other = leaf.host_ports[:2]
    heard = {(leaf.name, one.name): (other.peer, other.peer_port), (leaf.name, other.name): (one.peer, one.peer_port)}
    found = adopted("again", undescribed(files_of(fabric)), heard, Path(), of_fabric(fabric))
    cables = {(link.near, link.far, link.origin) for link in found.proposal.links.hosts if link.far in heard}
    assert cables == {(far, near, "lldp") for near, far in heard.items()}
    assert len(found.conflicts) == 2 * len(heard)
