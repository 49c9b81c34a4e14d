"""NVUE in the lab: applying, failing, confirming and reverting revisions."""

from pathlib import Path

import pytest

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.nvue import Nvue, system
from netkit.lab.state import PortState
from tests import intents
from tests.lab.personalities.nvue.bench import Desk, RecordingNode, desk, rendered
from tests.lab.running import until


@pytest.fixture
def terminal(tmp_path: Path) -> Desk:
    return desk(tmp_path)


def port(terminal: Desk, name: str) -> PortState:
    return next(port for port in terminal.node.reported[-1].ports if port.name == name)


def apply(terminal: Desk, *lines: str, options: str = "-y") -> tuple[int, str]:
    for line in lines:
        code, printed = terminal.type(f"nv {line}")
        assert code == 0, printed
    return terminal.type(f"nv config apply {options}")


def test_apply_takes_effect_and_saves(terminal: Desk) -> None:
    assert apply(terminal, "set interface swp33s0 link mtu 9000") == (0, "applied_and_saved [rev_id: 3]\n")
    assert port(terminal, "swp33s0").mtu_bytes == 9000
    terminal.restart()
    assert port(terminal, "swp33s0").mtu_bytes == 9000


def test_unsaved_changes_are_lost_after_a_restart(terminal: Desk) -> None:
    apply(terminal, "set system config auto-save state disabled")
    terminal.type("nv config save")
    assert apply(terminal, "set interface swp33s0 link mtu 9000") == (0, "applied [rev_id: 4]\n")
    assert port(terminal, "swp33s0").mtu_bytes == 9000
    terminal.restart()
    assert port(terminal, "swp33s0").mtu_bytes == 9216
    assert terminal.type("nv config diff") == (0, "")


def test_an_unconfirmed_change_reverts_by_itself(terminal: Desk) -> None:
    apply(terminal, "set interface swp33s0 link mtu 9000", options="-y --confirm 1s")
    store = terminal.switch.system.store
    until(lambda: store.revisions[3].state == "ays_fail", "the change is taken back, of which this is the last")
    assert [9000 in {port.mtu_bytes for port in reported.ports} for reported in terminal.node.reported] == [
        False,
        True,
        False,
    ]
    assert terminal.type("nv config diff startup applied") == (0, "")
    assert terminal.switch.system.applier.confirmation is None
    assert terminal.type("nv config apply --confirm-yes")[0] == 1
    assert store.revisions[3].state == "ays_fail"


def test_a_confirmed_change_stays(terminal: Desk) -> None:
    apply(terminal, "set interface swp33s0 link mtu 9000", options="-y --confirm 600s")
    assert terminal.type("nv config apply --confirm-yes") == (0, "applied_and_saved [rev_id: 3]\n")
    terminal.restart()
    assert port(terminal, "swp33s0").mtu_bytes == 9000


def test_a_restart_within_the_window_reverts(terminal: Desk) -> None:
    apply(terminal, "set interface swp33s0 link mtu 9000", options="-y --confirm 600s")
    assert port(terminal, "swp33s0").mtu_bytes == 9000
    terminal.restart()
    assert port(terminal, "swp33s0").mtu_bytes == 9216
    assert terminal.switch.system.store.revisions[3].state == "ays_fail"
    assert terminal.type("nv config apply --confirm-yes")[0] == 1


def test_an_apply_that_the_routing_daemons_refuse_changes_nothing(terminal: Desk) -> None:
    before = terminal.node.reported[-1]
    terminal.node.refusal = "line 7: unknown command"
    code, printed = apply(terminal, "set interface swp33s0 link mtu 9000", "set router bgp graceful-shutdown enabled")
    assert code == 1
    assert printed == (
        "Failure during apply [rev_id: 3]\n"
        "  Unable to reload-or-restart services (frr): Job for frr.service failed. line 7: unknown command\n"
    )
    assert terminal.node.reported[-1] == before
    assert terminal.type("nv show interface swp33s0 link mtu --applied") == (0, "9216\n")


def test_the_account_exists_as_long_as_its_entry(terminal: Desk) -> None:
    passwd = terminal.node.file("/etc/passwd")
    passwd.parent.mkdir(parents=True)
    passwd.write_text("root:x:0\ncumulus:x:0\nsshd:x:7\n", encoding="utf-8")
    assert apply(terminal, "set system aaa user other role system-admin")[0] == 0
    assert passwd.read_text() == "root:x:0\ncumulus:x:0\nsshd:x:7\n"
    assert apply(terminal, "unset system aaa user cumulus")[0] == 0
    assert passwd.read_text() == "root:x:0\nsshd:x:7\n"
    assert terminal.switch.https("GET", "/nvue_v1/system", {}, b"", "cumulus")[0] == 401
    assert apply(terminal, "set system aaa user cumulus role system-admin")[0] == 0
    assert passwd.read_text() == "root:x:0\ncumulus:x:0\nsshd:x:7\n"
    assert terminal.switch.https("GET", "/nvue_v1/system", {}, b"", "cumulus")[0] == 200


