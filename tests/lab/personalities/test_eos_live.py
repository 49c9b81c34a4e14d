"""EOS in a running lab: eAPI over HTTPS with NAPALM's driver, real FRR and links, power cuts."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from netkit import design
from netkit.design import Fabric
from netkit.hardware import Catalog
from netkit.intent import Intent
from tests.lab.personalities.eos_node import config_of
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric

pytestmark = [needs_lab, pytest.mark.whole]
napalm = pytest.importorskip("napalm", reason="NAPALM is not installed")
pyeapi = pytest.importorskip("pyeapi", reason="NAPALM is not installed")

VALUES = on_platform("eos", intent(), model="DCS-7060X6-64PE", version="4.35.1F")
FABRIC: Fabric = design.build(Intent.model_validate(VALUES), Catalog())
PATIENCE_S = 180


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot unconfigured switches and configure each through NAPALM."""
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), VALUES), "--bare") as bare:
        for switch in FABRIC.switches:
            with driver(bare, switch.name) as device:
                device.load_replace_candidate(config=config_of(FABRIC, switch.name))
                device.commit_config()
        for switch in FABRIC.switches:
            until(lambda name=switch.name: is_established(bare, name), f"{switch.name} has all its sessions")  # type: ignore[misc]
        yield bare


@contextmanager
def driver(lab: RunningLab, name: str) -> Iterator[Any]:
    """Yield NAPALM's own driver for a switch."""
    folder = lab.home / lab.name
    device = json.loads((folder / "lab.json").read_text(encoding="utf-8"))["devices"][name]
    password = (folder / "password").read_text(encoding="utf-8").strip()
    options = {"port": device["https_port"]}
    kind = napalm.get_network_driver("eos")
    opened = kind(device["address"], "admin", password, timeout=PATIENCE_S, optional_args=options)
    opened.open()
    try:
        yield opened
    finally:
        opened.close()


def cli(lab: RunningLab, device: str, command: str) -> Any:
    """The JSON of a command typed over SSH."""
    return json.loads(lab.shell(device, f"FastCli -p 15 -c '{command} | json'"))


def sessions(lab: RunningLab, device: str) -> dict[str, str]:
    """The state of each BGP session by its port."""
    found = cli(lab, device, "show bgp neighbors vrf all")["vrfs"]["default"]["peerList"]
    return {peer["ifName"]: peer["state"] for peer in found}


def is_established(lab: RunningLab, device: str) -> bool:
    return sessions(lab, device) == {port.name: "Established" for port in FABRIC.switch(device).fabric_ports}


def exits(lab: RunningLab, device: str, prefix: str) -> set[str]:
    """The kernel interfaces of a prefix's next hops."""
    routes = json.loads(lab.run(device, "vtysh", "-c", f"show ip route {prefix} json"))
    return {hop["interfaceName"] for route in routes.get(prefix, []) for hop in route["nexthops"] if hop.get("fib")}


def test_links_and_addresses_are_configured(lab: RunningLab) -> None:
    leaf = FABRIC.switch("leaf01")
    links = {link["ifname"]: link for link in json.loads(lab.run("leaf01", "ip", "-j", "addr"))}
    assert {links[name]["mtu"] for name in links if name.startswith("et")} == {leaf.mtu_bytes}
    assert leaf.loopback in {found["local"] for found in links["lo"]["addr_info"]}
    assert is_established(lab, "leaf01")


def test_napalm_reads_the_switch(lab: RunningLab) -> None:
    with driver(lab, "leaf01") as device:
        assert device.get_facts()["hostname"] == "leaf01"
        peers = device.get_bgp_neighbors()["global"]["peers"]
        assert {peer.rpartition("%")[2]: one["is_up"] for peer, one in peers.items()} == {
            port.name.replace("Ethernet", "Et"): True for port in FABRIC.switch("leaf01").fabric_ports
        }
        assert set(device.get_optics()) == {port.name for port in FABRIC.switch("leaf01").ports}
        assert device.get_interfaces()["Ethernet1/1"]["mtu"] == 9214


def test_cabling_and_bfd_are_as_designed(lab: RunningLab) -> None:
    fabric_ports = FABRIC.switch("leaf01").fabric_ports

    def cabling() -> dict[str, tuple[str, str]]:
        found = cli(lab, "leaf01", "show lldp neighbors")["lldpNeighbors"]
        return {one["port"]: (one["neighborDevice"], one["neighborPort"]) for one in found}

    def bfd() -> dict[str, str]:
        found = cli(lab, "leaf01", "show bfd peers")["vrfs"]["default"]["ipv6Neighbors"]
        return {port: at["status"] for peer in found.values() for port, at in peer["peerStats"].items()}

    wanted = {port.name: (port.peer, port.peer_port) for port in fabric_ports}
    until(lambda: wanted.items() <= cabling().items(), f"LLDP shows {wanted}")
    until(lambda: bfd() == {port.name: "up" for port in fabric_ports}, "BFD is up")


