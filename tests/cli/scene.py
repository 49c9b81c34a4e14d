"""A small fabric on disk, with the running configurations of its devices saved beside it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command import Done
from tests.command import run as command
from tests.lab.running import intent, write_fabric

PATIENCE_S = 180


def run(*arguments: str | Path) -> Done:
    """Run netkit with a generous time limit for busy machines."""
    return command(*arguments, timeout_s=PATIENCE_S)


@dataclass(frozen=True)
class Scene:
    """Paths of the fabric and of the saved configurations."""

    fabric: Path
    saved: Path

    def edit(self, device: str, file: str, found: str, wanted: str) -> None:
        """Edit a saved configuration."""
        path = self.saved / device / file
        text = path.read_text(encoding="utf-8")
        assert found in text
        path.write_text(text.replace(found, wanted, 1), encoding="utf-8")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A fabric whose devices run what is intended."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("NETKIT_LAB_DIR", str(tmp_path / "labs"))
    here = Scene(write_fabric(tmp_path / "fabric", intent()), tmp_path / "saved")
    done = run("render", "--fabric", here.fabric, "-o", here.saved)
    assert done.returncode == 0, done.stderr
    return here
