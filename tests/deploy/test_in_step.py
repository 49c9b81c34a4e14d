"""Hosts that change in one batch: one Ansible run applies them, everything else is per host."""

from collections.abc import Iterator, Mapping

import pytest

from netkit.deploy import DeviceResult, Journal, Outcome
from netkit.errors import AccessError, NetkitError, Problem
from tests.deploy.fake import FakeHostDriver, Fault, Killed
from tests.deploy.scene import Scene, killing, scene

HOSTS = ("gpu01", "gpu02", "gpu05", "gpu06")


@pytest.fixture
def found() -> Iterator[Scene]:
    with scene("rails") as made:
        yield made


def results(outcome: Outcome) -> dict[str, str]:
    return {one.device: one.result.value for one in outcome.devices if one.device in HOSTS}


def steps(journal: Journal) -> list[tuple[str, str]]:
    return [(entry.step, entry.device) for entry in Journal(journal.folder).entries() if entry.device in HOSTS[:2]]


def test_hosts_of_a_wave_are_applied_in_one_run(found: Scene) -> None:
    journal = found.journal()
    assert results(found.apply(journal, limit=HOSTS[:2], has_canary=False)) == {
        **dict.fromkeys(HOSTS, "excluded"),
        "gpu01": "done",
        "gpu02": "done",
    }
    assert [found.devices[name].in_step for name in HOSTS[:2]] == [HOSTS[:2]] * 2
    order = ("preflight", "sample", "load", "commit")
    each = [(step, name) for step in order for name in HOSTS[:2]]
    begun = [one for one in steps(journal) if one[0] in order]
    assert sorted(begun) == sorted(each)
    assert begun[-2:] == [("commit", "gpu01"), ("commit", "gpu02")]
    rest = ("connect", "verify", "gate", "confirm", "confirmed", "end")
    for name in HOSTS[:2]:
        assert [step for step, device in steps(journal) if device == name and step not in order][-6:] == list(rest)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("load_candidate", "refused"), ("check_in_step", "unreachable"), ("commit_config", "refused")],
)
def test_a_failed_host_is_reverted_and_the_others_are_done(found: Scene, operation: str, kind: str) -> None:
    found.devices["gpu02"].faults = [Fault(operation, kind)]
    outcome = found.apply(max_fail=1)
    assert {name for name, result in results(outcome).items() if result == "done"} == {"gpu01", "gpu05", "gpu06"}
    assert found.is_as_before("gpu02")
    assert all(map(found.is_intended, ("gpu01", "gpu05", "gpu06")))


def test_a_host_that_is_lost_during_the_run_is_reverted_whatever_it_shows(found: Scene) -> None:
    found.devices["gpu02"].faults = [Fault("commit_config", "lost")]
    outcome = found.apply()
    assert results(outcome) == {**dict.fromkeys(HOSTS, "done"), "gpu02": "reverted"}
    assert found.is_as_before("gpu02")
    assert outcome.exit_code == 4


@pytest.mark.parametrize("is_whole", [True, False])
def test_hosts_half_applied_by_a_killed_run_are_applied_again(found: Scene, *, is_whole: bool) -> None:
    found.strike = killing("gpu06")
    journal = found.journal()
    with pytest.raises(Killed):
        found.apply(journal)
    found.strike = lambda _device, _operation: None
    found.devices["gpu02"].is_whole = is_whole
    commits = found.devices["gpu02"].commits
    assert set(results(found.resume(journal)).values()) == {"done"}
    assert found.devices["gpu02"].commits == commits + (not is_whole)
    assert all(map(found.is_intended, HOSTS))


def test_a_run_that_cannot_start_is_reverted_on_every_host(found: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: object, _others: object, _revert_in: object) -> Mapping[str, NetkitError]:
        raise AccessError(Problem("there is no Ansible here"))

    monkeypatch.setattr(FakeHostDriver, "commit_in_step", fail)
    outcome = found.apply(max_fail=4)
    assert set(results(outcome).values()) <= {"failed", "reverted"}
    assert "there is no Ansible here" in outcome.devices[-1].reasons[0]
    assert outcome.exit_code == 4
    assert all(map(found.is_as_before, HOSTS))


def test_hosts_being_applied_when_netkit_was_killed_are_recovered(found: Scene) -> None:
    found.strike = killing("gpu05", "commit_config")
    journal = found.journal()
    with pytest.raises(Killed):
        found.apply(journal)
    assert not found.is_as_before("gpu01")  # it had not reached gpu05 and gpu06
    assert found.is_as_before("gpu06")
    found.strike = lambda _device, _operation: None
    outcome = found.resume(journal)
    assert set(results(outcome).values()) == {"done"}
    assert all(map(found.is_intended, HOSTS))
    assert outcome.device("leaf01") is not None
    assert all(one.result in {DeviceResult.DONE, DeviceResult.UNCHANGED} for one in outcome.devices)
