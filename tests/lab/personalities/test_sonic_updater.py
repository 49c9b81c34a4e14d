"""The generic updater of SONiC in the lab: permissions, order of steps, and flapping ports."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.sonic.schema import Rows, schema
from netkit.lab.personalities.sonic.tables import Tables, dump, natural, parse
from netkit.lab.personalities.sonic.updater import change, difference, patched, permissions
from netkit.lab.state import SwitchState
from tests.lab.personalities.sonic.bench import TRADITIONAL, UNIFIED, Bench, fabric, files

SN5600, TH5, UNLISTED = "Mellanox-SN5600-O128", "Arista-7060X6-64PE", "DS5000"
WRED = "WRED_PROFILE/AZURE_LOSSLESS"


def replace(path: str, value: object) -> dict[str, object]:
    return {"op": "replace", "path": path, "value": value}


def add(path: str, value: object) -> dict[str, object]:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> dict[str, object]:
    return {"op": "remove", "path": path}


def steps(said: str) -> str:
    return "\n".join(line.partition("* ")[2] for line in said.splitlines() if "   * " in line)


def running(version: str = "202411", *, hwsku: str = SN5600) -> Tables:
    changes: dict[str, Any] = TRADITIONAL if hwsku == TH5 else {}
    tables = parse(files(fabric(version, changes), "leaf01")["config_db.json"])
    tables["DEVICE_METADATA"]["localhost"]["hwsku"] = hwsku
    return tables


def is_let_in(operation: dict[str, object], branch: int, hwsku: str) -> bool:
    tables = running(str(branch), hwsku=hwsku)
    try:
        change(tables, patched(tables, [operation]), schema(branch), permissions(branch, hwsku))
    except ConfigRefusedError as refused:
        return "not permitted" not in str(refused)
    return True


PORT_QOS = replace("/PORT_QOS_MAP/Ethernet0/pfc_enable", "4")
GREEN = replace(f"/{WRED}/green_min_threshold", "160000")
RED = replace(f"/{WRED}/red_min_threshold", "160000")
NEW_WRED = add("/WRED_PROFILE/AZURE_LOSSY", {"ecn": "ecn_none"})
WATCHDOG_ROW = remove("/PFC_WD/Ethernet0")
POLL = replace("/PFC_WD/GLOBAL/POLL_INTERVAL", "200")
POOL = replace("/BUFFER_POOL/egress_lossless_pool/size", "1000000")
PROFILE = replace("/BUFFER_PROFILE/egress_lossy_profile/dynamic_th", "1")
NEW_PROFILE = add("/BUFFER_PROFILE/other", {"pool": "egress_lossless_pool", "size": "0", "dynamic_th": "1"})
ALWAYS = [
    replace("/PORT/Ethernet0/mtu", "9000"),
    replace("/PORT/Ethernet0/description", "x"),
    replace("/CABLE_LENGTH/AZURE/Ethernet0", "5m"),
    replace("/SCHEDULER/scheduler.roce/weight", "80"),
    replace("/DSCP_TO_TC_MAP/AZURE/5", "3"),
    remove("/INTERFACE/Ethernet0|10.128.0.0~131"),
    PORT_QOS,
]
MATRIX = [
    (
        GREEN,
        {(202405, SN5600), (202411, SN5600), (202411, TH5), (202505, SN5600), (202511, SN5600), (202511, UNLISTED)},
    ),
    (RED, {(202511, SN5600), (202511, TH5), (202511, UNLISTED)}),
    (NEW_WRED, {(202511, SN5600), (202511, UNLISTED)}),
    (WATCHDOG_ROW, {(202405, SN5600), (202411, TH5), (202411, SN5600), (202511, SN5600)}),
    (POLL, {(202405, SN5600), (202411, SN5600), (202505, TH5), (202511, SN5600)}),
    (POOL, set()),
    (PROFILE, {(202511, SN5600), (202511, TH5)}),
    (NEW_PROFILE, {(202511, SN5600), (202511, UNLISTED)}),
]


@pytest.mark.parametrize("operation", ALWAYS, ids=lambda operation: operation["path"])
@pytest.mark.parametrize("hwsku", [SN5600, UNLISTED])
@pytest.mark.parametrize("branch", [202405, 202411, 202505, 202511])
def test_most_changes_are_allowed_on_every_model(branch: int, hwsku: str, operation: dict[str, object]) -> None:
    assert is_let_in(operation, branch, hwsku)


@pytest.mark.parametrize(
    ("operation", "allowed"), MATRIX, ids=lambda value: str(value.get("path")) if isinstance(value, dict) else ""
)
def test_lossless_tables_are_protected_by_branch_and_model(
    operation: dict[str, object], allowed: set[tuple[int, str]]
) -> None:
    for branch, hwsku in allowed:
        assert is_let_in(operation, branch, hwsku), (branch, hwsku)
    for branch, hwsku in {(202405, TH5), (202411, UNLISTED), (202405, UNLISTED), (202411, SN5600)} - allowed:
        assert not is_let_in(operation, branch, hwsku), (branch, hwsku)


def test_watchdog_table_can_be_removed_but_not_created(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    rows = bench.sonic.running["PFC_WD"]
    assert bench.patch(remove("/PFC_WD"))[0] == 0
    code, _, said = bench.patch(add("/PFC_WD", rows))
    assert (code, "Modification of PFC_WD (add) is illegal" in said) == (2, True)
    bench.type("config checkpoint without")
    assert "PFC_WD" not in bench.sonic.running


def test_a_rollback_can_be_refused_and_a_reload_cannot(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    before = dump(bench.sonic.running)
    bench.type("config save -y")
    bench.type("config checkpoint before")
    assert bench.patch(remove("/PFC_WD"))[0] == 0
    code, _, said = bench.type("config rollback before --dry-run")
    assert (code, "is illegal" in said) == (2, True)
    assert bench.type("config reload -y")[0] == 0
    assert dump(bench.sonic.running) == before


def test_watchdog_rows_can_be_created_while_the_global_row_exists(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    before, state = dump(bench.sonic.running), bench.node.states[-1]
    bench.type("config checkpoint before")
    gone = [remove(f"/PFC_WD/{key}") for key in bench.sonic.running["PFC_WD"] if key != "GLOBAL"]
    assert bench.patch(*gone)[0] == 0
    assert all(port.qos.watchdog is None for port in bench.node.states[-1].ports)
    code, said, _ = bench.type("config rollback before")
    assert (code, said.splitlines()[-1]) == (0, "Config rolled back successfully.")
    assert (dump(bench.sonic.running), bench.node.states[-1]) == (before, state)


@pytest.mark.parametrize("path", ["/PFC_WD/GLOBAL", "/LOOPBACK_INTERFACE/Loopback0"])
def test_some_rows_must_stay(tmp_path: Path, path: str) -> None:
    bench = Bench(tmp_path, fabric())
    extra = [remove("/LOOPBACK_INTERFACE/Loopback0|10.255.0.1~132"), add("/LOOPBACK_INTERFACE/Loopback1", {})]
    code, _, said = bench.patch(*(extra if "LOOPBACK" in path else []), remove(path))
    assert (code, "must stay" in said) == (2, True), said


def test_lanes_cannot_be_changed(tmp_path: Path) -> None:
    code, _, said = Bench(tmp_path, fabric()).patch(replace("/PORT/Ethernet0/lanes", "500,501,502,503"))
    assert (code, "lanes are set when a port is created" in said) == (2, True)


@pytest.mark.parametrize(
    "operation",
    [
        PORT_QOS,
        replace("/QUEUE/Ethernet0|3/scheduler", "scheduler.best-effort"),
        remove("/BUFFER_PG/Ethernet0|0"),
        remove("/BUFFER_QUEUE/Ethernet0|0-2"),
        remove("/BUFFER_PORT_INGRESS_PROFILE_LIST/Ethernet0"),
    ],
    ids=lambda operation: operation["path"],
)
def test_a_queue_row_takes_its_port_down_and_up(tmp_path: Path, operation: dict[str, object]) -> None:
    bench = Bench(tmp_path, fabric())
    code, said, _ = bench.patch(operation)
    shown = steps(said).splitlines()
    assert (code, len(shown)) == (0, 3)
    shut = '[{"op": "replace", "path": "/PORT/Ethernet0/admin_status", "value": "%s"}]'
    assert (shown[0], shown[2]) == (shut % "down", shut % "up")
    _, down, up = bench.node.states
    assert {port.name for port in up.ports if port.is_enabled} - {
        port.name for port in down.ports if port.is_enabled
    } == {"Ethernet0"}


def test_a_port_that_is_down_does_not_flap(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    assert bench.patch({"op": "replace", "path": "/PORT/Ethernet0/admin_status", "value": "down"})[0] == 0
    count = len(bench.node.states)
    assert bench.patch(PORT_QOS)[0] == 0
    assert len(bench.node.states) == count + 1


def test_steps_add_referenced_rows_first_and_remove_them_last(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric("202511"))
    together = [
        replace("/QUEUE/Ethernet0|3/wred_profile", "OTHER"),
        add("/WRED_PROFILE/OTHER", {"ecn": "ecn_none"}),
    ]
    said = steps(bench.patch(*together, options="--dry-run")[1])
    assert said.index('"/WRED_PROFILE/OTHER"') < said.index('"/QUEUE/Ethernet0|3/wred_profile"')
    bench.patch(*together)
    back = [remove("/WRED_PROFILE/OTHER"), replace("/QUEUE/Ethernet0|3/wred_profile", "AZURE_LOSSLESS")]
    said = steps(bench.patch(*back, options="--dry-run")[1])
    assert said.index('"/QUEUE/Ethernet0|3/wred_profile"') < said.index('"/WRED_PROFILE/OTHER"')


def test_a_neighbor_with_another_as_number_is_recreated(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric("202511", UNIFIED))
    _, said, _ = bench.patch(replace("/BGP_NEIGHBOR/default|Ethernet256/asn", "4200000009"))
    assert [json.loads(step)[0]["op"] for step in steps(said).splitlines()] == ["remove", "add"]
    assert "neighbor Ethernet256 remote-as 4200000009" in bench.node.states[-1].frr


def test_dry_run_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    before, count = dump(bench.sonic.running), len(bench.node.states)
    code, said, _ = bench.patch(PORT_QOS, options="--dry-run")
    assert (code, "** DRY RUN EXECUTION **" in said) == (0, True)
    assert (dump(bench.sonic.running), len(bench.node.states)) == (before, count)


def test_a_patch_is_not_saved_and_a_checkpoint_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    assert bench.patch(replace("/PORT/Ethernet0/mtu", "9000"))[0] == 0
    bench.type("config checkpoint small-mtu")
    bench.sonic.boot()
    assert bench.sonic.running["PORT"]["Ethernet0"]["mtu"] == "9216"
    assert json.loads(bench.type("config list-checkpoints")[1]) == ["small-mtu"]
    assert bench.type("config rollback small-mtu")[0] == 0
    assert bench.type("config save -y")[0] == 0
    bench.sonic.boot()
    assert bench.sonic.running["PORT"]["Ethernet0"]["mtu"] == "9000"
    assert bench.type("config delete-checkpoint small-mtu")[0] == 0
    assert bench.type("config rollback small-mtu")[0] == 2


def test_an_empty_patch_validates_the_running_configuration(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    assert bench.patch()[0] == 0
    bench.sonic.running["PORT"]["Ethernet0"]["colour"] = "red"
    code, _, said = bench.patch()
    assert (code, "PORT|Ethernet0: unknown field colour" in said) == (2, True)


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (replace("/PORT/Ethernet999/mtu", "9000"), "Ethernet999"),
        (remove("/PORT/Ethernet0/colour"), "colour"),
        (replace("/PORT/Ethernet0/mtu", 9000), "expected a text or a list of texts"),
        (remove("/PORT/Ethernet0"), "does not fit the key: row PORT"),
        ({"op": "test", "path": "/PORT/Ethernet0/mtu", "value": "1"}, "JsonPatchTestFailed"),
        ({"op": "rename", "path": "/PORT"}, "rename"),
        ({"path": "/PORT"}, "'op'"),
        (add("/VLAN", {}), "empty tables"),
        (replace("", []), "expected an object of tables"),
    ],
)
def test_inapplicable_patches_change_nothing(tmp_path: Path, operation: dict[str, object], reason: str) -> None:
    bench = Bench(tmp_path, fabric())
    before = dump(bench.sonic.running)
    code, _, said = bench.patch(operation)
    assert (code, reason in said) == (2, True), said
    assert dump(bench.sonic.running) == before


def test_faults_of_the_updater(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    before = dump(bench.sonic.running)
    bench.type("config checkpoint before")
    bench.sonic.fail_apply_quietly = True
    assert bench.patch(PORT_QOS)[::2] == (0, "Patch Applier: localhost: the changes did not reach ConfigDb\n")
    bench.node.file("/etc/sonic/config_db.json").write_text(json.dumps(bench.sonic.running | {"FEATURE": {}}))
    assert bench.type("config reload -y")[::2] == (
        0,
        "Job for swss.service failed because the control process exited with error code.\n",
    )
    assert dump(bench.sonic.running) == before
    bench.sonic.fail_apply_quietly = False
    bench.sonic.fail_after_steps = 1
    code, _, said = bench.patch(PORT_QOS)
    assert (code, "still some parts not updated" in said) == (2, True)
    assert bench.sonic.running["PORT"]["Ethernet0"]["admin_status"] == "down"
    bench.sonic.fail_after_steps = None
    bench.sonic.refuse_rollback = True
    assert bench.type("config rollback before")[0] == 2


def test_a_failed_reload_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, fabric())
    before, realise = bench.node.states[-1], bench.node.realise

    def picky(state: SwitchState) -> None:
        if state.hostname == "broken":
            raise ConfigRefusedError("no such name")
        realise(state)

    monkeypatch.setattr(bench.node, "realise", picky)
    tables = json.loads(json.dumps(bench.sonic.running))
    tables["DEVICE_METADATA"]["localhost"] |= {"hostname": "broken", "docker_routing_config_mode": "separated"}
    bench.node.file("/home/admin/other.json").write_text(json.dumps(tables))
    code, _, said = bench.type("config reload -y /home/admin/other.json")
    assert (code, "no such name" in said) == (1, True), said
    assert bench.node.states[-1] == before
    assert bench.patch(replace("/PORT/Ethernet0/description", "later"))[0] == 0
    assert bench.node.states[-1].frr == before.frr


def test_a_full_disk_loses_no_saved_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, fabric())
    file = bench.node.file("/etc/sonic/config_db.json")
    before = file.read_text()

    def is_full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", is_full)
    for line in ("config save -y", "config checkpoint full", "config save -y /home/admin/other.json"):
        code, _, said = bench.type(line)
        assert (code, "No space left on device" in said) == (1, True)
    monkeypatch.undo()
    assert file.read_text() == before
    assert json.loads(bench.type("config list-checkpoints")[1]) == []


def test_settings_read_at_container_start_wait_for_a_restart(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    state = bench.node.states[-1]
    assert bench.patch(replace("/DEVICE_METADATA/localhost/docker_routing_config_mode", "separated"))[0] == 0
    assert bench.node.states[-1] == state
    assert bench.type("systemctl restart bgp")[0] == 0
    assert "router bgp" not in bench.node.states[-1].frr


def test_golden_file_resets_the_routing_mode(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric())
    golden = {"DEVICE_METADATA": {"localhost": {"docker_routing_config_mode": "separated"}}}
    bench.node.file("/etc/sonic/golden_config_db.json").write_text(json.dumps(golden))
    assert bench.type("config reload -y")[0] == 0
    assert bench.sonic.running["DEVICE_METADATA"]["localhost"]["docker_routing_config_mode"] == "separated"
    assert "router bgp" not in bench.node.states[-1].frr


def test_names_have_natural_sort_order() -> None:
    names = ["Ethernet64", "Ethernet8", "Vlan100", "Ethernet0|10", "Ethernet0|9", "AZURE", "10.0.0.1", "", "8"]
    assert sorted(names, key=natural) == [
        "",
        "8",
        "10.0.0.1",
        "AZURE",
        "Ethernet0|9",
        "Ethernet0|10",
        "Ethernet8",
        "Ethernet64",
        "Vlan100",
    ]


LEAVES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2", "x/y", "~"]), max_size=3)
TABLES = st.dictionaries(
    st.sampled_from(["T", "U/V", "W~"]),
    st.dictionaries(st.sampled_from(["r", "s|1", "10.0.0.0/31"]), LEAVES, min_size=1, max_size=3),
    max_size=3,
)


@given(before=TABLES, after=TABLES)
def test_the_edits_between_two_states_are_a_patch_from_one_to_the_other(before: Tables, after: Tables) -> None:
    operations = [edit.as_json() for edit in difference(before, after)]
    assert patched(before, operations) == after
    assert bool(operations) == (before != after)


def test_rows_reference_each_other() -> None:
    rows = Rows(running())
    assert "Ethernet0" in rows.names("PORT")
    assert rows.names("NOTHING") == frozenset()
