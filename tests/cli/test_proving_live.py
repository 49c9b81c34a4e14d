"""Proofs in a real lab: a change that passes, one that fails, and one that is interrupted."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.lab.folder import LabFolder, began_at
from netkit.project.lab import clear_up
from netkit.prove.proof import NOWHERE
from tests.command import NETKIT, ROOT, environment
from tests.lab.running import PATIENCE_S, intent, lab_home, needs_lab, until, write_fabric
from tests.project.test_against import ECN, Repository

pytestmark = needs_lab
SMALLER = "{{ 4000 if switch.name == 'leaf02' else switch.mtu_bytes }}"


@pytest.fixture
def home() -> Iterator[Path]:
    with lab_home() as place:
        yield place


def faster(**changes: Any) -> dict[str, Any]:
    """An intent whose uplinks are faster than its host ports: only leaves have thresholds for the slower speed."""
    values = intent(**changes)
    values["switches"]["leaf"]["uplink_breakout"] = values["switches"]["spine"]["breakout"] = "1x800G"
    values["cables"]["spine"]["media"] = "800G-DR8"
    return values


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    write_fabric(made.fabric, faster())
    made.git("init", "-q", "-b", "main")
    made.commit()
    return made


def proving(repository: Repository, home: Path) -> subprocess.Popen[str]:
    """Start a proof in an environment without secrets."""
    words = [
        *NETKIT,
        "plan",
        "--fabric",
        str(repository.fabric),
        "--against",
        "git:HEAD",
        "--prove",
        "--format",
        "json",
    ]
    place = environment(NETKIT_LAB_DIR=str(home), NETKIT_STATE_DIR=str(home / "state"))
    bare = {key: value for key, value in place.items() if not key.startswith("NETKIT_SECRET_")}
    return subprocess.Popen(words, cwd=ROOT, env=bare, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def proven(repository: Repository, home: Path) -> tuple[int, Any]:
    """The exit code of a proof and its findings; it leaves no lab and no run behind."""
    process = proving(repository, home)
    out, err = process.communicate(timeout=3 * PATIENCE_S)
    assert out, err
    assert labs(home) == []
    assert not (home / "state").exists()
    return process.returncode, json.loads(out)["proof"]


def labs(home: Path) -> list[str]:
    return [path.name for path in home.iterdir() if path.is_dir()]


def test_a_good_change_is_proven(repository: Repository, home: Path) -> None:
    write_fabric(repository.fabric, faster(lossless={"ecn": {400: ECN}}))
    code, found = proven(repository, home)
    assert found["failures"] == []
    assert (code, found["is_proven"]) == (0, True)
    assert {one["device"]: one["result"] for one in found["devices"]}["leaf01"] == "done"
    names = [name for wave in found["waves"] if wave["number"] for name in wave["devices"]]
    assert sorted(names) == ["leaf01", "leaf02"]
    assert {one["scope"] for one in found["scopes"]} == {"same leaf", "same unit"}
    assert all(one["sent"] for one in found["scopes"])
    assert (found["examined"]["pairs"], found["examined"]["of_pairs"]) == (8, 8)
    assert (found["examined"]["packet_bytes"], found["examined"]["widest"]) == (9000, 2)
    assert found["booted"]["left_out"] == {}


@pytest.mark.whole
def test_summaries_of_another_length_are_proven_in_two_stages(repository: Repository, home: Path) -> None:
    write_fabric(repository.fabric, faster(host_routes="supernet"))
    repository.commit()
    ceilings = {"units": 1, "hosts_per_unit": 8, "spines": 4}
    write_fabric(repository.fabric, faster(host_routes="supernet", ceilings=ceilings))
    code, found = proven(repository, home)
    assert (code, found["failures"], found["untried"]) == (0, [], [])
    changed = [name for wave in found["waves"] if wave["number"] for name in wave["devices"]]
    assert sorted(changed) == sorted(2 * ["leaf01", "leaf02", "spine01", "spine02"]), "not in two stages"
    assert {(one["scope"], one["sent"] > 0, one["lost"]) for one in found["scopes"]} == {
        ("same leaf", True, 0),
        ("same unit", True, 0),
    }


@pytest.mark.whole
def test_a_change_of_hosts_alone_is_not_proven(repository: Repository, home: Path) -> None:
    write_fabric(repository.fabric, faster(units=[{"unit": 1, "hosts": 1}]))
    code, found = proven(repository, home)
    assert (code, found["is_proven"], found["failures"]) == (1, False, [NOWHERE])


@pytest.mark.whole
def test_a_drain_is_proven_by_traffic_over_the_remaining_paths(repository: Repository, home: Path) -> None:
    write_fabric(repository.fabric, faster(overrides={"spine01": {"drain": True}}))
    code, found = proven(repository, home)
    assert (code, found["failures"], found["untried"]) == (0, [], [])
    assert {one["scope"] for one in found["scopes"]} == {"same leaf", "same unit"}
    assert (found["examined"]["pairs"], found["examined"]["of_pairs"]) == (8, 8)


def test_leftovers_of_killed_proofs_are_removed(home: Path) -> None:
    running = f"proof-{os.getpid()}-{began_at(os.getpid())}"
    for name in ("proof-1-0", "mine", running):
        (home / name).mkdir()
    clear_up(LabFolder(home / name) for name in labs(home))
    assert sorted(labs(home)) == ["mine", running]


def break_large_packets(repository: Repository) -> None:
    shipped = (ROOT / "templates/nvue/interfaces.yaml.j2").read_text(encoding="utf-8")
    own = repository.fabric / "templates/nvue/interfaces.yaml.j2"
    own.parent.mkdir(parents=True)
    own.write_text(shipped.replace("{{ port.mtu_bytes }}", SMALLER), encoding="utf-8")


def test_a_change_that_breaks_large_packets_is_not_proven(repository: Repository, home: Path) -> None:
    break_large_packets(repository)
    code, found = proven(repository, home)
    assert (code, found["is_proven"]) == (1, False)
    reverted, stopped = found["failures"]
    assert reverted.startswith("leaf02 reverted: leaf02: after the change, its health is worse: ")
    assert "but no packets of the whole MTU, as it did before" in reverted
    assert stopped == "the deploy stopped: leaf02 is not healthy"


def test_large_packets_that_were_lost_before_the_change_are_found(repository: Repository, home: Path) -> None:
    break_large_packets(repository)
    repository.commit()
    write_fabric(repository.fabric, faster(lossless={"ecn": {400: ECN}}))
    code, found = proven(repository, home)
    assert (code, found["is_proven"]) == (1, False)
    assert len(found["failures"]) == 6
    assert all("no answer to whole packets" in failure for failure in found["failures"])


def test_an_interrupted_proof_leaves_nothing_behind(repository: Repository, home: Path) -> None:
    write_fabric(repository.fabric, faster(lossless={"ecn": {400: ECN}}))
    process = proving(repository, home)
    until(lambda: any((home / name / "control").exists() for name in labs(home)), "the lab begins")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted"
    assert labs(home) == []
