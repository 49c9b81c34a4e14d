"""The health gate of hosts during a change of their switches, on a running lab: over SSH, with real pings and CNPs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from netkit.deploy import GateAnswer, GateQuestion, Moment, SessionGate
from netkit.deploy.reach_gate import ReachGate
from netkit.gate.cnp import CnpGate, CnpWatch
from netkit.intent.model import Thresholds
from netkit.lab.layout import kernel_name
from netkit.platforms.change import Risk
from netkit.platforms.driver import Reader
from netkit.platforms.view import View, Viewer
from netkit.project.gate import OnlyRails
from netkit.project.observing import looked_at
from tests.deploy.fleet import Fleet, built
from tests.deploy.live_scene import reasons, results
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = needs_lab
INTENT = intent(units=[{"unit": 1, "hosts": 4}])
RAIL = frozenset({0})
WINDOW_S = 12.0
"""The NICs of a lab send four CNPs a second; a shorter window counts too few to compare."""


@dataclass(frozen=True)
class Bed:
    """A lab, and the hosts as the gate reads them."""

    lab: RunningLab
    fleet: Fleet

    def views(self, name: str) -> tuple[View, ...]:
        device = self.fleet.fabric.device(name)
        assert device is not None
        return tuple(looked_at(self.fleet.fabric, device).views)

    def watch(self) -> CnpWatch:
        return CnpWatch(self.fleet.fabric, lambda name: cast("Viewer", self.fleet.connect(name)), self.views)

    def gate(self) -> CnpGate:
        return CnpGate(self.fleet.fabric, lambda _question: GateAnswer("healthy"), self.watch(), Thresholds())

    def verb(self, *words: str) -> None:
        done = self.lab.lab(*words)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """Boot two leaves and four hosts, three of which overload the link of the fourth."""
    with (
        pytest.MonkeyPatch.context() as patch,
        running(write_fabric(tmp_path_factory.mktemp("fabric"), INTENT), name="c") as lab,
    ):
        patch.setattr("netkit.gate.cnp.WINDOW_S", WINDOW_S)
        found = Bed(lab, Fleet(lab, Path(), built(INTENT)))
        found.verb("incast", "gpu01:rail0", "--senders", "3", "--seconds", "3000")
        until(lambda: has_enough(found.watch()), "CNPs flow")
        yield found


def has_enough(watch: CnpWatch) -> bool:
    sums = watch.rails(RAIL, lambda _began_s: False)[0].sums
    return sums is not None and sums.is_enough


def is_quiet(watch: CnpWatch) -> bool:
    sums = watch.rails(RAIL, lambda _began_s: False)[0].sums
    return sums is not None and sums.sent == 0


def question(moment: Moment, **more: Any) -> GateQuestion:
    return GateQuestion("leaf01", moment, cast("Reader", None), (), Risk.BUFFER, **more)


@pytest.fixture(scope="module")
def before(bed: Bed) -> GateAnswer:
    """CNPs before a change, on rails with congestion."""
    found = bed.gate()(question(Moment.BEFORE))
    assert found == GateAnswer("healthy", (), found.sample)
    return found


def test_a_change_after_which_cnps_are_lost_is_worse_until_they_arrive_again(bed: Bed, before: GateAnswer) -> None:
    gate = bed.gate()
    bed.verb("break", "cnp-loss", "gpu01:rail0", "direction=sent")
    lost = gate(question(Moment.AFTER, sample=before.sample))
    assert lost.verdict == "worse"
    assert lost.reasons[0].startswith("rail 0: ")
    assert "% of its CNPs never arrive" in lost.reasons[0]
    bed.verb("heal", "gpu01:rail0")
    assert gate(question(Moment.AFTER, sample=before.sample, time_limit_s=60)).is_healthy


def test_a_host_that_stops_answering_leaves_its_rail_unknown(bed: Bed, before: GateAnswer) -> None:
    bed.verb("break", "unreachable", "gpu03")
    missed = bed.gate()(question(Moment.AFTER, sample=before.sample))
    assert missed == GateAnswer("inconclusive", ("rail 0: not all of its NICs were read: gpu03",))
    bed.verb("heal", "gpu03")


def test_without_congestion_there_is_nothing_to_compare(bed: Bed) -> None:
    bed.verb("calm")
    until(lambda: is_quiet(bed.watch()), "CNPs end")
    gate = bed.gate()
    before = gate(question(Moment.BEFORE))
    said = ("its CNPs were not compared: too few before the change",)
    assert gate(question(Moment.AFTER, sample=before.sample)) == GateAnswer("healthy", said)


def test_a_leaf_that_loses_its_gateway_is_worse_although_its_sessions_are_up(bed: Bed) -> None:
    gate = ReachGate(
        bed.fleet.fabric, lambda _question: GateAnswer("healthy"), lambda name: OnlyRails(bed.fleet.connect(name))
    )
    before = gate(question(Moment.BEFORE))
    nic = bed.fleet.fabric.hosts[0].nics[0]
    place = bed.lab.run("leaf01", "ip", "-br", "addr", "show", "to", nic.gateway).split()
    bed.lab.run("leaf01", "ip", "addr", "del", place[2], "dev", place[0].partition("@")[0])
    lost = gate(question(Moment.AFTER, sample=before.sample))
    assert lost.verdict == "worse"
    assert f"gpu01: rail0: its leaf does not answer any more; before, {nic.gateway} did" in lost.reasons
    bed.lab.run("leaf01", "ip", "addr", "add", place[2], "dev", place[0].partition("@")[0])
    assert gate(question(Moment.AFTER, sample=before.sample, time_limit_s=60)).is_healthy


def test_a_port_that_passes_only_small_packets_is_worse(bed: Bed) -> None:
    gate = ReachGate(
        bed.fleet.fabric, lambda _question: GateAnswer("healthy"), lambda name: OnlyRails(bed.fleet.connect(name))
    )
    nic = bed.fleet.fabric.hosts[0].nics[0]
    port = kernel_name(nic.leaf_port)
    before = gate(question(Moment.BEFORE))
    bed.lab.run("leaf01", "ip", "link", "set", port, "mtu", "4000")
    narrow = gate(question(Moment.AFTER, sample=before.sample))
    assert narrow.verdict == "worse"
    assert f"answers at {nic.address}, but no packets of the whole MTU, as it did before" in " ".join(narrow.reasons)
    bed.lab.run("leaf01", "ip", "link", "set", port, "mtu", "9216")
    for host in bed.fleet.fabric.hosts:
        bed.lab.run(host.name, "ip", "route", "flush", "cache")  # the narrower path
    assert gate(question(Moment.AFTER, sample=before.sample, time_limit_s=60)).is_healthy


def test_a_leaf_whose_new_prefix_is_still_filtered_by_spines_is_reverted(bed: Bed, tmp_path: Path) -> None:
    """The summary of a leaf grows with max_hosts, and spines accept only the old length."""
    wider = built({**INTENT, "ceilings": {**INTENT["ceilings"], "hosts_per_unit": 16}})
    fleet = Fleet(bed.lab, tmp_path / "runs", wider)
    assert {device.risk for device in fleet.plan().changed} == {Risk.LOW}
    sessions = SessionGate(wider, fleet.connect)
    fleet.gate = ReachGate(wider, sessions, lambda name: OnlyRails(fleet.connect(name)))
    before = fleet.configs()
    plan = replace(fleet.plan(), steps=(), bridges=())  # without the safe order
    outcome = fleet.apply(plan, limit=("leaf01",), settle_s=20)
    assert results(outcome)["leaf01"] == "reverted", reasons(outcome)
    assert "rail1 does not answer any more at" in reasons(outcome)
    assert fleet.configs() == before
    fleet.gate = sessions  # all sessions are up, and have routes
    outcome = fleet.apply(plan, limit=("leaf01",))
    assert results(outcome)["leaf01"] == "done", reasons(outcome)
