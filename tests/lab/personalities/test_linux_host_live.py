"""Hosts of a running lab over SSH: real netplan, networkd and kernel."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.design.fabric import Fabric, Host
from netkit.design.hosts import MAIN_TABLE, OIF_RULE_PRIORITY, RULE_PRIORITY, RoutePlan
from tests.intents import fabric
from tests.lab.personalities.linux_host_desk import rendered
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = [needs_lab, pytest.mark.whole]
MACS = {"gpu01": {"macs": {0: "a0:88:c2:00:00:10", 1: "a0:88:c2:00:00:11"}}}
INTENT = intent(overrides=MACS, adaptive_routing=True)
BARE = intent(hosts={"model": "dgx-h100", "backend": "networkd"}, overrides=MACS)
SCRIPT = "/usr/local/sbin/netkit-nic-qos"
NETPLAN = "/etc/netplan/60-netkit-rails.yaml"
KEYS = ("arp_ignore", "arp_announce", "rp_filter")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), INTENT)) as found:
        yield found


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), BARE), "--bare") as found:
        yield found


def routes(lab: RunningLab, host: str) -> set[tuple[str, str, str, str]]:
    """The static routes of a host: NIC, prefix, gateway and table."""
    shown = json.loads(lab.run(host, "ip", "-j", "-4", "route", "show", "table", "all"))
    return {
        (
            "" if route.get("type") == "unreachable" else route["dev"],
            route["dst"],
            route.get("gateway", ""),
            str(route.get("table", "main")),
        )
        for route in shown
        if route.get("protocol") == "static"
    }


def designed_routes(built: Fabric, host: Host) -> set[tuple[str, str, str, str]]:
    plan = RoutePlan(built)
    return {
        (
            "" if route.kind == "unreachable" else nic.interface,
            route.prefix,
            route.via,
            "main" if route.table == MAIN_TABLE else str(route.table),
        )
        for nic in host.nics
        for route in plan.routes(nic)
    }


def rules(lab: RunningLab, host: str) -> set[tuple[int, str, str, str]]:
    shown = json.loads(lab.run(host, "ip", "-j", "-4", "rule"))
    return {(one["priority"], one["src"], one.get("oif", ""), one["table"]) for one in shown if one.get("protocol")}


def designed_rules(host: Host) -> set[tuple[int, str, str, str]]:
    by_source = {(RULE_PRIORITY, nic.address, "", str(nic.table)) for nic in host.nics}
    return by_source | {(OIF_RULE_PRIORITY, "all", nic.interface, str(nic.table)) for nic in host.nics}


def assert_as_designed(lab: RunningLab, built: Fabric, host: Host) -> None:
    until(lambda: routes(lab, host.name) == designed_routes(built, host), f"{host.name}: routes as designed")
    until(lambda: rules(lab, host.name) == designed_rules(host), f"{host.name}: rules as designed")
    links = {link["ifname"]: link for link in json.loads(lab.run(host.name, "ip", "-j", "addr"))}
    for nic in host.nics:
        link = links[nic.interface]
        shown = [(one["local"], one["prefixlen"]) for one in link["addr_info"] if one["family"] == "inet"]
        assert (link["mtu"], shown) == (host.mtu_bytes, [(nic.address, nic.prefix_length)])
        assert not nic.mac or link["address"] == nic.mac
    names = [f"net.ipv4.conf.{name}.{key}" for name in ("all", "default", "rail0", "rail1") for key in KEYS]
    assert lab.run(host.name, "sysctl", "-n", *names).split() == ["1", "2", "2"] * 4


def nic_of(lab: RunningLab, host: str, interface: str = "rail0") -> str:
    """All NIC settings that tools and files show."""
    device = f"/sys/class/net/{interface}"
    return lab.shell(
        host,
        f"mlnx_qos -i {interface}; ethtool -a {interface}; cd {device}; grep -r . ecn; "
        "grep -r . device/infiniband/*/tc /sys/kernel/config/rdma_cm/*/ports/1",
    )


def test_kernel_and_nics_are_as_designed(lab: RunningLab) -> None:
    built = fabric(INTENT)
    for host in built.hosts:
        assert_as_designed(lab, built, host)
        assert lab.shell(host.name, "netkit-nic-qos --check") == ""
        assert lab.shell(host.name, "systemctl is-active systemd-networkd netkit-nic-qos@rail1") == "active\nactive\n"
    # The script ran on one of them, and the other took over its settings.
    one, other = (nic_of(lab, host.name) for host in built.hosts)
    assert one == other
    assert "Global tclass=106" in one


ONE_RAIL = f"""
ip monitor link address route >/tmp/seen & watch=$!
sleep 0.5
sed -i '0,/mtu: 9000/s//mtu: 8000/' {NETPLAN}
mkdir -p /tmp/new/etc && cp -a /etc/netplan /tmp/new/etc/ && netplan generate --root-dir /tmp/new
for unit in /tmp/new/run/systemd/network/*; do
    cmp -s "$unit" "/run/systemd/network/${{unit##*/}}" || cp -p "$unit" /run/systemd/network/
