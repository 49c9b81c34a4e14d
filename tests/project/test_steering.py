"""The state between rounds of steering, and the commands of a round with programs that fail."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import OutputError, UsageError
from netkit.judge.run import Judgement
from netkit.judge.steering import NodeHealth, Steering
from netkit.project.project import Project
from netkit.project.steering import Applied, applied, cluster_of, round_lock, save, state_file, steered
from tests import intents
from tests.command import assert_refused, run

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
    """Save a state, and return it as the next round reads it."""
    save(project, Steering("slurm", health), None)
    return steered(project, cluster_of(project, "slurm"), NOTHING).health


HEALTH = st.builds(
    NodeHealth,
    st.integers(1, 99),
    st.integers(0, 2),
    st.booleans(),
    st.text(max_size=9),
    st.text(max_size=9),
    st.lists(st.sampled_from(["links.up[leaf01]", "ecn-cnp.parity[fabric]"]), min_size=1, unique=True).map(tuple),
    st.booleans(),
)


def test_the_next_round_reads_the_saved_state(project: Project) -> None:
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
    what = "was not written by netkit; remove it; nodes that are out stay out until you bring them back"
    assert str(refused.value) == f"{state_file(project, 'slurm')}: {what}"


def after(project: Project, steering: Steering, failed: Collection[str] | None) -> Mapping[str, NodeHealth]:
    """The state that the next round reads."""
    save(project, steering, failed)
    return steered(project, cluster_of(project, "slurm"), NOTHING).health


def test_a_node_whose_commands_failed_gets_them_again(project: Project) -> None:
    gone = Steering("slurm", {}, returned=("gpu01",), before={"gpu01": OUT})
    assert after(project, gone, {"gpu01"}) == {"gpu01": OUT}
    assert after(project, gone, ()) == {}
    new = Steering("slurm", {"gpu02": OUT}, taken=("gpu02",))
    assert after(project, new, {"gpu02"}) == {"gpu02": OUT}
    assert after(project, new, ()) == {"gpu02": replace(OUT, is_applied=True)}


def test_a_dry_round_returns_no_drained_node_to_service(project: Project) -> None:
    drained = replace(OUT, is_applied=True)
    back = Steering("slurm", {}, returned=("gpu01", "gpu02"), before={"gpu01": drained, "gpu02": OUT})
    assert after(project, back, None) == {"gpu01": drained}
    assert after(project, Steering("slurm", {"gpu01": OUT}), None) == {"gpu01": OUT}


def test_a_missing_cluster_and_a_concurrent_round_are_refused(project: Project) -> None:
    with pytest.raises(UsageError, match="small has no cluster of kind 'kubernetes'; use slurm"):
        cluster_of(project, "kubernetes")
    busy = "another check of small with --steer slurm is running"
    with round_lock(project, "slurm"), pytest.raises(UsageError, match=busy), round_lock(project, "slurm"):
        pass


def program(folder: Path, text: str) -> None:
    """Write a scontrol that appends its arguments to a file, then runs a script."""
    folder.mkdir()
    file = folder / "scontrol"
    file.write_text(f'#!/bin/sh\necho "$@" >> {folder}/words\n{text}\n')
    file.chmod(0o755)


TAKEN = Steering("slurm", {"gpu01": OUT}, taken=("gpu01",))


def test_without_the_program_every_node_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert applied(TAKEN, "") == Applied({"gpu01": "there is no scontrol on this machine"}, {})


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ('echo "slurm_load_node error: Unable to contact" >&2; exit 1', "slurm_load_node error: Unable to contact"),
        ("echo nothing of the kind", "scontrol show node printed something else"),
    ],
)
def test_a_node_of_unknown_state_is_not_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, failure: str
) -> None:
    program(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin:/usr/bin")
    assert applied(TAKEN, "") == Applied({"gpu01": failure}, {})
    assert (tmp_path / "bin" / "words").read_text().splitlines() == ["show node gpu01"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "x.json"), "a snapshot is not a new round of --steer"),
        (("--lab", "--apply"), "--apply would change the real cluster for a fault of a lab"),
        (("--cluster", "x", "--apply"), "--apply uses the configuration of kubectl or scontrol"),
    ],
)
def test_changing_another_cluster_is_refused(project: Project, options: Sequence[str], message: str) -> None:
    assert_refused(run("check", "--fabric", project.folder, "--steer", "slurm", *options), message)
