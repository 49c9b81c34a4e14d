"""Usage errors about sources of facts."""

from pathlib import Path

import pytest
import yaml

from tests.cli.checked import checked
from tests.cli.scene import run


def test_an_unknown_source_is_refused(tmp_path: Path) -> None:
    fabric, _ = checked(tmp_path)
    done = run("check", "--fabric", fabric, "--source", "ftp")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "error: no source of facts 'ftp'; use one of native, snmp, napalm, gnmi\n"


def test_a_source_is_refused_with_a_snapshot(tmp_path: Path) -> None:
    fabric, file = checked(tmp_path)
    done = run("check", "--fabric", fabric, "--from", file, "--source", "snmp")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "error: a snapshot already fixes the source of its facts; drop --source\n"


def test_without_a_community_and_a_user_each_switch_reports_what_is_missing(tmp_path: Path) -> None:
    fabric, _ = checked(tmp_path)
    intent = yaml.safe_load((fabric / "fabric.yaml").read_text(encoding="utf-8"))
    del intent["services"]["snmp"]
    (fabric / "fabric.yaml").write_text(yaml.safe_dump(intent, sort_keys=False), encoding="utf-8")
    done = run("check", "--fabric", fabric, "--source", "snmp", "--limit", "leaf01", "links.up")
    assert done.returncode == 4
    assert "no SNMP community or user is configured; name a community or a user under snmp in" in done.stdout


@pytest.mark.parametrize("source", ["snmp", "napalm", "gnmi"])
def test_the_checks_are_listed_whatever_the_source(tmp_path: Path, source: str) -> None:
    fabric, _ = checked(tmp_path)
    done = run("check", "--fabric", fabric, "--source", source, "--list")
    assert (done.returncode, "links.up" in done.stdout) == (0, True)
