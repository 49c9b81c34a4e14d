"""The files written to a Linux switch and read from it, without a switch."""

import subprocess
from itertools import combinations

import pytest

from netkit.platforms.change import Change
from netkit.platforms.compare import compare
from netkit.platforms.frr import procedure, reply
from netkit.platforms.frr.files import PLACES
from netkit.platforms.frr.model import MODEL
from netkit.platforms.frr.procedure import merged
from tests.platforms.samples import names, samples

RUNNING = """Building configuration...

Current configuration:
!
frr version 8.4.4
frr defaults traditional
hostname elsewhere
no ipv6 forwarding
!
password theirs
!
interface swp1
 description ours
 ip ospf area 0
exit
!
router bgp 65001
 bgp graceful-shutdown
 neighbor swp1 interface remote-as external
 !
 address-family ipv4 unicast
  maximum-paths 8
 exit-address-family
exit
!
router ospf
 ospf router-id 192.0.2.1
 !
exit
!
ip route 198.51.100.0/24 blackhole
!
end
"""
OURS = "frr defaults traditional\nhostname leaf01\nrouter bgp 65001\n bgp router-id 192.0.2.9\nexit\n"
FOREIGN = """password theirs
interface swp1
 ip ospf area 0
exit
router ospf
 ospf router-id 192.0.2.1
exit
ip route 198.51.100.0/24 blackhole
"""


@pytest.mark.parametrize("size", [1, 2, 8])
def test_the_script_is_the_same_for_every_set_of_files(size: int) -> None:
    for chosen in combinations(PLACES, size):
        text = procedure.script(frozenset(chosen))
        assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
        assert all(f"place {file} {PLACES[file].path}" in text for file in chosen)


def test_interfaces_come_before_routing_and_a_restart_includes_a_reload() -> None:
    text = procedure.script(frozenset({"frr.conf", "daemons", "netplan.yaml"}))
    assert text.index("netplan apply") < text.index("service frr")
    assert 'routing "$1"\n' not in text.partition("take()")[2]
    assert 'routing "$1"\n' in procedure.script(frozenset({"frr.conf"})).partition("take()")[2]


def test_unowned_lines_are_kept_below_the_intended_text() -> None:
    running = {"frr.conf": reply.running(RUNNING, "")}
    changes = compare(MODEL, running, {"frr.conf": OURS}).changes
    assert merged(changes, running, {"frr.conf": OURS}) == {"frr.conf": OURS + FOREIGN}


def test_an_unknown_interface_stays_in_its_file() -> None:
    running = {"netplan.yaml": "network:\n  ethernets:\n    eth0: {dhcp4: true}\n    swp1: {mtu: 1500}\n"}
    intended = {"netplan.yaml": "network:\n  ethernets:\n    swp1: {mtu: 9216}\n"}
    files = merged(compare(MODEL, running, intended).changes, running, intended)
    wanted = "network:\n  ethernets:\n    eth0: {dhcp4: true}\n    swp1: {mtu: 9216}\n"
    found = files["netplan.yaml"]
    assert found is not None
    assert MODEL.parse({"netplan.yaml": found}) == MODEL.parse({"netplan.yaml": wanted})


def test_a_file_that_did_not_exist_before_is_removed_except_for_lines_of_others() -> None:
    files = samples("frr")["8.4.4/plain/leaf01"]
    bare = {"frr.conf": "frr defaults traditional\n"}
    running = {
        **files,
        "netplan.yaml": files["netplan.yaml"].replace("    eth0:", "    eth9: {dhcp4: true}\n    eth0:"),
    }
    changes = compare(MODEL, dict(running), bare, owner=files).changes
    back = merged(changes, running, bare)
    kept = back.pop("netplan.yaml")
    assert kept is not None
    assert MODEL.parse({"netplan.yaml": kept}) == MODEL.parse(
        {"netplan.yaml": "network:\n  ethernets:\n    eth9: {dhcp4: true}\n"}
    )
    assert back.pop("frr.conf")
    assert back == dict.fromkeys(files.keys() - {"netplan.yaml", "frr.conf"})


@pytest.mark.parametrize("name", names("frr"))
def test_a_rendered_switch_is_written_unchanged(name: str) -> None:
    files = samples("frr")[name]
    assert merged(compare(MODEL, {}, files).changes, {}, files) == ({} if compare(MODEL, {}, files).not_read else files)
    bare = dict.fromkeys(files)
    assert merged(compare(MODEL, bare, files).changes, {}, files) == files


