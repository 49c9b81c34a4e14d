"""The state between rounds of steering, and the commands of a round with programs that refuse."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import OutputError, UsageError
from netkit.judge.run import Judgement
from netkit.judge.steering import NodeHealth, Steering
from netkit.project.project import Project
from netkit.project.steering import alone, applied, cluster_of, save, state_file, steered
from tests import intents

NOTHING = Judgement((), ())
OUT = NodeHealth(2, 1, True, "links.flaps", "leaf01:swp1s0: went down", ("links.flaps[leaf01]",))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "fabric"
    folder.mkdir()
    (folder / "fabric.yaml").write_text(yaml.safe_dump(intents.values({"clusters": {"slurm": {}}})))
    return Project.open(folder)


def kept(project: Project, health: Mapping[str, NodeHealth]) -> Mapping[str, NodeHealth]:
    """Save a state, and return it as the next round reads it, which judges nothing."""
    save(project, Steering("slurm", health), {})
    return steered(project, cluster_of(project, "slurm"), NOTHING).health


HEALTH = st.builds(
    NodeHealth,
    st.integers(1, 99),
    st.integers(0, 2),
    st.booleans(),
    st.text(max_size=9),
    st.text(max_size=9),
    st.lists(st.text(max_size=9), min_size=1, max_size=3).map(tuple),
)


def test_the_next_round_reads_what_was_saved(project: Project) -> None:
    names = [host.name for host in project.fabric.hosts]

    @given(st.dictionaries(st.sampled_from(names), HEALTH))
    def holds(health: Mapping[str, NodeHealth]) -> None:
        assert kept(project, health) == health

    holds()
    assert state_file(project, "slurm").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', '{"a": {"bad": "x"}}', "[" * 9_999, '{"a": null}'])
def test_a_damaged_state_is_refused_in_one_line(project: Project, text: str) -> None:
    save(project, Steering("slurm", {}), {})
    state_file(project, "slurm").write_text(text)
    with pytest.raises(OutputError) as refused:
        steered(project, cluster_of(project, "slurm"), NOTHING)
    what = "is not what an earlier round wrote; remove it; nodes that are out stay so until you let them back yourself"
    assert str(refused.value) == f"{state_file(project, 'slurm')}: {what}"


def test_a_node_whose_command_failed_stays_as_it_was(project: Project) -> None:
    gone = Steering("slurm", {}, returned=("gpu01",), before={"gpu01": OUT})
    save(project, gone, {"gpu01": "no answer"})
    assert steered(project, cluster_of(project, "slurm"), NOTHING).health == {"gpu01": OUT}
    new = Steering("slurm", {"gpu02": OUT}, taken=("gpu02",))
    save(project, new, {"gpu02": "no answer"})
    assert steered(project, cluster_of(project, "slurm"), NOTHING).health == {}


def test_a_cluster_that_is_not_there_and_a_second_round_are_refused(project: Project) -> None:
    with pytest.raises(UsageError, match="small has no cluster of kind 'kubernetes'; use slurm"):
        cluster_of(project, "kubernetes")
    busy = "another check of small with --steer slurm is running"
    with alone(project, "slurm"), pytest.raises(UsageError, match=busy), alone(project, "slurm"):
        pass


def program(folder: Path, text: str) -> None:
    """Write a scontrol that appends its words to a file, then runs a script."""
    folder.mkdir()
    file = folder / "scontrol"
    file.write_text(f'#!/bin/sh\necho "$@" >> {folder}/words\n{text}\n')
    file.chmod(0o755)


TAKEN = Steering("slurm", {"gpu01": OUT}, taken=("gpu01",))


def test_without_the_program_every_node_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert applied(TAKEN, "") == {"gpu01": "there is no scontrol on this machine"}


def test_a_program_that_refuses_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path / "bin", 'echo "slurm_update error: Access denied" >&2; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin:/usr/bin")
    assert applied(TAKEN, "") == {"gpu01": "slurm_update error: Access denied"}


def test_a_drain_of_another_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = "NodeName=gpu01 State=IDLE+DRAIN ThreadsPerCore=1 Reason=new fans [root@2026-11-26T22:00:00]"
    program(tmp_path / "bin", f'echo "{shown}"')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin:/usr/bin")
    foreign = {"gpu01": "it is drained for another reason, which stays: new fans"}
    assert applied(TAKEN, "") == foreign
    assert applied(Steering("slurm", {}, returned=("gpu01",)), "") == foreign
    assert (tmp_path / "bin" / "words").read_text().splitlines() == ["--oneliner show node gpu01"] * 2


def test_a_drain_of_netkit_is_taken_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = "NodeName=gpu01 State=IDLE+DRAIN ThreadsPerCore=1 Reason=netkit: links.flaps: x [root@2026-11-26T22:00:00]"
    program(tmp_path / "bin", f'echo "{shown}"')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin:/usr/bin")
    assert applied(Steering("slurm", {}, returned=("gpu01",)), "") == {}
    words = (tmp_path / "bin" / "words").read_text().splitlines()
    assert words == ["--oneliner show node gpu01", "update NodeName=gpu01 State=RESUME"]
