"""A spine that is healthy while it is drained and fails under traffic, on a running lab."""

from pathlib import Path

from netkit.deploy import DeployEvent, Phase, SessionGate
from netkit.gate.health import HealthGate
from netkit.platforms.view import View
from netkit.project.observing import looked_at
from tests.deploy.fleet import Fleet, built
from tests.deploy.live_scene import reasons, results, values
from tests.lab.running import needs_lab, running, write_fabric

pytestmark = needs_lab


def test_a_pause_storm_that_begins_with_the_traffic_reverts_the_spine(tmp_path: Path) -> None:
    with running(write_fabric(tmp_path / "fabric", values("nvue")), name="w") as lab:
        fleet = Fleet(lab, tmp_path / "runs", built(values("nvue", {"routing": {"bfd": {"multiplier": 7}}})))
        fabric = fleet.fabric
        port = next(port.name for port in fabric.switch("spine01").ports if port.peer == "leaf01")

        def views(name: str) -> tuple[View, ...]:
            device = fabric.device(name)
            assert device is not None
            return tuple(looked_at(fabric, device).views)

        def storm(event: DeployEvent) -> None:
            if (event.device, event.phase) == ("spine01", Phase.WATCH):
                done = lab.lab("break", "pause-storm", f"spine01:{port}")
                assert done.returncode == 0, done.stderr

        fleet.gate, fleet.on_event = HealthGate(fabric, SessionGate(fabric, fleet.connect), views), storm
        before = fleet.configs()
        outcome = fleet.apply(limit=("spine01",), watch_s=6, revert_s=600, settle_s=60)
        assert results(outcome)["spine01"] == "reverted", reasons(outcome)
        assert "with its traffic back after the change, its health is worse" in reasons(outcome)
        assert "paus" in reasons(outcome)
        assert outcome.stopped == "spine01 is not healthy"
        assert fleet.configs() == before
