"""Lines added by hand on FRR before the first contact: refused, then left, and kept through every change."""

from pathlib import Path

import pytest
import yaml

from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, write_fabric

NAMED = "ip prefix-list HAND seq 5 permit 192.0.2.0/24"
MAP = "route-map HAND permit 10"
BY_HAND = ("configure terminal", NAMED, MAP, "set metric 9", "end", "write")


def vtysh(lab: RunningLab, *lines: str) -> str:
    return lab.run("leaf01", "vtysh", *(word for line in lines for word in ("-c", line)))


def is_planted(lab: RunningLab) -> bool:
    """Whether the added lines run, and are saved for the next start of FRR."""
    texts = (vtysh(lab, "show running-config"), lab.run("leaf01", "cat", "/etc/frr/frr.conf"))
    return all(NAMED in text and f"{MAP}\n set metric 9\n" in text for text in texts)


@needs_lab
@pytest.mark.whole
def test_lines_added_by_hand_are_kept_from_the_first_contact_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    for name in ("SNMP_AUTH", "SNMP_PRIV"):
        monkeypatch.setenv(f"NETKIT_SECRET_{name}", "only-for-this-lab")
    fabric = write_fabric(tmp_path / "fabric", on_platform("frr", intent(purpose="lab"), version="10.2"))
    with running(fabric, "--bare") as lab:
        at = ("--fabric", fabric, "--lab", lab.name)
        vtysh(lab, *BY_HAND)
        assert is_planted(lab)
        refused = lab.netkit("deploy", *at, "--yes", "--disruptive", "--busy")
        assert (refused.returncode, refused.stderr.count("netkit has not deployed to it")) == (3, 1), refused.stderr
        assert "leaf01" in refused.stderr
        assert is_planted(lab)

        plan = tmp_path / "plan.json"
        assert lab.netkit("plan", *at, "-o", plan).returncode == 0
        assert lab.netkit("leave", "--fabric", fabric, "--from-plan", plan).returncode == 0
        deployed = lab.netkit("deploy", *at, "--yes", "--disruptive", "--busy")
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        assert is_planted(lab)
        assert "nothing to change" in lab.netkit("plan", *at).stdout
        drift = lab.netkit("check", "drift", *at, "--window", "0")
        assert drift.returncode == 0, drift.stdout + drift.stderr
        copies = tmp_path / "backup"
        assert lab.netkit("backup", *at, "--out", copies).returncode == 0
        assert NAMED in (copies / "leaf01.conf").read_text(encoding="utf-8")

        said = (deployed.stdout + deployed.stderr).splitlines()
        (first,) = {line.removeprefix("run ") for line in said if line.startswith("run ")}
        values = yaml.safe_load((fabric / "fabric.yaml").read_text(encoding="utf-8"))
        write_fabric(fabric, {**values, "routing": {"bfd": {"interval_ms": 1500, "multiplier": 3}}})
        for words in (("deploy",), ("rollback", "last")):
            done = lab.netkit(*words, *at, "--yes", "--disruptive", "--busy")
            assert done.returncode == 0, done.stdout + done.stderr
            assert "leaf01" in done.stdout
            assert is_planted(lab)
        # Hosts lose their leaf when the fabric becomes unconfigured again: the leaf reverts by itself.
        back = lab.netkit("rollback", first, *at, "--yes", "--disruptive", "--busy")
        assert (back.returncode, "leaf01: reverted" in back.stdout) == (1, True), back.stdout + back.stderr
        assert is_planted(lab)
