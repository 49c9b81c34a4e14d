from dataclasses import replace

import pytest

from netkit.facts import Absent, Facts
from netkit.facts.device import FileSystem
from netkit.judge import CheckContext
from tests.checks.judging import results, said, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
GB = 1 << 30
WELL = FileSystem(100 * GB, 60 * GB, 35 * GB, 1_000_000, 900_000, is_read_only=False, kind="ext4")
SMALL = FileSystem(64 * 1024, 8 * 1024, 56 * 1024, is_read_only=False)


def leaf(**mounts: FileSystem) -> CheckContext:
    """Facts of one switch with file systems, named with _ for slashes."""
    found = {name.replace("_", "/"): one for name, one in mounts.items()}
    return scene(BUILT, observation("leaf01", Facts(file_systems=found)))


def test_a_writable_disk_with_free_space_passes() -> None:
    found = leaf(_=WELL, _tmp=SMALL)
    assert (said(found, "disk"), skipped(found, "disk")) == ([], [])
    assert results(found, "disk.room")["leaf01"].examined == 2
    assert results(found, "disk.writable")["leaf01"].examined == 2


@pytest.mark.parametrize(
    ("one", "verdict", "text"),
    [
        (replace(WELL, used_bytes=90 * GB, free_bytes=10 * GB), "", ""),
        (replace(WELL, used_bytes=91 * GB, free_bytes=9 * GB), "warn", "little room is left on / (91 % used)"),
        (replace(WELL, used_bytes=90 * GB, free_bytes=5 * GB), "warn", "little room is left on / (95 % used)"),
        (replace(WELL, free_files=50_000), "warn", "little room is left on / (95 % used)"),
        (replace(WELL, free_bytes=8 << 20), "warn", "little room is left on / (100 % used)"),
        (replace(WELL, free_bytes=(8 << 20) - 1), "fail", "no room is left on / (8,192 of 104,857,600 kB)"),
        (replace(WELL, free_bytes=0), "fail", "no room is left on / (0 of 104,857,600 kB)"),
        (replace(WELL, used_bytes=100 * GB, free_bytes=0), "fail", "no room is left on / (0 of 104,857,600 kB)"),
        (replace(WELL, free_files=99), "fail", "no room is left on / (99 of 1,000,000 files)"),
        (replace(WELL, files=None, free_files=None), "", ""),
        (replace(SMALL, free_bytes=0), "fail", "no room is left on / (0 of 64 kB)"),
        (replace(SMALL, free_bytes=1000), "", ""),
    ],
)
def test_a_filling_disk_is_reported_before_it_is_full(one: FileSystem, verdict: str, text: str) -> None:
    assert said(leaf(_=one), "disk") == ([(verdict, "leaf01", "", text)] if verdict else [])


def test_the_share_that_warns_is_in_the_intent() -> None:
    found = leaf(_=WELL)
    less = replace(found, limits=found.limits.model_copy(update={"disk_warn_percent": 50.0}))
    assert said(less, "disk") == [("warn", "leaf01", "", "little room is left on / (63 % used)")]


def test_several_file_systems_are_one_finding_of_a_kind() -> None:
    full, filling = replace(WELL, free_bytes=0), replace(WELL, used_bytes=95 * GB, free_bytes=5 * GB)
    broken = replace(WELL, is_read_only=True)
    size = "0 of 104,857,600 kB"
    assert said(leaf(_=full, _tmp=full, _var=full, _home=filling, _opt=broken, _srv=broken), "disk") == [
        ("fail", "leaf01", "", "/opt and /srv can only be read"),
        ("fail", "leaf01", "", f"no room is left on / ({size}), /tmp ({size}) and /var ({size})"),
        ("warn", "leaf01", "", "little room is left on /home (95 % used)"),
    ]


def test_unreported_file_systems_are_not_judged() -> None:
    found = leaf(**{"flash:": FileSystem(), "_tmp": FileSystem(size_bytes=0, used_bytes=0, free_bytes=0)})
    assert said(found, "disk") == []
    assert skipped(found, "disk") == [
        ("leaf01", "", "how full /tmp is was not reported"),
        ("leaf01", "", "how full flash: is was not reported"),
        ("leaf01", "", "whether /tmp can be written to was not reported"),
        ("leaf01", "", "whether flash: can be written to was not reported"),
    ]
    untold = scene(BUILT, observation("gpu01", Facts(file_systems=Absent("df shows no file system"))))
    assert {reason for _, _, reason in skipped(untold, "disk")} == {"no file systems: df shows no file system"}
