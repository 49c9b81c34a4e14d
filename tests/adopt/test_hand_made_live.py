"""Switches of a lab configured by hand: the plan after adoption is empty; then one number changes and nothing else."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.design import Fabric
from netkit.intent import csv_table
from netkit.intent.model import CableEntry
from netkit.lab.folder import LabFolder
from netkit.project.project import Project
from netkit.truth.source import exported
from tests import intents
from tests.adopt.by_hand import BY_HAND, MIN_BYTES
from tests.cli.site import Site
from tests.command import run
from tests.deploy.rolling import addresses, lossless_calls
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.lanes import daily
from tests.platforms.samples import files_of
from tests.truth.stand_in import TOKEN, NetBox, served
from tests.truth.test_export import api_of, point_to

pytestmark = needs_lab


@dataclass(frozen=True)
class Number:
    """A number that an engineer changes."""

    where: tuple[str | int, ...]
    """Its place in the intent."""
    old: int
    new: int
    line: str
    """How a switch shows it."""
    unit: int = 1
    """What the switch counts in."""
    accepted: tuple[str, ...] = ()
    """Options with which the deploy accepts the risks in the plan."""


@dataclass(frozen=True)
class Nos:
    """A NOS of the lab, and what changes on it."""

    name: str
    version: str
    show: str
    """The command that prints what runs."""
    numbers: tuple[Number, ...]
    model: str = ""
    is_listed: bool = False
    """Whether devices are reached by a list and access.yaml instead of the lab's own access."""


def paths(line: str) -> Number:
    return Number(("routing", "max_paths"), 16, 24, line)


def ecn(line: str, unit: int = 1) -> Number:
    """Return a threshold; the plan says that a switch may lose packets when it changes."""
    where = ("lossless", "ecn", 400, "min_bytes")
    return Number(where, MIN_BYTES, MIN_BYTES + 50_000, line, unit, ("--disruptive", "--busy"))


NOSES = (
    Nos("frr", "8.4.4", "vtysh -c 'show running-config'", (paths("maximum-paths {}"),), is_listed=True),
    Nos(
        "nvue",
        "5.16.1",
        "nv config show -o json",
        (paths('"ebgp": {}'), ecn('"min-threshold": {}')),
        is_listed=True,
    ),
    Nos(
        "sonic",
        "202411",
        "show runningconfiguration all",
        (
            paths("maximum-paths {}"),
            ecn('"green_min_threshold": "{}"'),
        ),
    ),
    Nos(
        "eos",
        "4.35.1F",
        "FastCli -p 15 -c 'show running-config'",
        (ecn("minimum-threshold {} kbytes", 1000),),
        "DCS-7060X6-64PE",
    ),
)


@pytest.fixture(scope="module", params=daily(NOSES, NOSES[1]), ids=[nos.name for nos in NOSES])
def booted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Nos, Fabric, RunningLab]]:
    """Boot a small fabric with configurations made by hand."""
    nos: Nos = request.param
    small = intent(purpose="lab", host_routes="supernet")
    values = on_platform(nos.name, small, version=nos.version, model=nos.model)
    fabric, configs = intents.fabric(values), tmp_path_factory.mktemp("configs")
    for name, files in files_of(fabric).items():
        device = fabric.device(name)
        (configs / name).mkdir()
        made = BY_HAND[nos.name](device, fabric) if device in fabric.switches else {}
        for file, text in {**files, **made}.items():
            (configs / name / file).write_text(text, encoding="utf-8")
    folder = write_fabric(tmp_path_factory.mktemp("fabric"), values)
    with running(folder, "--configs", str(configs), name=f"h{nos.name}") as lab:
        far = fabric.hosts[-1].nics[1].address

        def is_converged() -> bool:
            done = lab.lab("exec", fabric.hosts[0].name, "--", "ping", "-c", "1", "-W", "1", "-I", "rail0", far)
            return done.returncode == 0

        until(is_converged, "a ping across rails")
        yield nos, fabric, lab


def configurations(nos: Nos, lab: RunningLab, fabric: Fabric) -> Mapping[str, list[str]]:
    return {one.name: lab.shell(one.name, nos.show).splitlines() for one in fabric.switches}