def test_an_apply_that_fails_silently_exits_with_0(terminal: Desk) -> None:
    before = terminal.node.reported[-1]
    terminal.switch.fail_apply_quietly = True
    code, printed = apply(terminal, "set interface swp33s0 link mtu 9000")
    assert (code, printed.splitlines()[0]) == (0, "Failure during apply [rev_id: 3]")
    assert terminal.node.reported[-1] == before
    assert terminal.type("nv config diff applied startup") == (0, "")
    terminal.switch.fail_apply_quietly = False
    assert terminal.type("nv config apply -y") == (0, "applied_and_saved [rev_id: 3]\n")
    assert port(terminal, "swp33s0").mtu_bytes == 9000


def test_a_full_flash_stops_an_apply_before_anything_changes(terminal: Desk) -> None:
    reported = list(terminal.node.reported)
    full = terminal.node.saved / "nvue" / "next.new"
    full.symlink_to("/dev/full")
    code, printed = apply(terminal, "set interface swp33s0 link mtu 9000")
    assert (code, printed) == (1, "Error: No space left on device\n")
    assert terminal.node.reported == reported
    assert terminal.type("nv config diff startup applied") == (0, "")
    assert not full.is_symlink()
    assert terminal.type("nv config apply -y") == (0, "applied_and_saved [rev_id: 3]\n")


def test_a_rollback_restores_what_ran(terminal: Desk) -> None:
    before = terminal.node.reported[-1]
    apply(terminal, "set interface swp33s0 link state down", "unset router policy", "unset vrf default router bgp")
    assert terminal.node.reported[-1] != before
    assert terminal.type("nv config apply 2 -y")[0] == 0
    assert terminal.node.reported[-1] == before
    assert terminal.type("nv config diff 2 applied") == (0, "")


def test_a_displayed_secret_can_be_set_again(terminal: Desk) -> None:
    before = terminal.node.reported[-1]
    assert before.snmp is not None
    assert "SNMP_AUTH" in before.snmp.users[0].auth_secret
    _, shown = terminal.type("nv config show")
    assert "SNMP_AUTH" not in shown
    (terminal.files / "shown.yaml").write_text(shown, encoding="utf-8")
    assert terminal.type("nv config replace shown.yaml")[0] == 0
    assert terminal.type("nv config diff") == (0, "")
    assert terminal.type("nv config apply -y")[0] == 0
    assert terminal.node.reported[-1] == before


def test_a_switch_boots_with_factory_defaults(tmp_path: Path) -> None:
    device = intents.fabric(intents.values()).switch("leaf01")
    node = RecordingNode(device, tmp_path / "saved")
    switch = Nvue(node)
    switch.boot()
    reported = node.reported[-1]
    assert (reported.hostname, reported.ports, reported.vlans, reported.loopback_addresses) == ("cumulus", (), (), ())
    assert "router bgp" not in reported.frr


@pytest.mark.parametrize(
    ("before", "after"),
    [("mtu: 9216", "mtu: 99999"), ("peer-group: underlay", "peer-group: nobody"), ("swp1s0:", "swp9s0:")],
)
def test_provisioning_refuses_what_the_switch_would(tmp_path: Path, before: str, after: str) -> None:
    fabric = intents.fabric(intents.values())
    files = {"startup.yaml": rendered(fabric, "leaf01")["startup.yaml"].replace(before, after, 1)}
    with pytest.raises(ConfigRefusedError, match=r"swp|peer-group"):
        Nvue(RecordingNode(fabric.switch("leaf01"), tmp_path)).provision(files)


def test_only_the_last_revisions_are_kept(terminal: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.KEPT == 100
    monkeypatch.setattr(system, "KEPT", 10)
    for mtu in range(1000, 1020):
        apply(terminal, f"set interface swp33s0 link mtu {mtu}")
    kept = terminal.switch.system.store.revisions
    assert (len(kept), min(kept), max(kept)) == (10, 13, 22)
    assert len(list((terminal.node.saved / "nvue" / "revisions").iterdir())) == 10
    terminal.restart()
    assert port(terminal, "swp33s0").mtu_bytes == 1019
