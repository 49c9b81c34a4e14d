"""A small fabric on disk, with its running configurations saved beside it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command import Done
from tests.command import run as command
from tests.lab.running import intent, write_fabric

PATIENCE_S = 180


def run(*arguments: str | Path) -> Done:
    """Run netkit, on however busy a machine."""
    return command(*arguments, timeout_s=PATIENCE_S)


@dataclass(frozen=True)
class Scene:
    """Where the fabric and what was saved of its devices are."""

    fabric: Path
    saved: Path

    def edit(self, device: str, file: str, found: str, wanted: str) -> None:
        """Change something that was saved."""
        path = self.saved / device / file
        text = path.read_text(encoding="utf-8")
        assert found in text
        path.write_text(text.replace(found, wanted, 1), encoding="utf-8")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Return a fabric whose devices run what they should."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("NETKIT_LAB_DIR", str(tmp_path / "labs"))
    here = Scene(write_fabric(tmp_path / "fabric", intent()), tmp_path / "saved")
    done = run("render", "--fabric", here.fabric, "-o", here.saved)
    assert done.returncode == 0, done.stderr
    return here
