"""The health gate of a deploy ignores silences: a regression stops it, silenced or not."""

import ast
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from netkit.deploy import GateAnswer, GateQuestion, Moment
from netkit.platforms.change import Risk
from netkit.project.connections import Connections
from netkit.project.gate import gate_of
from netkit.project.project import Project
from tests import intents
from tests.command import ROOT
from tests.deploy.fake import Time
from tests.deploy.test_session_gate import Peer
from tests.lab.running import write_fabric

SILENCES = """silences:
  - check: "*"
    where: "*"
    everything: true
    until: 2099-01-01T00:00:00Z
    by: alice
    why: the rack is moved
"""
JUDGES = ("netkit/gate", "netkit/deploy", "netkit/project/gate.py")


def leaf(ports: Sequence[str]) -> Peer:
    """A leaf with established sessions on some ports."""
    return Peer(Time(), dict.fromkeys(ports, 5))


def answers(folder: Path) -> tuple[GateAnswer, GateAnswer]:
    """The gate's answers before a change, and after it has taken down a session."""
    project = Project.open(folder)
    ports = [port.name for port in project.fabric.switch("leaf01").fabric_ports]
    devices = SimpleNamespace(connect=lambda _name: leaf(ports), viewer=lambda _name: None)
    gate = gate_of(project, cast("Connections", devices))
    question: Any = GateQuestion("leaf01", Moment.BEFORE, leaf(ports), (), Risk.NONE)
    before = gate(question)
    after = GateQuestion("leaf01", Moment.AFTER, leaf(ports[1:]), (), Risk.NONE, sample=before.sample)
    return before, gate(after)


def test_a_silenced_regression_stops_a_deploy(tmp_path: Path) -> None:
    folder = write_fabric(tmp_path / "fabric", intents.values())
    loud = answers(folder)
    (folder / "silences.yaml").write_text(SILENCES, encoding="utf-8")
    assert answers(folder) == loud
    assert [one.verdict for one in loud] == ["healthy", "worse"]


@pytest.mark.parametrize("place", JUDGES)
def test_no_code_that_judges_a_deploy_reads_silences(place: str) -> None:
    found = ROOT / place
    files = sorted(found.rglob("*.py")) if found.is_dir() else [found]
    assert files
    for file in files:
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        imports = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        assert [one for one in imports if "silenc" in one.lower()] == [], file