def test_a_second_replacement_changes_nothing(lab: RunningLab) -> None:
    with driver(lab, "spine01") as device:
        device.load_replace_candidate(config=config_of(FABRIC, "spine01"))
        assert device.compare_config() == ""


def test_an_unconfirmed_change_is_reverted_in_kernel_and_frr(lab: RunningLab) -> None:
    before = lab.run("leaf01", "vtysh", "-c", "show running-config")
    port = FABRIC.switch("leaf01").fabric_ports[0]
    with driver(lab, "leaf01") as device:
        device.load_merge_candidate(config=f"interface {port.name}\nshutdown\nrouter bgp 4200010000\nmaximum-paths 2")
        device.commit_config(revert_in=3)
        until(lambda: not device.has_pending_commit(), "the timer has ended")
        device.config_session = None
    assert lab.run("leaf01", "vtysh", "-c", "show running-config") == before
    until(lambda: is_established(lab, "leaf01"), "the session is back")


def test_a_power_cut_before_the_confirmation_reverts(lab: RunningLab) -> None:
    port = FABRIC.switch("leaf02").fabric_ports[0]
    with driver(lab, "leaf02") as device:
        device.load_merge_candidate(config=f"interface {port.name}\nshutdown")
        device.commit_config(revert_in=1800)
        assert cli(lab, "leaf02", "show interfaces")["interfaces"][port.name]["interfaceStatus"] == "disabled"
        assert lab.lab("restart", "leaf02").returncode == 0
        assert not device.has_pending_commit()
        device.config_session = None
    until(lambda: is_established(lab, "leaf02"), "the session is back")


def test_a_drained_neighbor_carries_no_traffic(lab: RunningLab) -> None:
    first, second = FABRIC.switch("leaf01").fabric_ports
    kernel = {port.name: "et" + port.name.removeprefix("Ethernet").replace("/", "_") for port in (first, second)}
    prefix = f"{FABRIC.switch('leaf02').loopback}/32"
    drain = f"""
group interface AWAY
interface {second.name}
exit
maintenance
unit AWAY
group interface AWAY
quiesce
"""
    until(lambda: exits(lab, "leaf01", prefix) == set(kernel.values()), "both spines are used")
    with driver(lab, "leaf01") as device:
        device.load_merge_candidate(config=drain)
        device.commit_config()
        until(lambda: exits(lab, "leaf01", prefix) == {kernel[first.name]}, "only one spine is used")
        assert is_established(lab, "leaf01")
        assert cli(lab, "leaf01", "show maintenance")["units"]["AWAY"]["state"] == "underMaintenance"
        device.load_merge_candidate(config="maintenance\nunit AWAY\nno quiesce")
        device.commit_config()
    until(lambda: exits(lab, "leaf01", prefix) == set(kernel.values()), "both spines are used again")


def test_a_guard_against_lost_route_maps_keeps_the_session_and_drops_the_routes(lab: RunningLab) -> None:
    prefix = f"{FABRIC.switch('leaf02').loopback}/32"
    with driver(lab, "leaf01") as device:
        device.load_merge_candidate(config="no route-map RM-FABRIC permit 10")
        device.commit_config()
        until(lambda: exits(lab, "leaf01", prefix) == set(), "nothing is learnt")
        assert is_established(lab, "leaf01")
        device.load_replace_candidate(config=config_of(FABRIC, "leaf01"))
        device.commit_config()
    until(lambda: len(exits(lab, "leaf01", prefix)) == 2, "everything is learnt again")


def test_a_wrong_password_and_a_disabled_api_are_refused(lab: RunningLab) -> None:
    device = json.loads((lab.home / lab.name / "lab.json").read_text(encoding="utf-8"))["devices"]["spine02"]
    kind = napalm.get_network_driver("eos")
    stranger = kind(
        device["address"], "admin", "wrong", timeout=PATIENCE_S, optional_args={"port": device["https_port"]}
    )
    with pytest.raises(pyeapi.eapilib.ConnectionError, match=r"[Uu]nauthorized"):
        stranger.open()
    with driver(lab, "spine02") as opened:
        opened.load_merge_candidate(config="management api http-commands\nvrf MGMT\nshutdown")
        opened.device.run_commands([f"configure session {opened.config_session} commit"])
        opened.config_session = None
        with pytest.raises(pyeapi.eapilib.ConnectionError):
            opened.get_facts()
        lab.shell("spine02", "FastCli -p 15 -c 'configure\nmanagement api http-commands\nvrf MGMT\nno shutdown'")
        assert opened.get_facts()["hostname"] == "spine02"