done
networkctl reload
for try in $(seq 300); do ip link show rail0 | grep -q 'mtu 8000' && break; sleep 0.2; done
sleep 0.5; kill $watch; cat /tmp/seen
"""
"""Only changed units are written: networkd treats a rewritten one as changed, and removes its addresses."""


def test_files_below_sys_show_the_nics(lab: RunningLab) -> None:
    assert lab.shell("gpu01", "cat /sys/class/net/rail0/speed") == "400000\n"
    counter = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/rx_write_requests"
    first = int(lab.shell("gpu01", f"cat {counter}"))
    assert first <= int(lab.shell("gpu01", f"cat {counter}"))
    gids = lab.shell(
        "gpu01", "cd /sys/class/infiniband/mlx5_0/ports/1; paste gids/3 gid_attrs/types/3 gid_attrs/ndevs/3"
    )
    assert gids == "0000:0000:0000:0000:0000:ffff:0a80:0001\tRoCE v2\trail0\n"
    device = (
        "readlink -f /sys/class/net/rail0/device /sys/bus/pci/devices/0000:18:00.0 /sys/class/infiniband/mlx5_0/device"
    )
    assert {Path(line).name for line in lab.shell("gpu01", device).split()} == {"0000:18:00.0"}
    assert lab.shell("gpu01", "/usr/bin/systemctl is-system-running; cat /proc/1/comm") == "running\nsystemd\n"


def test_one_rail_is_reconfigured_without_effect_on_the_others(lab: RunningLab) -> None:
    reported = lab.shell("gpu02", ONE_RAIL)
    assert "rail0" in reported
    assert "rail1" not in reported
    mtus = lab.shell("gpu02", "cat /sys/class/net/rail0/mtu /sys/class/net/rail1/mtu")
    assert mtus.split() == ["8000", "9000"]
    lab.shell("gpu02", f"sed -i 's/mtu: 8000/mtu: 9000/' {NETPLAN} && netplan apply")
    built = fabric(INTENT)
    assert_as_designed(lab, built, next(host for host in built.hosts if host.name == "gpu02"))


def test_a_timer_outlives_the_login_that_set_it(lab: RunningLab) -> None:
    reported = lab.ssh("gpu02", "systemd-run --on-active=1s --unit=undo touch /etc/netkit/undone")
    assert reported.returncode == 0
    until(lambda: lab.ssh("gpu02", "test -e /etc/netkit/undone").returncode == 0, "the timer ran")
    assert lab.ssh("gpu02", "systemctl is-active undo.timer").stdout == "inactive\n"
    lab.shell("gpu02", "systemd-run --on-active=600 --unit=undo rm /etc/netkit/undone && systemctl stop undo.timer")
    assert lab.ssh("gpu02", "systemctl is-active undo.timer").stdout == "inactive\n"


def test_values_written_below_sys_are_visible_and_corrected(lab: RunningLab) -> None:
    ecn = "/sys/class/net/rail1/ecn"
    lab.shell("gpu02", f"echo 4 > {ecn}/roce_np/cnp_dscp; echo 0 > {ecn}/roce_rp/enable/3")
    done = lab.ssh("gpu02", "netkit-nic-qos --check rail1")
    assert (done.returncode, done.stdout) == (
        1,
        "rail1: ecn-react is 0, should be 1\nrail1: cnp-dscp is 4, should be 48\n",
    )
    assert lab.shell("gpu02", "systemctl restart netkit-nic-qos@rail1; netkit-nic-qos --check") == ""


CHANGES = {
    "PRIORITY=3": ("PRIORITY=5", "ecn/roce_np/enable/5:1"),
    "PFC='0:0 1:0 2:0 3:1": ("PFC='0:0 1:0 2:1 3:1", "\tenabled     0   0   1   1   0   0   0   0\n"),
    "26:3 27:3": ("26:4 27:3", "prio:4 dscp:39,38,37,36,35,34,33,32,\n\tprio:4 dscp:26,\n"),
    "PRIORITY_TO_CLASS='0:0 1:0": ("PRIORITY_TO_CLASS='0:0 1:3", "bw: 90%\n\t priority:  1\n\t priority:  3\n"),
    "6:strict 7:ets": ("6:strict 7:strict", "tc: 7 ratelimit: unlimited, tsa: strict\n"),
    "CLASS_WEIGHT='0:10 1:0 2:0 3:90": (
        "CLASS_WEIGHT='0:20 1:0 2:0 3:80",
        "tc: 3 ratelimit: unlimited, tsa: ets, bw: 80%\n",
    ),
    "CNP_DSCP=48": ("CNP_DSCP=46", "ecn/roce_np/cnp_dscp:46\n"),
    "CNP_PRIORITY=6": ("CNP_PRIORITY=5", "ecn/roce_np/cnp_802p_prio:5\n"),
    "TOS=106": ("TOS=98", "tc/1/traffic_class:Global tclass=98\n"),
    "ROCE_MODE='RoCE v2'": ("ROCE_MODE='IB/RoCE v1'", "ports/1/default_roce_mode:IB/RoCE v1\n"),
}


@pytest.mark.parametrize("setting", CHANGES)
def test_each_setting_of_the_nic_script_reaches_the_nic(lab: RunningLab, setting: str) -> None:
    wanted, shown = CHANGES[setting]
    text = lab.shell("gpu01", f"cat {SCRIPT}")
    assert text.count(setting) >= 1
    assert shown not in nic_of(lab, "gpu01")
    lab.shell("gpu01", f"cat >{SCRIPT}", stdin=text.replace(setting, wanted, 1))
    try:
        lab.ssh("gpu01", "mlxfwreset -d 0000:18:00.0 -y reset")
        assert shown in nic_of(lab, "gpu01")
    finally:
        lab.shell("gpu01", f"cat >{SCRIPT}", stdin=text)
        lab.shell("gpu01", "mlxfwreset -d 0000:18:00.0 -y reset")
        assert lab.shell("gpu01", "netkit-nic-qos --check") == ""


def test_a_different_nic_is_not_mistaken_for_the_rail(lab: RunningLab) -> None:
    lab.shell("gpu01", f"cp -p {NETPLAN} /root/ && sed -i s/00:00:10/00:00:99/ {NETPLAN} && netplan apply")
    until(lambda: "unmanaged" in lab.run("gpu01", "networkctl", "list", "rail0"), "networkd leaves rail0 alone")
    lab.shell("gpu01", f"cp -p /root/60-netkit-rails.yaml {NETPLAN} && netplan apply")
    built = fabric(INTENT)
    assert_as_designed(lab, built, built.hosts[0])


def test_a_power_cut_keeps_the_disk_and_the_firmware_and_loses_the_rest(lab: RunningLab) -> None:
    lab.shell(
        "gpu02",
        "mlnx_qos -i rail0 --pfc 1,1,1,1,1,1,1,1 >/dev/null; echo NCCL_DEBUG=WARN >>/etc/nccl.conf; "
        "systemd-run --on-active=600 --unit=undo true; touch /run/systemd/network/10-stray.network; "
        "mlxconfig -d mlx5_0 -y set NUM_OF_VFS=4 >/dev/null; "
        "sysctl -qw net.ipv4.conf.rail0.rp_filter=1",
    )
    assert lab.lab("restart", "gpu02").returncode == 0
    built = fabric(INTENT)
    assert_as_designed(lab, built, next(host for host in built.hosts if host.name == "gpu02"))
    assert lab.shell("gpu02", "tail -n 1 /etc/nccl.conf; netkit-nic-qos --check") == "NCCL_DEBUG=WARN\n"
    assert lab.ssh("gpu02", "systemctl is-active undo.timer").stdout == "inactive\n"
    assert lab.ssh("gpu02", "test -e /run/systemd/network/10-stray.network").returncode == 1
    row = re.search(r"NUM_OF_VFS +(.*)", lab.shell("gpu02", "mlxconfig -d mlx5_0 -e q NUM_OF_VFS"))
    assert row is not None
    assert row[1].split() == ["8", "4", "4"]


def test_a_bare_host_has_its_nics_down_and_applies_installed_files(bare: RunningLab) -> None:
    built = fabric(BARE)
    host = built.hosts[0]
    links = json.loads(bare.run(host.name, "ip", "-j", "link"))
    assert {link["ifname"] for link in links if "UP" in link["flags"]} == {"lo"}
    assert bare.shell(host.name, "ls /etc/netplan /etc/systemd/network") == "/etc/netplan:\n\n/etc/systemd/network:\n"
    assert "Priority trust state: pcp\n" in bare.shell(host.name, "mlnx_qos -i rail0")
    for nic in host.nics:  # bare leaves have their ports down, and networkd waits for a carrier
        bare.run(nic.leaf, "ip", "link", "set", nic.leaf_port, "up")
    files = rendered(built, host)
    for line in files["install.txt"].splitlines():
        if line and not line.startswith("#"):
            mode, file, target = line.split()
            folder = Path(target).parent
            bare.shell(host.name, f"mkdir -p {folder}; cat >{target}; chmod {mode} {target}", stdin=files[file])
    steps = re.findall(r"^#   (.*)$", files["install.txt"], re.MULTILINE)
    assert steps[-2:] == [
        "networkctl reload",
        "systemctl restart netkit-nic-qos@rail0.service netkit-nic-qos@rail1.service",
    ]
    for step in steps:
        bare.shell(host.name, step)
    until(lambda: bare.shell(host.name, "cat /sys/class/net/rail*/mtu") == "9000\n9000\n", "the MTU is set")
    assert bare.shell(host.name, "netkit-nic-qos --check") == ""
    assert_as_designed(bare, built, host)