def test_only_the_drain_of_netkit_is_hidden() -> None:
    shown = reply.running(RUNNING, "")
    assert " bgp graceful-shutdown\n" in shown
    assert procedure.drain_lines(shown) == ""
    hidden = reply.running(RUNNING, "router bgp 65001\n bgp graceful-shutdown\nexit\n")
    assert hidden == shown.replace(" bgp graceful-shutdown\n", "")
    assert reply.running(RUNNING, procedure.drain_lines(hidden)) == hidden


def test_a_drain_continues_when_the_as_number_changes() -> None:
    own = procedure.drain_lines("router bgp 65001\n bgp router-id 10.0.0.1\n")
    after = "router bgp 65009\n bgp router-id 10.0.0.1\n"
    shown = after.replace("65009\n", "65009\n bgp graceful-shutdown\n")
    assert reply.running(shown, own) == after
    assert procedure.undrain_lines(own, after) == "router bgp 65009\n no bgp graceful-shutdown\nexit\n"
    assert procedure.undrain_lines(own, shown) == ""


def test_a_drain_that_became_intended_does_not_end() -> None:
    own = "router bgp 65001\n bgp graceful-shutdown\nexit\nrouter bgp 65001 vrf a\n bgp graceful-shutdown\nexit\n"
    assert procedure.undrain_lines(own, "router bgp 65001\n bgp graceful-shutdown\n") == (
        "router bgp 65001 vrf a\n no bgp graceful-shutdown\nexit\n"
    )


def test_a_truncated_configuration_is_refused() -> None:
    assert reply.is_configuration(RUNNING)
    assert not reply.is_configuration(RUNNING[:200])
    assert not reply.is_configuration("")


def test_differences_that_frr_reload_always_lists_are_ignored() -> None:
    eternal = """
Lines To Add
============
service integrated-vtysh-config
router bgp 65001
router bgp 65001
 bgp ebgp-requires-policy
bfd
 profile fabric
  detect-multiplier 3
"""
    assert list(reply.differences(eternal)) == []
    said = "".join(reply.differences(f"{eternal}router bgp 65001\n timers bgp 3 9\n"))
    assert said == "Lines To Add\nrouter bgp 65001\n timers bgp 3 9\n"


def test_only_ports_of_the_fabric_are_cleared_when_they_are_removed() -> None:
    have = "network:\n  ethernets:\n    eth0: {}\n    lo: {}\n    swp1s0: {mtu: 9216}\n    swp2: {}\n"
    want = "network:\n  ethernets:\n    swp2: {mtu: 1500}\n"
    assert procedure.left(have, want) == ["lo", "swp1s0"]
    assert procedure.left(want, have) == []
    assert procedure.left(have, "") == ["lo", "swp1s0", "swp2"]


def link(name: str, *flags: str) -> dict[str, object]:
    addresses = [{"local": "192.0.2.1", "prefixlen": 31}, {"local": "fe80::1", "prefixlen": 64}]
    return {"ifname": name, "flags": ["UP", *flags], "mtu": 1500, "addr_info": addresses}


@pytest.mark.parametrize(
    ("key", "running", "intended", "said"),
    [
        (("mtu",), "1500", "9216", ["swp1 mtu"]),
        (("mtu",), "9216", "1500", []),
        (("mtu",), "9216", None, []),
        (("addresses", "- 192.0.2.1/31"), None, "", []),
        (("addresses", "- 192.0.2.1/31"), "", None, ["swp1 addresses"]),
        (("addresses", "- 192.0.2.5/31"), None, "", ["swp1 addresses"]),
        (("addresses", "- 192.0.2.5/31"), "", None, []),
        (("optional",), "true", "false", []),
    ],
)
def test_settings_missing_in_the_kernel_are_reported(
    key: tuple[str, ...], running: str | None, intended: str | None, said: list[str]
) -> None:
    changes = [
        Change(("netplan.yaml", "network", "ethernets", name, *key), running, intended)
        for name in ("swp1", "swp2", "x")
    ]
    links = [link("swp1", "LOWER_UP"), link("swp2", "NO-CARRIER")]
    assert list(procedure.differing(changes, links)) == said
    assert list(procedure.differing([Change(("daemons", "bgpd"), "no", "yes")], links)) == []
