"""How changes are applied to a device: the least disruptive strategy it supports, with its steps and risks."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from netkit.platforms.change import NOTHING, REFUSED, Risk, Strategy
from netkit.platforms.compare import ConfigModel, Situation, compare
from netkit.platforms.eos.model import MODEL as EOS
from netkit.platforms.frr.model import MODEL as FRR
from netkit.platforms.linux.model import CLASS_CHANGES
from netkit.platforms.linux.model import MODEL as LINUX
from netkit.platforms.nvue.model import MODEL as NVUE
from netkit.platforms.sonic.model import MODEL as SONIC
from netkit.platforms.sonic.strategy import PATCH_S, patch_s
from tests.platforms.samples import samples

Tables = dict[str, dict[str, dict[str, Any]]]


def chosen(model: ConfigModel, running: dict[str, str], intended: dict[str, str], version: str = "") -> Strategy:
    found = compare(model, dict(running), intended)
    return model.strategy(Situation(found.changes, found.running, found.intended, version))


def sonic(edit: Callable[[Tables], object], version: str = "202411", hwsku: str = "Mellanox-SN5600-O128") -> Strategy:
    """The strategy of SONiC from its sample to an edited one."""
    text = samples("sonic")["202411/plain/leaf01"]["config_db.json"].replace("Mellanox-SN5600-O128", hwsku)
    tables = json.loads(text)
    edit(tables)
    return chosen(SONIC, {"config_db.json": text}, {"config_db.json": json.dumps(tables)}, version)


def test_without_changes_there_is_nothing_to_do() -> None:
    for model, name in ((NVUE, "nvue"), (SONIC, "sonic"), (EOS, "eos"), (FRR, "frr"), (LINUX, "linux")):
        files = dict(next(iter(samples(name).values())))
        assert chosen(model, files, files) == Strategy(NOTHING)


TAKEN: list[tuple[str, Callable[[Tables], object]]] = [
    ("mtu", lambda db: db["PORT"]["Ethernet0"].update(mtu="9100")),
    ("cable", lambda db: db["CABLE_LENGTH"]["AZURE"].update(Ethernet0="5m")),
    ("dscp", lambda db: db["DSCP_TO_TC_MAP"]["AZURE"].update({"26": "4"})),
    ("weight", lambda db: db["SCHEDULER"]["scheduler.roce"].update(weight="80")),
    ("green", lambda db: db["WRED_PROFILE"]["AZURE_LOSSLESS"].update(green_max_threshold="900000")),
    ("watchdog", lambda db: db["PFC_WD"]["Ethernet0"].update(detection_time="400")),
    ("watchdog row", lambda db: db["PFC_WD"].pop("Ethernet0")),
]


@pytest.mark.parametrize("hwsku", ["Mellanox-SN5600-O128", "ACS-MSN4700"])
@pytest.mark.parametrize("edit", [edit for _, edit in TAKEN], ids=[name for name, _ in TAKEN])
def test_sonic_patches_what_the_updater_accepts(edit: Callable[[Tables], object], hwsku: str) -> None:
    way = sonic(edit, hwsku=hwsku)
    assert (way.method, way.reasons, way.costs, way.risk) == ("patch", (), (), Risk.NONE)


SN5600, TH5, WHITE_BOX = "Mellanox-SN5600-O128", "Arista-7060X6-64PE-O128S2", "White-Box-TH5"
REFUSALS: list[tuple[str, str, Callable[[Tables], object], str]] = [
    (
        "202411",
        SN5600,
        lambda db: db["WRED_PROFILE"]["AZURE_LOSSLESS"].update(red_max_threshold="9"),
        "WRED_PROFILE: before 202511",
    ),
    ("202411", SN5600, lambda db: db["WRED_PROFILE"].update(other={"ecn": "ecn_all"}), "WRED_PROFILE: before 202511"),
    (
        "202411",
        SN5600,
        lambda db: db["BUFFER_PROFILE"]["q_lossy_profile"].update(dynamic_th="1"),
        "BUFFER_PROFILE|q_lossy_profile: ",
    ),
    (
        "202511",
        SN5600,
        lambda db: db["BUFFER_POOL"]["egress_lossless_pool"].update(size="1"),
        "BUFFER_POOL|egress_lossless_pool: ",
    ),
    (
        "202411",
        SN5600,
        lambda db: db["BUFFER_POOL"]["egress_lossless_pool"].update(size="1"),
        "BUFFER_POOL|egress_lossless_pool: ",
    ),
    ("202411", SN5600, lambda db: db["PFC_WD"].pop("GLOBAL"), "PFC_WD|GLOBAL: the updater never removes it"),
    (
        "202411",
        SN5600,
        lambda db: db["LOOPBACK_INTERFACE"].pop("Loopback0"),
        "LOOPBACK_INTERFACE|Loopback0: the updater never removes it",
    ),
    (
        "202411",
        SN5600,
        lambda db: db["PORT"]["Ethernet0"].update(lanes="9"),
        "PORT|Ethernet0: lanes is fixed when the row is created",
    ),
    ("202411", SN5600, lambda db: db["BREAKOUT_CFG"]["Ethernet0"].update(brkout_mode="1x800G"), "BREAKOUT_CFG: "),
    (
        "202411",
        SN5600,
        lambda db: db["DEVICE_METADATA"]["localhost"].update(buffer_model="traditional"),
        "DEVICE_METADATA: buffer_model ",
    ),
    (
        "202411",
        WHITE_BOX,
        lambda db: db["PFC_WD"].pop("Ethernet0"),
        "PFC_WD: the updater refuses every change of it on this hwsku",
    ),
    (
        "202411",
        WHITE_BOX,
        lambda db: db["WRED_PROFILE"]["AZURE_LOSSLESS"].update(green_max_threshold="9"),
        "WRED_PROFILE: before 202511",
    ),
    (
        "202405",
        TH5,
        lambda db: db["PFC_WD"].pop("Ethernet0"),
        "PFC_WD: the updater refuses every change of it on this hwsku",
    ),
]


@pytest.mark.parametrize(("version", "hwsku", "edit", "reason"), REFUSALS)
def test_sonic_reloads_what_the_updater_refuses(
    version: str, hwsku: str, edit: Callable[[Tables], object], reason: str
) -> None:
    way = sonic(edit, version, hwsku)
    assert (way.method, way.risk) == ("reload", Risk.REBOOT)
    assert way.reasons[0].startswith(reason)
    assert way.costs == ("config reload: every container stops and starts; the switch forwards nothing for minutes",)


def test_sonic_202511_frees_wred_and_profiles() -> None:
    assert (
        sonic(lambda db: db["WRED_PROFILE"].update(other={"ecn": "ecn_all"}), "202511", "White-Box-TH5").method
        == "patch"
    )
    way = sonic(lambda db: db["BUFFER_PROFILE"]["q_lossy_profile"].update(dynamic_th="1"), "202511")
    assert way.method == "patch"


ROW = {"pool": "egress_lossy_pool", "size": "0", "dynamic_th": "1"}


@pytest.mark.parametrize("hwsku", [SN5600, WHITE_BOX])
@pytest.mark.parametrize(
    "edit",
    [
        lambda db: db["BUFFER_PROFILE"].update(other=ROW),
        lambda db: db["BUFFER_PROFILE"].pop("q_lossy_profile"),
    ],
    ids=["added", "removed"],
)
def test_sonic_202511_patches_rows_of_buffer_profiles(edit: Callable[[Tables], object], hwsku: str) -> None:
    way = sonic(edit, "202511", hwsku)
    assert (way.method, way.reasons, way.costs) == ("patch", (), ())
    assert sonic(edit, "202505", hwsku).method == "reload"


def test_sonic_does_not_patch_a_whole_table_of_buffer_profiles() -> None:
    assert sonic(lambda db: db.pop("BUFFER_PROFILE"), "202511").method == "reload"


@pytest.mark.parametrize("field", ["asn", "name", "local_addr", "holdtime", "keepalive"])
def test_sonic_recreates_a_neighbor_by_patch(field: str) -> None:
    metadata = {"DEVICE_METADATA": {"localhost": {"hwsku": SN5600}}}
    before, after = ({**metadata, "BGP_NEIGHBOR": {"default|Ethernet256": {field: value}}} for value in "12")
    way = chosen(SONIC, {"config_db.json": json.dumps(before)}, {"config_db.json": json.dumps(after)}, "202511")
    assert (way.method, way.reasons) == ("patch", ())


@pytest.mark.parametrize(
    ("hwsku", "version", "method"),
    [
        ("ACS-SN5600", "202305", "patch"),
        (SN5600, "202305", "reload"),
        (SN5600, "202311", "patch"),
        (TH5, "202405", "reload"),
        (TH5, "202411", "patch"),
    ],
)
def test_sonic_knows_an_asic_from_the_branch_that_lists_its_hwsku(hwsku: str, version: str, method: str) -> None:
    assert sonic(lambda db: db["PFC_WD"]["Ethernet0"].update(detection_time="400"), version, hwsku).method == method


def test_sonic_cannot_create_the_watchdog_table_by_patch() -> None:
    text = samples("sonic")["202411/plain/leaf01"]["config_db.json"]
    tables = json.loads(text)
    del tables["PFC_WD"]
    way = chosen(SONIC, {"config_db.json": json.dumps(tables)}, {"config_db.json": text}, "202511")
    assert way.reasons == ("PFC_WD: the updater cannot create this table",)


def test_sonic_reports_which_ports_flap() -> None:
    way = sonic(lambda db: db["PORT_QOS_MAP"]["Ethernet4"].update(pfc_enable="3,4"))
    assert way.method == "patch"
    assert way.costs == ("the updater shuts these ports and opens them again, one after the other: Ethernet4",)


def test_sonic_reports_what_needs_a_reload_to_roll_back() -> None:
    metadata = {"DEVICE_METADATA": {"localhost": {"hwsku": "Mellanox-SN5600-O128"}}}
    with_row = {"config_db.json": json.dumps({**metadata, "PFC_WD": {"Ethernet0": {"action": "drop"}}})}
    way = chosen(SONIC, with_row, {"config_db.json": json.dumps(metadata)}, "202411")
    (cost,) = way.costs
    assert way.method == "patch"
    assert cost.startswith("reverting, by rollback or for want of a confirmation, takes a config reload")
    assert cost.endswith("PFC_WD: the updater cannot create this table")


def test_sonic_reloads_rather_than_flap_for_minutes() -> None:
    def edit(db: Tables) -> None:
        for number in range(64):
            db["QUEUE"][f"Ethernet{number * 8}|3"] = {"scheduler": "scheduler.control"}

    way = sonic(edit)
    assert way.method == "reload"
    assert way.reasons == ("a patch that flaps 64 ports takes the updater about 593 s",)


def test_a_patch_takes_longer_with_every_port() -> None:
    assert [patch_s(ports) for ports, _ in PATCH_S] == [seconds for _, seconds in PATCH_S]
    times = [patch_s(ports) for ports in range(200)]
    assert times == sorted(times)
    assert patch_s(128) == pytest.approx(4 * 593.0)


def test_sonic_refuses_to_become_another_switch() -> None:
    way = sonic(lambda db: db["DEVICE_METADATA"]["localhost"].update(hwsku="Other"))
    assert (way.method, way.steps) == (REFUSED, ())
    assert way.is_refused


def test_sonic_routing_alone_needs_no_patch() -> None:
    files = dict(samples("sonic")["202411/plain/leaf01"])
    running = {**files, "frr.conf": files["frr.conf"].replace("timers bgp 3 9", "timers bgp 1 3")}
    way = chosen(SONIC, running, files, "202411")
    assert (way.method, len(way.steps)) == ("patch", 1)
    assert way.steps[0].startswith("frr-reload.py")


def nvue(before: str, after: str, version: str = "5.16.1") -> Strategy:
    files = dict(samples("nvue")["5.16.1/full/leaf01"])
    assert before in files["startup.yaml"]
    return chosen(NVUE, {"startup.yaml": files["startup.yaml"].replace(before, after)}, files, version)


def test_nvue_patches_in_one_step() -> None:
    way = nvue("hostname: leaf01", "hostname: other")
    assert (way.method, len(way.steps), way.costs) == ("patch", 1, ())


def test_nvue_takes_two_steps_where_ports_of_a_cage_are_removed() -> None:
    way = nvue("            2x: {}", "            4x: {}")
    assert [step.partition(" ")[0] for step in way.steps] == ["remove", "change"]
    assert "swp1, swp33" in way.steps[0]


@pytest.mark.parametrize(
    ("before", "after", "version", "cost"),
    [
        ("cable-length: 30", "cable-length: 40", "5.16.1", "QoS: switchd reloads, with brief loss on every port"),
        ("polling-interval: 100", "polling-interval: 200", "5.16.1", "PFC watchdog: switchd reloads"),
        (
            "      adaptive-routing:\n        state: enabled",
            "      adaptive-routing:\n        state: disabled",
            "5.16.1",
            "adaptive routing: switchd reloads, with brief loss on every port",
        ),
        (
            "      adaptive-routing:\n        state: enabled",
            "      adaptive-routing:\n        state: disabled",
            "5.12.1",
            "adaptive routing: up to 5.12 switchd restarts, and traffic stops for seconds",
        ),
    ],
)
def test_nvue_reports_what_restarts(before: str, after: str, version: str, cost: str) -> None:
    assert nvue(before, after, version).costs == (cost,)


def test_nvue_restarts_frr_when_bfd_is_added_or_removed() -> None:
    assert nvue(
        "min-tx-interval: 300\n        state: enabled", "min-tx-interval: 300\n        state: disabled"
    ).costs == ("BFD on or off: FRR restarts, and every BGP session with it",)


def test_eos_reports_that_another_routing_model_needs_a_reload() -> None:
    files = dict(samples("eos")["4.35.1F/plain/leaf01"])
    running = {"eos.cfg": files["eos.cfg"].replace("multi-agent", "ribd")}
    found = compare(EOS, dict(running), files)
    assert [change.risk for change in found.changes] == [Risk.REBOOT]
    way = chosen(EOS, running, files)
    assert (way.method, way.costs) == ("session", ("another routing model takes effect only after a reload",))


def test_frr_sets_up_interfaces_before_routing() -> None:
    files = dict(samples("frr")["8.4.4/plain/leaf01"])
    running = {
        **files,
        "frr.conf": files["frr.conf"].replace("timers bgp 3 9", "timers bgp 1 3"),
        "netplan.yaml": files["netplan.yaml"].replace("9216", "9000"),
        "daemons": files["daemons"].replace("pathd=no", "pathd=yes"),
    }
    way = chosen(FRR, running, files)
    assert [step.split()[1] for step in way.steps[:2]] == ["netplan.yaml,", "daemons,"]
    assert way.steps[2].startswith("frr-reload.py")


def test_frr_reports_what_stays_in_the_kernel() -> None:
    files = dict(samples("frr")["8.4.4/plain/leaf01"])
    less = {**files, "sysctl.conf": files["sysctl.conf"].replace("net.ipv4.conf.all.arp_announce = 2\n", "")}
    assert chosen(FRR, less, files).costs == ()
    assert chosen(FRR, files, less).costs == (
        "sysctl.conf: the kernel keeps settings that are removed from it until a reboot",
    )


def test_files_are_staged_on_hosts_before_any_is_changed() -> None:
    files = dict(samples("linux")["5.16.1/plain/gpu01"])
    running = {**files, "nccl.conf": files["nccl.conf"].replace("106", "96")}
    way = chosen(LINUX, running, files)
    assert way.steps[0] == "files staged on all hosts of a batch"
    assert way.costs == (CLASS_CHANGES, "running jobs keep the settings they started with")


def test_another_class_of_roce_is_named_on_hosts_that_have_one() -> None:
    files = dict(samples("linux")["5.16.1/plain/gpu01"])
    moved = {**files, "netkit-nic-qos": files["netkit-nic-qos"].replace("PRIORITY=3", "PRIORITY=4")}
    assert moved != files
    assert CLASS_CHANGES in chosen(LINUX, files, moved).costs
    weighted = {**files, "netkit-nic-qos": files["netkit-nic-qos"].replace("3:90", "3:80")}
    assert weighted != files
    assert CLASS_CHANGES not in chosen(LINUX, files, weighted).costs
    assert CLASS_CHANGES not in chosen(LINUX, {}, files).costs