def test_devices_read_in_turns_files_and_a_source_of_truth_are_one_fabric(
    booted: tuple[Nos, Fabric, RunningLab], tmp_path: Path
) -> None:
    """Two hosts are cabled differently in the source; one spine is not reached, and has a file instead."""
    nos, fabric, lab = booted
    site = Site(lab, tmp_path)
    saved, own, last = tmp_path / "saved", tmp_path / "own", fabric.tier("spine")[-1]
    until(lambda: is_heard(lab, fabric, tmp_path / "tried"), "LLDP between all devices")
    for turn, limit in (("lower", "leaf*,gpu*"), ("upper", fabric.tier("spine")[0].name)):
        run("adopt", saved, f"--lab={lab.name}", "--limit", limit, "--out", tmp_path / turn, **site.changes)
    (saved / last.name).mkdir()
    for file, text in BY_HAND[nos.name](last, fabric).items():
        (saved / last.name / file).write_text(text, encoding="utf-8")

    one, other = fabric.tier("leaf")[0].host_ports[:2]
    swapped = [
        {"device": near.peer, "port": near.peer_port, "peer": fabric.tier("leaf")[0].name, "peer_port": far.name}
        for near, far in ((one, other), (other, one))
    ]
    values = on_platform(nos.name, intent(purpose="lab", host_routes="supernet"), version=nos.version, model=nos.model)
    own.mkdir()
    with served(NetBox()) as source:
        exported(api_of(source), intents.fabric({**values, "tables": {"cables": swapped}}), writes=True)
        point_to(source, own)
        done = run("adopt", saved, "--out", own, "--truth", "--format", "json", **site.changes, TRUTH_TOKEN=TOKEN)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found = json.loads(done.stdout)
    assert (found["remaining_changes"], found["not_adopted"], found["unknown_ends"]) == ({}, {}, [])
    assert len(found["conflicts"]) == 2 * len(swapped)
    links = {(link.device, link.port, link.peer, link.peer_port) for link in Project.open(own).fabric.links()}
    assert links == {(link.device, link.port, link.peer, link.peer_port) for link in fabric.links()}
    planned = site.real(own, "plan", f"--lab={lab.name}")
    assert planned.stdout.splitlines()[0] == f"own: nothing to change on {len(fabric.names)} devices", planned.stdout


def test_numbers_change_and_nothing_else(booted: tuple[Nos, Fabric, RunningLab], tmp_path: Path) -> None:
    nos, fabric, lab = booted
    site = Site(lab, tmp_path)
    saved, own = tmp_path / "saved", tmp_path / "own"
    on_lab = f"--lab={lab.name}"
    until(lambda: is_heard(lab, fabric, tmp_path / "tried"), "LLDP between all devices")
    devices = listed(lab, own) if nos.is_listed else on_lab
    done = run("adopt", saved, devices, "--out", own, **site.changes)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "a plan against these configurations is empty\n" in done.stdout
    assert [
        line
        for line in done.stdout.splitlines()
        if "whose rendering differs least from the running configuration" in line
    ] == []

    planned = site.real(own, "plan", on_lab)
    assert planned.stdout.splitlines()[0] == f"own: nothing to change on {len(fabric.names)} devices", planned.stdout

    for number in nos.numbers:
        values: dict[str, Any] = yaml.safe_load((own / "fabric.yaml").read_text(encoding="utf-8"))
        section: dict[Any, Any] = values
        for key in number.where[:-1]:
            section = section[key]
        assert section[number.where[-1]] == number.old
        section[number.where[-1]] = number.new
        write_fabric(own, values)
        before = configurations(nos, lab, fabric)
        with lossless_calls(lab, addresses(fabric)):
            deployed = site.real(own, "deploy", on_lab, "--yes", "--watch", "1", *number.accepted)
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        old, new = (number.line.format(one // number.unit) for one in (number.old, number.new))
        for name, lines in configurations(nos, lab, fabric).items():
            assert lines == [line.replace(old, new) for line in before[name]]
            assert lines != before[name]


def listed(lab: RunningLab, folder: Path) -> str:
    """Write access.yaml and a list of devices as for those of a real fabric; return the option."""
    home, known = lab.home / lab.name, {"linux-host": "linux"}
    record = LabFolder(home).record()["devices"]
    rows = [(name, known.get(one["personality"], one["personality"]), one) for name, one in record.items()]
    folder.mkdir()
    lines = [f"{name},{platform},{one['address']}\n" for name, platform, one in rows]
    (folder / "to-read.csv").write_text("device,platform,address\n" + "".join(lines), encoding="utf-8")
    access = {
        "key_file": str(home / "key"),
        "known_hosts": str(home / "known_hosts"),
        "platforms": {platform: {"port": one["port"], "user": one["login"]} for _, platform, one in rows},
    }
    (folder / "access.yaml").write_text(yaml.safe_dump(access), encoding="utf-8")
    return f"--devices={folder / 'to-read.csv'}"


def is_heard(lab: RunningLab, fabric: Fabric, folder: Path) -> bool:
    """Whether LLDP names both ends of each cable."""
    run("adopt", folder / "saved", f"--lab={lab.name}", "--out", folder / "own", NETKIT_LAB_DIR=str(lab.home))
    heard = csv_table.read(folder / "saved" / "neighbors.csv", CableEntry).rows
    shutil.rmtree(folder)
    ends = {frozenset({(row["device"], row["port"]), (row["peer"], row["peer_port"])}) for row in heard}
    return all(frozenset({(link.device, link.port), (link.peer, link.peer_port)}) in ends for link in fabric.links())
