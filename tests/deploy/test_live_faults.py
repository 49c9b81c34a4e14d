"""Deploys to eight switches of a running lab, some of which fail in every way a management plane can."""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from netkit.deploy import ConfigState, DeployEvent, DeviceResult, Journal, Outcome, Phase
from tests.cli.site import Site
from tests.deploy.fleet import Fleet, built
from tests.deploy.live_scene import reasons, results, values
from tests.deploy.test_live_order import values as staged
from tests.lab.running import RunningLab, needs_lab, running, until, write_fabric

pytestmark = needs_lab
EIGHT = {"rails": 4, "switches": {"spine": {"slots": 4}}}
IMPATIENCE_S = 6.0
"""Time limits for a switch that is known to fail."""
Fault = tuple[str, ...]
End = tuple[DeviceResult, ConfigState, int]
UNREACHED = (DeviceResult.UNREACHABLE, ConfigState.AS_BEFORE, 4)
REVERTED = (DeviceResult.REVERTED, ConfigState.AS_BEFORE, 1)
UNSAVED = (DeviceResult.FAILED, ConfigState.INTENDED, 1)
LOST = (DeviceResult.REVERTED, ConfigState.AS_BEFORE, 4)
DONE = (DeviceResult.DONE, ConfigState.INTENDED, 0)


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot a fabric of 4 leaves and 4 spines with the intended configurations."""
    fabric = write_fabric(tmp_path_factory.mktemp("fabric"), values("nvue", EIGHT))
    with running(fabric, name="e") as booted:
        yield booted


@pytest.fixture
def fleet(eight: RunningLab, tmp_path: Path) -> Iterator[Fleet]:
    """The fabric with a change that no earlier test has made: every switch gets a new location."""
    changed = {**EIGHT, "services": {"snmp": {"location": tmp_path.name}}}
    yield Fleet(eight, tmp_path / "runs", built(values("nvue", changed)))
    assert eight.lab("heal", "--all").returncode == 0


class Trouble:
    """Faults that are injected when their device enters a phase, and may be healed in another."""

    def __init__(self, lab: RunningLab, faults: Mapping[str, tuple[Phase, Fault]], heal: Phase | None = None) -> None:
        self._lab, self._faults, self._heal = lab, faults, heal

    def __call__(self, event: DeployEvent) -> None:
        phase, fault = self._faults.get(event.device, (None, ())) if event.wave else (None, ())
        if fault and event.phase is phase:
            broken(self._lab, event.device, fault)
        elif fault and event.phase is self._heal:
            healed(self._lab, event.device, fault)


def broken(lab: RunningLab, device: str, fault: Fault) -> None:
    done = lab.lab("break", fault[0], device, *fault[1:])
    assert done.returncode == 0, done.stderr


def healed(lab: RunningLab, device: str, fault: Fault) -> None:
    done = lab.lab("heal", device, fault[0])
    assert done.returncode == 0, done.stderr


def ends(outcome: Outcome) -> dict[str, End]:
    return {one.device: (one.result, one.state, one.exit_code) for one in outcome.devices}


def unwitnessed(outcome: Outcome) -> list[str]:
    """Devices that were reverted because a neighbor failed before it could report its session with them."""
    return [one.device for one in outcome.devices if any("no longer answers" in said for said in one.reasons)]


def established(fleet: Fleet) -> set[tuple[str, str]]:
    """The BGP sessions that are up."""
    found = set()
    for name in fleet.names:
        driver = fleet.connect(name)
        driver.open()
        found |= {(name, one.interface) for one in driver.sessions() if one.is_established}
        driver.close()
    return found


def held_to(fleet: Fleet, outcome: Outcome, expected: Mapping[str, End]) -> None:
    """Compare an outcome with the expected exceptions, all others done, and with the running configurations."""
    assert ends(outcome) == {**dict.fromkeys(fleet.names, DONE), **expected}, reasons(outcome)
    assert fleet.lab.lab("heal", "--all").returncode == 0
    left = {name for name, (_, state, _) in expected.items() if state is ConfigState.AS_BEFORE}
    assert {device.name for device in fleet.plan().changed} == left


def test_switches_that_cannot_be_changed_are_as_before_and_the_others_done(fleet: Fleet) -> None:
    faults = {
        "leaf01": ("unreachable",),
        "leaf02": ("unreachable", "manner=silently"),
        "leaf03": ("refuses-auth",),
        "spine01": ("hangs",),
        "spine02": ("garbage",),
    }
    plan = fleet.plan()
    assert len(plan.changed) == 8
    for device, fault in faults.items():
        broken(fleet.lab, device, fault)
    fleet.impatience_s = dict.fromkeys(faults, IMPATIENCE_S)
    outcome = fleet.apply(plan, max_fail=5, is_together=True)
    assert outcome.exit_code == 4
    held_to(fleet, outcome, dict.fromkeys(faults, UNREACHED))


def test_a_failed_change_is_reverted_and_a_slow_or_disconnected_switch_is_done(fleet: Fleet) -> None:
    faults = {
        "leaf01": (Phase.LOAD, ("slow", "seconds=0.3")),
        "leaf02": (Phase.LOAD, ("drops-after-commit", "seconds=3")),
        "spine01": (Phase.LOAD, ("apply-fails-quietly",)),
        "spine02": (Phase.LOAD, ("disk-full",)),
        "spine04": (Phase.CONFIRM, ("disk-full",)),
    }
    fleet.on_event = Trouble(fleet.lab, faults)
    outcome = fleet.apply(max_fail=3, is_together=True, has_canary=False)
    assert outcome.exit_code == 1
    held_to(fleet, outcome, {"spine01": REVERTED, "spine02": REVERTED, "spine04": UNSAVED})
    assert "it runs the intended configuration, which may not be saved" in reasons(outcome)


def test_a_switch_that_fails_after_its_change_is_reverted_when_it_answers_again(fleet: Fleet) -> None:
    faults = {
        "leaf01": (Phase.CONNECT, ("unreachable", "manner=silently")),
        "leaf02": (Phase.CONNECT, ("refuses-auth",)),
        "leaf03": (Phase.VERIFY, ("garbage",)),
        "spine01": (Phase.CONNECT, ("hangs",)),
    }
    fleet.on_event = Trouble(fleet.lab, faults, heal=Phase.SETTLE)
    fleet.impatience_s = dict.fromkeys(faults, IMPATIENCE_S)
    outcome = fleet.apply(max_fail=4, is_together=True, has_canary=False, settle_s=40)
    assert outcome.exit_code == 4
    held_to(fleet, outcome, {**dict.fromkeys(unwitnessed(outcome), REVERTED), **dict.fromkeys(faults, LOST)})


def test_a_switch_that_never_answers_again_is_unknown_and_reverts_by_itself(fleet: Fleet) -> None:
    before = fleet.configs()
    fleet.on_event = Trouble(fleet.lab, {"leaf04": (Phase.CONNECT, ("unreachable",))})
    outcome = fleet.apply(limit=("leaf04",), revert_s=8, settle_s=3)
    assert ends(outcome)["leaf04"] == (DeviceResult.FAILED, ConfigState.UNKNOWN, 4)
    assert outcome.exit_code == 4
    healed(fleet.lab, "leaf04", ("unreachable",))
    assert fleet.configs() == before


def test_an_exhausted_budget_leaves_the_rest_unchanged(fleet: Fleet) -> None:
    plan = fleet.plan()
    broken(fleet.lab, "leaf02", ("unreachable",))
    outcome = fleet.apply(plan)
    assert results(outcome) == {**dict.fromkeys(fleet.names, "not started"), "leaf02": "unreachable"}
    assert outcome.exit_code == 4
    healed(fleet.lab, "leaf02", ("unreachable",))
    assert {device.name for device in fleet.plan().changed} == set(fleet.names)


def test_a_change_that_breaks_bgp_is_reverted_on_the_first_device(fleet: Fleet) -> None:
    def by_hand(_file: str, text: str) -> str:
        return re.sub(r"remote-as: \d+", "remote-as: 64999", text)

    before, sessions = fleet.configs(), established(fleet)
    outcome = replace(fleet, by_hand=by_hand).apply(is_disruptive_allowed=True, max_fail=8, settle_s=6)
    (first,) = (one for one in outcome.devices if one.wave)
    assert first.result is DeviceResult.REVERTED
    assert "its health is worse" in first.reasons[0]
    assert outcome.stopped == f"{first.device} is not healthy"
    assert outcome.exit_code == 1
    assert fleet.configs() == before
    until(lambda: established(fleet) == sessions, "every session is back")


def test_a_switch_that_restarts_before_it_is_confirmed_is_as_before(fleet: Fleet) -> None:
    before = fleet.configs()

    def restart(event: DeployEvent) -> None:
        if event.phase is Phase.CONNECT:
            assert fleet.lab.lab("restart", "spine03").returncode == 0

    fleet.on_event = restart
    outcome = fleet.apply(limit=("spine03",), settle_s=60)
    found = ends(outcome)["spine03"]
    assert found[:2] == (DeviceResult.REVERTED, ConfigState.AS_BEFORE), reasons(outcome)
    assert outcome.exit_code == found[2] != 0
    assert fleet.configs() == before


WIDER = "le 28"
"""The host prefixes that the filters accept once units may hold more hosts."""
LOADS = f"until vtysh -c 'show running-config' | grep -q '{WIDER}'; do :; done"
DIES = 'sudo -n kill -9 "$(cat /run/frr/bgpd.pid)"'


@pytest.mark.whole
@pytest.mark.parametrize("is_early", [True, False], ids=["while the change loads", "while its health is checked"])
def test_a_change_during_which_a_daemon_dies_is_complete_or_reverted(*, is_early: bool, tmp_path: Path) -> None:
    few, many = (staged("frr", ["supernet", name]) for name in ("lower ceilings", "higher ceilings"))
    with running(write_fabric(tmp_path, few), name="dies") as lab, ThreadPoolExecutor() as beside:
        site = Site(lab, tmp_path, has_forks=False)
        assert site.netkit("plan", "--detailed-exitcode").returncode == 0
        write_fabric(lab.fabric, many)
        deploy = beside.submit(site.netkit, "deploy", "--yes")
        if not is_early:
            until(
                lambda: any(one.step == Phase.GATE for run in site.runs() for one in Journal(run).entries()), "judged"
            )
        died = lab.lab("ssh", "leaf01", f"{LOADS if is_early else ''}\n{DIES}")
        assert died.returncode == 0, died.stderr
        deployed = deploy.result()
        said = deployed.stdout + deployed.stderr
        if deployed.returncode == 0:
            assert is_early, said
        else:
            assert "leaf01: reverted" in said
            assert "does not run the intended configuration" in said
            assert site.netkit("deploy", "--yes").returncode == 0
        assert site.netkit("plan", "--detailed-exitcode").returncode == 0
