"""NVUE in the lab over REST."""

import json
from pathlib import Path
from typing import Any

import pytest

from netkit.lab.personalities.nvue.tree import Tree, child, load
from tests import intents
from tests.lab.personalities.nvue.bench import Desk, desk, rendered

YES = {"auto-prompt": {"ays": "ays_yes"}}


@pytest.fixture
def terminal(tmp_path: Path) -> Desk:
    return desk(tmp_path)


def call(terminal: Desk, method: str, target: str, body: object = None) -> tuple[int, Any]:
    is_text = isinstance(body, str)
    headers = {"content-type": "text/plain"} if is_text else {}
    raw = b"" if body is None else str(body).encode() if is_text else json.dumps(body).encode()
    status, _, shown = terminal.switch.https(method, f"/nvue_v1{target}", headers, raw)
    return status, json.loads(shown) if shown else None


def begin(terminal: Desk) -> str:
    status, shown = call(terminal, "POST", "/revision")
    assert status == 200
    ((number, revision),) = shown.items()
    assert revision == {"state": "pending", "transition": {"issue": {}, "progress": ""}}
    return str(number)


def apply(terminal: Desk, number: str, **more: object) -> Any:
    status, shown = call(terminal, "PATCH", f"/revision/{number}", {"state": "apply", **YES, **more})
    assert status == 200
    assert call(terminal, "GET", f"/revision/{number}") == (200, shown)
    return shown


def test_a_patch_is_applied_and_saved(terminal: Desk) -> None:
    number = begin(terminal)
    body = {"interface": {"swp33s0": {"link": {"mtu": 9000}, "description": None}}}
    assert call(terminal, "PATCH", f"/?rev={number}", body) == (
        200,
        {"interface": {"swp33s0": {"link": {"mtu": 9000}}}},
    )
    assert call(terminal, "GET", f"/?rev={number}&diff=applied&filled=false") == (
        200,
        {"interface": {"swp33s0": {"link": {"mtu": 9000}, "description": None}}},
    )
    assert call(terminal, "GET", f"/?rev=applied&diff={number}&filled=false") == (
        200,
        {"interface": {"swp33s0": {"link": {"mtu": 9216}, "description": "spine01:swp1s0"}}},
    )
    assert apply(terminal, number)["state"] == "applied_and_saved"
    assert call(terminal, "GET", "/interface/swp33s0/link/mtu?rev=applied") == (200, 9000)
    terminal.restart()
    assert call(terminal, "GET", "/interface/swp33s0/link/mtu?rev=startup") == (200, 9000)


def test_a_whole_configuration_replaces_the_other(terminal: Desk) -> None:
    items = load(
        rendered(intents.fabric(intents.values({"overrides": {"leaf01": {"drain": True}}})), "leaf01")["startup.yaml"]
    )
    assert isinstance(items, list)
    whole: Tree = items[0]["set"]
    whole["system"] = {**child(whole, "system"), "aaa": {"user": {"cumulus": {"role": "system-admin"}}}}
    number = begin(terminal)
    assert call(terminal, "DELETE", f"/?rev={number}") == (204, None)
    assert call(terminal, "PATCH", f"/?rev={number}", whole)[0] == 200
    assert apply(terminal, number)["state"] == "applied_and_saved"
    assert terminal.switch.system.applied == whole
    assert " bgp graceful-shutdown" in terminal.node.reported[-1].frr


def test_a_pending_change_is_confirmed_by_another_apply(terminal: Desk) -> None:
    number = begin(terminal)
    call(terminal, "PATCH", f"/system?rev={number}", {"hostname": "other"})
    shown = apply(
        terminal,
        number,
        **{"auto-prompt": {"ays": "ays_yes", "confirm": "confirm_yes"}, "state-controls": {"confirm": 300}},
    )
    assert shown["state"] == "ays"
    assert call(terminal, "GET", "/system/hostname?rev=startup") == (200, "leaf01")
    assert call(terminal, "PATCH", "/revision/applied", {"state": "save", **YES})[0] == 400
    assert apply(terminal, number)["state"] == "applied_and_saved"
    assert call(terminal, "GET", "/system/hostname?rev=startup") == (200, "other")


