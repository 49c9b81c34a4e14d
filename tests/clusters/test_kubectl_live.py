"""kubectl runs the commands of steering: the node is tainted, labelled and annotated, and restored."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.judge.steering import NodeHealth, Steering
from netkit.project.steering import applied
from tests.clusters.api_server import api_server

needs_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="not installed: kubectl")
pytestmark = needs_kubectl
PREFIX = "fabric.netkit"
BAD = NodeHealth(2, 0, is_out=True, check="optics.light", reason="leaf01:swp1s0: receives -17.2 dBm, 'dim'")
OUT = Steering("kubernetes", {"gpu01": BAD}, taken=("gpu01",))
BACK = Steering("kubernetes", {}, returned=("gpu01",))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A node of a cluster that kubectl can reach."""
    found: dict[str, Any] = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "gpu01", "labels": {"own": "label"}, "annotations": {}},
        "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
    }
    with api_server([found]) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig(tmp_path)))
        monkeypatch.setenv("HOME", str(tmp_path))
        yield found


def test_a_node_is_taken_out_of_service_and_returned(node: dict[str, Any]) -> None:
    for _ in range(2):  # the second time nothing is left to do
        assert applied(OUT, PREFIX).failed == {}
        assert node["metadata"]["labels"] == {"own": "label", "fabric.netkit/health": "degraded"}
        assert node["metadata"]["annotations"] == {"fabric.netkit/reason": BAD.reason}
        assert sorted(node["spec"]["taints"], key=lambda one: str(one["key"])) == [
            {"key": "fabric.netkit/unhealthy", "value": "optics.light", "effect": "NoSchedule"},
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        ]
    for _ in range(2):
        assert applied(BACK, PREFIX).failed == {}
        assert node["metadata"]["labels"] == {"own": "label"}
        assert node["metadata"]["annotations"] == {}
        assert node["spec"]["taints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]


def test_a_missing_node_is_a_failure(node: dict[str, Any]) -> None:
    node["metadata"]["name"] = "gpu99"
    failed = {"gpu01": 'Error from server (NotFound): nodes "gpu01" not found'}
    assert applied(OUT, PREFIX).failed == failed
    assert applied(BACK, PREFIX).failed == failed
