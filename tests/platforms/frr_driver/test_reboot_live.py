"""A switch that loses power while a change is being applied boots with the files from before it."""

from collections.abc import Iterator

import pytest

from netkit.platforms.compare import MODELS, compare
from netkit.platforms.driver import Candidate
from netkit.platforms.frr import procedure
from netkit.platforms.frr.files import PLACES
from tests import intents
from tests.deploy.live_scene import values
from tests.lab.running import RunningLab, needs_lab, running, write_fabric
from tests.platforms import driven

CUT_OFF = "s/^    \\[ .code -ne 0 \\] || take .*/    kill -9 $$/"
"""Makes the script end where the new files are in their places."""
LEFT = "ls -d /etc/netkit /etc/systemd/system/netkit-undo.service /etc/systemd/system/sysinit.target.wants/netkit*"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    folder = tmp_path_factory.mktemp("reboot") / "fabric"
    with running(write_fabric(folder, values("frr", {"rails": 1, "units": [{"unit": 1, "hosts": 1}]}))) as lab:
        yield lab


def on_leaf(lab: RunningLab, *command: str) -> str:
    return lab.lab("exec", "leaf01", "--", *command).stdout


@needs_lab
@pytest.mark.parametrize("files", [("frr.conf",), ("frr.conf", "netplan.yaml", "daemons", "sysctl.conf")])
def test_a_boot_puts_back_the_files_of_a_change_that_was_being_applied(lab: RunningLab, files: tuple[str, ...]) -> None:
    fabric = intents.fabric(values("frr", {"rails": 1, "units": [{"unit": 1, "hosts": 1}]}))
    wanted = dict(driven.files_of(fabric, "leaf01"))
    edits = {
        "frr.conf": ("description gpu01:rail0", "description other"),
        "netplan.yaml": ("mtu: 9216", "mtu: 9000"),
        "daemons": ("bfdd=yes", "bfdd=no"),
        "sysctl.conf": ("= 1", "= 0"),
    }
    for file in files:
        changed = wanted[file].replace(*edits[file])
        assert changed != wanted[file], file
        wanted[file] = changed
    places = [PLACES[file].path for file in files]
    before = on_leaf(lab, "cat", *places)
    with driven.driver(lab, "leaf01", "frr") as driver:
        found = compare(MODELS["frr"], driver.running_files(), wanted)
        driver.load_candidate(Candidate(wanted, found.changes, ""))
        on_leaf(lab, "sed", "-i", CUT_OFF, procedure.SCRIPT)
        on_leaf(lab, "sh", procedure.SCRIPT, "try")
        assert on_leaf(lab, "cat", *places) != before
        assert on_leaf(lab, "sh", "-c", LEFT)

        assert lab.lab("restart", "leaf01").returncode == 0

        assert on_leaf(lab, "cat", *places) == before
        assert on_leaf(lab, "sh", "-c", LEFT) == ""
    with driven.driver(lab, "leaf01", "frr") as driver:
        assert compare(MODELS["frr"], driver.running_files(), driven.files_of(fabric, "leaf01")).changes == ()
