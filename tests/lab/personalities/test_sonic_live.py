"""SONiC switches of a running lab over SSH, with real FRR."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.design import Fabric
from tests import intents
from tests.lab.personalities.sonic.bench import UNIFIED, files
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.lanes import daily

pytestmark = needs_lab

LEAF, UPLINK = "leaf01", "Ethernet256"
DUMP = "show runningconfiguration all"


def sonic(version: str, **changes: Any) -> dict[str, Any]:
    values = on_platform("sonic", intent(**changes), version=version)
    return values | {"routing": {"bfd": {"interval_ms": 300, "multiplier": 3}}}


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    fabric = write_fabric(tmp_path_factory.mktemp("fabric"), sonic("202411", attachment="vlan"))
    with running(fabric, name="split") as lab:
        yield lab


@pytest.fixture(scope="module")
def unified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    values = sonic("202511")
    for role, tier in UNIFIED["switches"].items():
        values["switches"][role] |= tier
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), values), name="unified") as lab:
        yield lab


@pytest.fixture(params=daily(["split", "unified"], "split"))
def either(request: pytest.FixtureRequest) -> RunningLab:
    lab: RunningLab = request.getfixturevalue(request.param)
    return lab


def patch(lab: RunningLab, *operations: tuple[str, str, object], device: str = LEAF) -> str:
    entries = [
        {"op": verb, "path": path, **({} if verb == "remove" else {"value": value})} for verb, path, value in operations
    ]
    return lab.shell(device, "sudo config apply-patch /dev/stdin", stdin=json.dumps(entries))


def neighbors(lab: RunningLab, device: str = LEAF) -> dict[str, str]:
    summary = json.loads(lab.shell(device, "vtysh -c 'show bgp summary json'"))
    peers = summary.get("ipv4Unicast", {}).get("peers", {})
    return {name: peer["state"] for name, peer in peers.items()}


def is_converged(lab: RunningLab, device: str = LEAF) -> bool:
    found = neighbors(lab, device)
    return len(found) == 2 and set(found.values()) == {"Established"}


def configuration(lab: RunningLab, device: str = LEAF) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.shell(device, DUMP))
    return found


def test_every_host_reaches_every_other(either: RunningLab) -> None:
    until(lambda: either.lab("check").returncode == 0, "every host reaches every other")


def test_a_queue_row_takes_its_port_down_and_bgp_recovers(either: RunningLab) -> None:
    until(lambda: is_converged(either), "both sessions are up")
    before = configuration(either)
    either.shell(LEAF, "config checkpoint before")
    flaps = either.shell(LEAF, f"sonic-db-cli APPL_DB hget PORT_TABLE:{UPLINK} flap_count")
    patch(either, ("replace", f"/QUEUE/{UPLINK}|3/scheduler", "scheduler.best-effort"))
    until(
        lambda: int(either.shell(LEAF, f"sonic-db-cli APPL_DB hget PORT_TABLE:{UPLINK} flap_count")) > int(flaps),
        "the port has flapped",
    )
    row = either.shell(LEAF, f"sonic-db-cli APPL_DB hgetall PORT_TABLE:{UPLINK}")
    for way in ("last_down_time", "last_up_time"):
        assert re.search(rf"'{way}': '[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} \d\d \d\d:\d\d:\d\d \d{{4}}'", row), row
    until(lambda: is_converged(either), "both sessions are up again")
    either.shell(LEAF, "config rollback before")
    assert configuration(either) | {"bgpraw": ""} == before | {"bgpraw": ""}
    until(lambda: is_converged(either), "both sessions are up again")


def test_without_link_local_addresses_the_session_ends(either: RunningLab) -> None:
    until(lambda: is_converged(either), "both sessions are up")
    path = f"/INTERFACE/{UPLINK}/ipv6_use_link_local_only"
    patch(either, ("replace", path, "disable"))
    until(lambda: neighbors(either)[UPLINK] != "Established", "the session is down")
    patch(either, ("replace", path, "enable"))
    until(lambda: is_converged(either), "both sessions are up again")


def test_unsaved_changes_are_lost_after_a_power_cut(split: RunningLab) -> None:
    until(lambda: is_converged(split), "both sessions are up")
    before = configuration(split)
    patch(split, ("replace", "/PORT/Ethernet0/description", "not saved"))
    split.shell(LEAF, "config checkpoint not-saved")
    assert split.lab("restart", LEAF).returncode == 0
    until(lambda: is_converged(split), "both sessions are up after the cut")
    after = configuration(split)
    assert {name: rows for name, rows in after.items() if name != "bgpraw"} == {
        name: rows for name, rows in before.items() if name != "bgpraw"
    }
    assert "not-saved" in json.loads(split.shell(LEAF, "config list-checkpoints"))


def test_a_timed_rollback_needs_no_login(split: RunningLab) -> None:
    split.shell(LEAF, "config checkpoint known")
    patch(split, ("replace", "/PORT/Ethernet0/mtu", "9000"))
    split.shell(LEAF, "sudo systemd-run --on-active=2 --unit=revert config rollback known")
    until(
        lambda: split.shell(LEAF, "sonic-db-cli CONFIG_DB hget 'PORT|Ethernet0' mtu").strip() == "9216",
        "the change is taken back",
    )
    until(lambda: "mtu 9216 " in split.run(LEAF, "ip", "link", "show", "Ethernet0"), "the kernel has the MTU again")


def test_a_stopped_timed_rollback_never_runs(split: RunningLab) -> None:
    split.shell(LEAF, "config checkpoint known")
    split.shell(LEAF, "sudo systemd-run --on-active=300 --unit=kept config rollback known")
    assert split.shell(LEAF, "systemctl is-active kept.timer").strip() == "active"
    split.shell(LEAF, "sudo systemctl stop kept.timer")
    assert split.ssh(LEAF, "systemctl is-active kept.timer").stdout.strip() == "inactive"


def test_routing_changed_by_hand_survives_a_patch_and_ends_with_the_container(split: RunningLab) -> None:
    until(lambda: is_converged(split), "both sessions are up")
    split.shell(LEAF, "vtysh -c 'configure terminal' -c 'ip prefix-list BY-HAND seq 5 permit any'")
    patch(split, ("replace", "/PORT/Ethernet0/description", "after by hand"))
    assert "BY-HAND" in split.shell(LEAF, "docker exec bgp vtysh -c 'show running-config'")
    file = "/etc/sonic/frr/frr.conf"
    split.shell(LEAF, f"echo 'ip prefix-list IN-FILE seq 5 permit any' >> {file}; sudo systemctl restart bgp")
    found = split.shell(LEAF, "vtysh -c 'show running-config'")
    assert ("BY-HAND" in found, "IN-FILE" in found) == (False, True)
    test = split.shell(
        LEAF, f"sed -i s/IN-FILE/RELOADED/ {file}; docker exec bgp /usr/lib/frr/frr-reload.py --test /etc/frr/frr.conf"
    )
    assert "ip prefix-list RELOADED seq 5 permit any" in test
    assert "RELOADED" not in split.shell(LEAF, "vtysh -c 'show running-config'")
    split.shell(LEAF, "docker exec -i bgp /usr/lib/frr/frr-reload.py --reload /etc/frr/frr.conf")
    assert "RELOADED" in split.shell(LEAF, "vtysh -c 'show running-config'")
    split.shell(LEAF, f"sed -i /RELOADED/d {file}; sudo systemctl restart bgp")
    assert "RELOADED" not in split.shell(LEAF, "vtysh -c 'show running-config'")


def test_a_wrong_as_number_keeps_a_session_down(unified: RunningLab) -> None:
    until(lambda: is_converged(unified), "both sessions are up")
    unified.shell(LEAF, "config checkpoint right")
    patch(unified, ("replace", f"/BGP_NEIGHBOR/default|{UPLINK}/asn", "64999"))
    until(lambda: neighbors(unified)[UPLINK] != "Established", "the session is down")
    unified.shell(LEAF, "config rollback right")
    until(lambda: is_converged(unified), "both sessions are up again")


def test_cabling_is_reported_by_alias(split: RunningLab) -> None:
    def rows() -> list[list[str]]:
        lines = split.shell(LEAF, "show lldp table").splitlines()
        return [line.split() for line in lines if line.startswith("Ethernet2")]

    until(lambda: len(rows()) == 2, "both spines are heard")
    assert [row[:3] for row in rows()] == [["Ethernet256", "spine01", "etp1a"], ["Ethernet260", "spine02", "etp1a"]]


@pytest.mark.whole
def test_new_switches_become_a_fabric_by_their_files(tmp_path: Path) -> None:
    values = sonic("202411", attachment="vlan")
    folder = write_fabric(tmp_path / "fabric", values)
    designed: Fabric = intents.fabric(values)
    with running(folder, "--bare", name="bare") as lab:
        assert configuration(lab)["DEVICE_METADATA"]["localhost"]["hostname"] == "sonic"
        for switch in designed.switches:
            for name, text in files(designed, switch.name).items():
                path = "/etc/sonic/frr/frr.conf" if name == "frr.conf" else f"/etc/sonic/{name}"
                lab.shell(switch.name, f"sudo tee {shlex.quote(path)} > /dev/null", stdin=text)
            lab.shell(switch.name, "sudo config reload -y -f")
        for switch in designed.switches:
            until(lambda name=switch.name: is_converged(lab, name), f"{switch.name} has its sessions")  # type: ignore[misc]
        shown = configuration(lab)
        del shown["DEVICE_METADATA"]["localhost"]["mac"]
        rendered = json.loads(files(designed, LEAF)["config_db.json"])
        assert {name: shown[name] for name in rendered if name != "FEATURE"} == {
            name: rows for name, rows in rendered.items() if name != "FEATURE"
        }