def test_an_invalid_revision_reports_where(terminal: Desk) -> None:
    number = begin(terminal)
    call(terminal, "DELETE", f"/router/bgp/router-id?rev={number}")
    assert apply(terminal, number) == {
        "state": "invalid",
        "transition": {
            "issue": {
                "00000": {
                    "code": "config_invalid",
                    "data": {
                        "location": "router.bgp.enable",
                        "reason": "BGP requires router-id to be set globally or in the VRF.",
                    },
                    "message": "Config invalid at router.bgp.enable: "
                    "BGP requires router-id to be set globally or in the VRF.",
                    "severity": "error",
                }
            },
            "progress": "Invalid config",
        },
    }


def test_without_confirmation_nothing_is_applied(terminal: Desk) -> None:
    number = begin(terminal)
    call(terminal, "PATCH", f"/system?rev={number}", {"hostname": "other"})
    status, shown = call(terminal, "PATCH", f"/revision/{number}", {"state": "apply"})
    assert (status, shown["state"]) == (200, "ays")
    assert call(terminal, "GET", "/system/hostname?rev=applied") == (200, "leaf01")


def test_a_list_of_commands_is_a_patch_too(terminal: Desk) -> None:
    number = begin(terminal)
    lines = "nv set interface swp33s0-1 link mtu 9000\nnv unset interface swp33s0 description\n"
    assert call(terminal, "PATCH", f"/?rev={number}", lines) == (200, {})
    assert apply(terminal, number)["state"] == "applied_and_saved"
    assert call(terminal, "GET", "/interface/swp33s1/link/mtu?rev=applied") == (200, 9000)


def test_only_included_parts_are_sent(terminal: Desk) -> None:
    status, shown = call(terminal, "GET", "/interface?include=/*/link/oper-status&include=/swp33s0/type")
    assert status == 200
    assert shown["swp33s0"] == {"link": {"oper-status": "up"}, "type": "swp"}
    assert shown["swp33s1"] == {"link": {"oper-status": "up"}}
    assert call(terminal, "GET", "/vrf/mgmt/router/static/0.0.0.0%2F0/via/192.0.2.1/type") == (200, "ipv4-address")


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("GET", "/nonsense", None, 404),
        ("GET", "/interface/swp99", None, 404),
        ("GET", "/?rev=99", None, 404),
        ("GET", "/revision/99", None, 404),
        ("PUT", "/interface", {}, 405),
        ("PATCH", "/?rev=99", {}, 404),
        ("PATCH", "/?rev=2", {"system": {"hostname": "x"}}, 400),
        ("PATCH", "/?rev=3", {"system": {"hostnam": "x"}}, 400),
        ("PATCH", "/?rev=3", ["nonsense"], 400),
        ("PATCH", "/?rev=3", "nv rm -rf /", 400),
        ("PATCH", "/nonsense?rev=3", {}, 400),
        ("PATCH", "/revision/3", {"state": "fly"}, 400),
        ("PATCH", "/revision/3", None, 400),
        ("DELETE", "/nonsense?rev=3", None, 404),
    ],
)
def test_malformed_requests_are_refused(terminal: Desk, method: str, target: str, body: object, status: int) -> None:
    assert begin(terminal) == "3"
    found, shown = call(terminal, method, target, body)
    assert (found, shown["status"]) == (status, status)


def test_secrets_do_not_leave_the_switch(terminal: Desk) -> None:
    assert "SNMP_AUTH" in str(terminal.switch.system.applied)
    for target in ("/?rev=applied", "/system", "/?rev=empty&diff=applied", "/system/snmp-server"):
        status, shown = call(terminal, "GET", target)
        assert status == 200
        assert "SNMP_AUTH" not in str(shown), target


def test_older_releases_answer_a_delete_with_a_body(tmp_path: Path) -> None:
    older = desk(tmp_path, "5.9.2")
    number = begin(older)
    assert call(older, "DELETE", f"/interface/swp33s0?rev={number}") == (200, {})


def test_what_is_not_json_is_refused(terminal: Desk) -> None:
    for body in (b"{", b"\xff\xfe"):
        assert terminal.switch.https("PATCH", "/nvue_v1/?rev=3", {}, body)[0] == 400


def test_a_disabled_api_does_not_answer(terminal: Desk) -> None:
    number = begin(terminal)
    assert call(terminal, "PATCH", f"/system/api?rev={number}", {"state": "disabled"})[0] == 200
    apply_body = json.dumps({"state": "apply", **YES}).encode()
    assert terminal.switch.https("PATCH", f"/nvue_v1/revision/{number}", {}, apply_body)[0] == 200
    assert terminal.switch.https("GET", "/nvue_v1/system", {}, b"")[0] == 503
