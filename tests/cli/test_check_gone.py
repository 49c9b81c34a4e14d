"""Findings of a check that was removed do not stay open for ever."""

from pathlib import Path

import pytest

from netkit.store import Source
from netkit.store.state import UNCHECKED
from netkit.store.store import open_store
from tests.cli.checked import VALUES
from tests.cli.test_check_store import BEGAN_S, check, seen
from tests.lab.running import write_fabric

MINE = """from netkit.judge import device_check, fail

@device_check(layer="link", on="switch")
def cables(scene, seen):
    \"\"\"No cable is red.\"\"\"
    yield fail("swp1s0", "is red")
"""


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    folder = write_fabric(tmp_path / "fabric", VALUES)
    (folder / "checks").mkdir()
    (folder / "checks" / "mine.py").write_text(MINE, encoding="utf-8")
    check(folder, seen(BEGAN_S, 5), "mine", "--store")
    return folder


def state(fabric: Path, check_name: str = "mine.cables") -> tuple[str, str]:
    """The status of the check on leaf01, with the reason."""
    with open_store(str(fabric.parent / "state" / "store.db")) as store:
        found = {one.key.check: one for one in store.states(Source("small")).items if one.key.device == "leaf01"}
    return found[check_name].verdict.word, found[check_name].text


def test_a_removed_check_is_closed_after_a_full_run(fabric: Path) -> None:
    assert state(fabric) == ("fail", "is red")
    (fabric / "checks" / "mine.py").unlink()
    check(fabric, seen(BEGAN_S + 600, 5), "links.up", "--store")
    assert state(fabric) == ("fail", "is red")
    done = check(fabric, seen(BEGAN_S + 1200, 5), "--store")
    assert "Traceback" not in done.stderr
    assert state(fabric) == ("pass", UNCHECKED)
