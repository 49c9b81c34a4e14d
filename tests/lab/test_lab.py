"""The lab as a whole: it boots, matches the design, and leaves nothing behind."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from netkit.lab.folder import began_at
from tests.command import NETKIT, ROOT, environment
from tests.lab.running import RunningLab, intent, lab_home, needs_lab, on_platform, running, until, write_fabric
from tests.lanes import daily

pytestmark = needs_lab
BOOT_ID = "/proc/sys/kernel/random/boot_id"


@pytest.fixture(scope="module")
def reference() -> Iterator[RunningLab]:
    with running(ROOT / "inventory/reference", name="reference") as lab:
        yield lab


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fabric(tmp_path_factory.mktemp("fabric"), intent())


def test_every_rail_reaches_every_other_host_of_its_rail_and_crosses_as_designed(reference: RunningLab) -> None:
    assert reference.lab("check").stdout == "every host reaches every other: 720 pings on their own rail, 5040 across\n"


def test_all_spines_are_in_the_ecmp_set_of_every_leaf(reference: RunningLab) -> None:
    for leaf in ("leaf01", "leaf08"):
        table = json.loads(reference.run(leaf, "vtysh", "-c", "show ip route json"))
        others = [prefix for prefix in table if prefix.startswith("10.128.") and len(table[prefix][0]["nexthops"]) > 1]
        assert len(others) == 7
        for prefix in others:
            hops = {hop["interfaceName"] for hop in table[prefix][0]["nexthops"] if hop.get("fib")}
            assert len(hops) == 12, (leaf, prefix)


def test_a_running_lab_is_not_started_again(reference: RunningLab) -> None:
    before = reference.home.joinpath("reference", "init.pid").read_text()
    done = reference.netkit("lab", "up", "--fabric", reference.fabric, "--lab", "reference")
    assert done.returncode == 0, done.stderr
    assert reference.home.joinpath("reference", "init.pid").read_text() == before


def test_hosts_have_exactly_the_rendered_addresses_routes_and_rules(reference: RunningLab) -> None:
    addresses = json.loads(reference.run("gpu03", "ip", "-j", "-4", "addr"))
    assert {
        link["ifname"]: [a["local"] for a in link["addr_info"]] for link in addresses if link["ifname"] != "lo"
    } == {f"rail{rail}": [f"10.128.{32 * rail}.4"] for rail in range(8)}
    rules = json.loads(reference.run("gpu03", "ip", "-j", "-4", "rule"))
    assert len([rule for rule in rules if rule.get("oif") or rule.get("iif")]) >= 8
    routes = json.loads(reference.run("gpu03", "ip", "-j", "-4", "route", "show", "table", "103"))
    assert len(routes) == 9


def test_no_namespace_has_a_route_outside(reference: RunningLab) -> None:
    for device in ("leaf01", "spine02", "gpu10"):
        links = json.loads(reference.run(device, "ip", "-j", "link"))
        wires = {link["ifname"] for link in links if link.get("link_type") == "ether"}
        assert not wires & {"eth0", "ens3", "docker0"}
        assert json.loads(reference.run(device, "ip", "-j", "route", "show", "default") or "[]") == []


def test_devices_are_reached_over_ssh_on_loopback_only(reference: RunningLab) -> None:
    record = json.loads((reference.home / "reference/lab.json").read_text())
    assert len(record["devices"]) == 22
    assert all(device["address"].startswith("127.") for device in record["devices"].values())
    assert reference.shell("leaf05", "hostname").strip() == "leaf05"
    assert reference.shell("gpu07", "hostname").strip() == "gpu07"


def test_a_restarted_node_boots_with_its_saved_state(reference: RunningLab) -> None:
    before = reference.run("leaf02", "vtysh", "-c", "show running-config")
    booted = {name: reference.run(name, "cat", BOOT_ID) for name in ("leaf01", "leaf02", "gpu01")}
    assert len({*booted.values(), Path(BOOT_ID).read_text(encoding="ascii")}) == 4
    assert reference.lab("restart", "leaf02").returncode == 0
    again = {name: reference.run(name, "cat", BOOT_ID) for name in booted}
    assert {name for name in booted if again[name] != booted[name]} == {"leaf02"}
    assert reference.run("leaf02", "vtysh", "-c", "show running-config") == before
    until(lambda: "leaf02 " in reference.lab("status").stdout and _is_ready(reference, "leaf02"), "leaf02 is ready")


def test_two_labs_side_by_side_are_isolated(small: Path, reference: RunningLab) -> None:
    with running(small, name="other") as other:
        blocks = {json.loads((lab.home / lab.name / "lab.json").read_text())["block"] for lab in (other, reference)}
        assert len(blocks) == 2
        assert other.shell("leaf01", "hostname").strip() == "leaf01"


def test_down_leaves_nothing_behind(small: Path) -> None:
    with running(small) as lab:
        init = int((lab.home / "t/init.pid").read_text().split()[0])
        address = json.loads((lab.home / "t/lab.json").read_text())["devices"]["leaf01"]["address"]
        assert began_at(init)
        assert lab.lab("down").returncode == 0
        assert not began_at(init)
        assert not (lab.home / "t").exists()
        with socket.socket() as line:
            assert line.connect_ex((address, 22 if os.geteuid() == 0 else 2222)) != 0
        assert not _mounts_of(lab.home)


@pytest.mark.parametrize("delay_s", daily([0.3, 0.8, 1.5, 3.0], 0.8, 3.0))
def test_down_cleans_up_after_an_up_that_was_killed(small: Path, delay_s: float) -> None:
    with lab_home() as home:
        words = [*NETKIT, "lab", "up", "--fabric", str(small), "--lab", "k"]
        settings = environment(NETKIT_LAB_DIR=str(home))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(words, cwd=ROOT, env=settings, **quiet) as up:  # type: ignore[call-overload]
            time.sleep(delay_s)
            up.send_signal(signal.SIGKILL)
        time.sleep(0.3)
        down = subprocess.run(
            [*NETKIT, "lab", "down", "--all"], cwd=ROOT, env=settings, capture_output=True, check=False
        )
        assert down.returncode == 0, down.stderr
        assert [path.name for path in home.iterdir() if path.is_dir()] == []
        assert not _mounts_of(home)
        assert not [pid for pid, environ in _environments().items() if f"NETKIT_LAB_DIR={home}" in environ]


@dataclass(frozen=True)
class Spoiled:
    """An edit of a rendered file, and the error that the lab must report."""

    device: str
    file: str
    find: str
    put: str
    culprit: str
    says: str


SPOILED = {
    "wrong AS number": Spoiled(
        "leaf01",
        "startup.yaml",
        "remote-as: 4200000001",
        "remote-as: 4200000099",
        "fabric.yaml:LINE: units[0]: leaf01: swp",
        "AS 4200000099 is expected there, spine01 is AS 4200000001 in the design",
    ),
    "missing route policy": Spoiled(
        "leaf02",
        "frr.conf",
        "  neighbor SPINES route-map FROM-SPINES in\n",
        "",
        "fabric.yaml:LINE: units[0]: leaf02: ",
        "no inbound route policy towards spine01: every route is discarded",
    ),
    "bad host route": Spoiled(
        "gpu01",
        "netplan.yaml",
        "via: 10.128.0.0, table: 100",
        "via: 10.128.0.9, table: 100",
        "fabric.yaml:LINE: units[0]: gpu01: ",
        "no answer from gpu02",
    ),
}


@pytest.mark.parametrize("case", daily(SPOILED, "wrong AS number"))
def test_a_convergence_or_reachability_error_names_the_device_and_its_line_of_intent(
    small: Path, tmp_path: Path, case: str
) -> None:
    spoiled = SPOILED[case]
    if spoiled.file == "frr.conf":
        small = write_fabric(tmp_path / "fabric", on_platform("frr", intent(purpose="lab"), version="10.2"))
    with lab_home() as home:
        lab = RunningLab("w", home, small)
        assert lab.netkit("render", "--fabric", small, "--out", tmp_path / "out").returncode == 0
        file = tmp_path / "out" / spoiled.device / spoiled.file
        text = file.read_text(encoding="utf-8")
        assert spoiled.find in text, text
        file.write_text(text.replace(spoiled.find, spoiled.put), encoding="utf-8")
        done = lab.netkit(
            "lab", "up", "--fabric", small, "--lab", "w", "--configs", tmp_path / "out", "--patience", "20"
        )
        assert done.returncode == 1, done.stdout + done.stderr
        line = 1 + (small / "fabric.yaml").read_text(encoding="utf-8").splitlines().index("units:")
        wanted = spoiled.culprit.replace("LINE", str(line + 1))
        assert any(wanted in said and spoiled.says in said for said in done.stderr.splitlines()), done.stderr


def _is_ready(lab: RunningLab, device: str) -> bool:
    return any(line.split()[0] == device and line.endswith("ready") for line in lab.lab("status").stdout.splitlines())


def _mounts_of(home: Path) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(home) in line]


def _environments() -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                found[int(entry.name)] = (entry / "environ").read_text(errors="replace")
            except OSError:
                continue
    return found
