"""NVUE in a running lab: switches configured from nothing over SSH, with real FRR, links and lldpd."""

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from netkit import design
from netkit.design import Fabric
from netkit.hardware import Catalog
from netkit.intent import Intent
from tests.lab.personalities.nvue.bench import rendered
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = [needs_lab, pytest.mark.whole]
FABRIC: Fabric = design.build(Intent.model_validate(intent(attachment="vlan")), Catalog())
APPLY = "nv config apply -y"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot unconfigured switches and configure each as a user does."""
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), intent(attachment="vlan")), "--bare") as bare:
        for switch in FABRIC.switches:
            text = rendered(FABRIC, switch.name)["startup.yaml"]
            bare.shell(switch.name, f"cat > /tmp/s.yaml && nv config patch /tmp/s.yaml && {APPLY}", stdin=text)
        for switch in FABRIC.switches:
            until(lambda name=switch.name: is_established(bare, name), f"{switch.name} has all its sessions")  # type: ignore[misc]
        yield bare


def shown(lab: RunningLab, device: str, path: str) -> Any:
    return json.loads(lab.shell(device, f"nv show {path} -o json"))


def states(lab: RunningLab, device: str) -> dict[str, str]:
    found = shown(lab, device, "vrf default router bgp neighbor")
    return {name: neighbor["session-state"] for name, neighbor in found.items()}


def is_established(lab: RunningLab, device: str) -> bool:
    wanted = {port.name: "established" for port in FABRIC.switch(device).fabric_ports}
    return states(lab, device) == wanted


def revision(lab: RunningLab, device: str) -> str:
    """The number of the applied revision."""
    found = json.loads(lab.shell(device, "nv config history -o json"))
    saved = [int(number) for number in found if found[number]["state"] == "applied_and_saved"]
    return str(max(saved))


def difference(lab: RunningLab, device: str) -> str:
    """The changes that frr-reload.py would still make."""
    out = lab.run(device, "/usr/lib/frr/frr-reload.py", "--test", "--stdout", "/etc/frr/frr.conf")
    return out[out.index("Lines To") :] if "Lines To" in out else ""


@pytest.mark.parametrize("device", ["leaf01", "spine02"])
def test_frr_runs_its_generated_configuration(lab: RunningLab, device: str) -> None:
    lab.lab("restart", device)  # FRR's daemons use a new hostname only after a restart
    until(lambda: is_established(lab, device), "the sessions are back")
    assert difference(lab, device) == ""


def test_links_and_addresses_are_configured(lab: RunningLab) -> None:
    links = {link["ifname"]: link for link in json.loads(lab.run("leaf01", "ip", "-j", "addr"))}
    leaf = FABRIC.switch("leaf01")
    assert leaf.vlan is not None
    assert {links[port.name]["mtu"] for port in leaf.ports} == {9216}
    assert {links[port.name].get("master") for port in leaf.host_ports} == {f"vlan{leaf.vlan.number}"}
    address = links[f"vlan{leaf.vlan.number}"]["addr_info"][0]
    assert f"{address['local']}/{address['prefixlen']}" == leaf.vlan.gateway
    assert leaf.loopback in {found["local"] for found in links["lo"]["addr_info"]}


def test_cabling_is_as_designed(lab: RunningLab) -> None:
    leaf = FABRIC.switch("leaf01")
    wanted = {port.name: (port.peer, port.peer_port) for port in leaf.fabric_ports}

    def seen() -> dict[str, tuple[str, str]]:
        found = shown(lab, "leaf01", "interface lldp")
        return {
            name: (
                next(iter(entry["lldp"]["neighbor"])),
                next(iter(entry["lldp"]["neighbor"].values()))["port"]["name"],
            )
            for name, entry in found.items()
            if name in wanted
        }

    until(lambda: seen() == wanted, f"LLDP shows {wanted}")


def test_an_unconfirmed_change_is_reverted_in_kernel_and_frr(lab: RunningLab) -> None:
    before = lab.run("leaf01", "vtysh", "-c", "show running-config")
    moves = shown(lab, "leaf01", "interface swp33s0 link stats")["carrier-transitions"]
    sets = "nv set interface swp33s0 link state down; nv set router bgp graceful-shutdown enabled"
    assert "applied [rev_id:" in lab.shell("leaf01", f"{sets}; {APPLY} --confirm 2s")
    until(lambda: lab.run("leaf01", "vtysh", "-c", "show running-config") == before, "FRR is as before")
    until(lambda: is_established(lab, "leaf01"), "the session is back")
    assert lab.shell("leaf01", "nv config diff startup applied") == ""
    assert shown(lab, "leaf01", "interface swp33s0 link stats")["carrier-transitions"] == moves + 2


def test_a_power_cut_before_the_confirmation_reverts(lab: RunningLab) -> None:
    lab.shell("leaf02", f"nv set interface swp33s0 link state down; {APPLY} --confirm 30m")
    assert shown(lab, "leaf02", "interface swp33s0 link")["admin-status"] == "down"
    assert lab.lab("restart", "leaf02").returncode == 0
    until(lambda: is_established(lab, "leaf02"), "the session is back")
    assert shown(lab, "leaf02", "interface swp33s0 link")["admin-status"] == "up"


def test_a_drained_neighbor_carries_no_traffic(lab: RunningLab) -> None:
    before = revision(lab, "leaf01")
    prefix = f"{FABRIC.switch('leaf02').loopback}/32"

    def ports(device: str) -> set[str]:
        routes = json.loads(lab.run(device, "vtysh", "-c", f"show ip route {prefix} json"))
        hops = [hop for route in routes.get(prefix, []) for hop in route["nexthops"]]
        return {hop["interfaceName"] for hop in hops if hop.get("fib")}

    until(lambda: ports("leaf01") == {"swp33s0", "swp33s1"}, "both spines are used")
    left = difference(lab, "leaf01")  # its factory hostname, unless it was restarted since
    lab.shell("leaf01", f"nv set vrf default router bgp neighbor swp33s1 graceful-shutdown enabled; {APPLY}")
    until(lambda: ports("leaf01") == {"swp33s0"}, "only one spine is used")
    assert is_established(lab, "leaf01")
    assert difference(lab, "leaf01") == left
    lab.shell("leaf01", f"nv config apply {before} -y")
    until(lambda: ports("leaf01") == {"swp33s0", "swp33s1"}, "both spines are used again")


def test_a_change_that_frr_refuses_is_not_applied(lab: RunningLab) -> None:
    before = lab.run("spine01", "vtysh", "-c", "show running-config")
    done = lab.ssh("spine01", f"nv set router bfd profile underlay min-rx-interval 4294967; {APPLY}")
    assert done.returncode == 1
    assert "Failure during apply" in done.stdout
    assert lab.run("spine01", "vtysh", "-c", "show running-config") == before
    assert is_established(lab, "spine01")
    lab.shell("spine01", "nv config detach")


def test_an_apply_asks_for_confirmation(lab: RunningLab) -> None:
    lab.shell("spine01", "nv set interface swp1s0 description asked")
    done = lab.ssh("spine01", "nv config apply", stdin="n\n")
    assert (done.returncode, "Are you sure?" in done.stdout) == (1, True)
    done = lab.ssh("spine01", "nv config apply", stdin="y\n")
    assert (done.returncode, "applied_and_saved" in done.stdout) == (0, True)
    assert shown(lab, "spine01", "interface swp1s0 description") == "asked"


def test_a_configuration_without_the_account_deletes_it(lab: RunningLab) -> None:
    own = "{set: {system: {hostname: spine02, config: {auto-save: {state: enabled}}}}}"
    stage = "cat > /tmp/own.yaml && nv config replace /tmp/own.yaml && nv config apply -y --confirm 20s"
    lab.ssh("spine02", stage, stdin=f"[{own}]")
    until(lambda: lab.ssh("spine02", "true").returncode == 255, "nobody can log in")
    until(lambda: lab.ssh("spine02", "true").returncode == 0, "the account is back with what ran before")
    until(lambda: is_established(lab, "spine02"), "its sessions are back")


def test_the_rest_interface_changes_the_same_switch(lab: RunningLab) -> None:
    record = json.loads((lab.home / lab.name / "lab.json").read_text(encoding="utf-8"))["devices"]["spine02"]
    place = (record["address"], record["https_port"])
    trusted = ssl.create_default_context(cadata=ssl.get_server_certificate(place))
    password = (lab.home / lab.name / "password").read_text(encoding="utf-8").strip()
    login = base64.b64encode(f"cumulus:{password}".encode()).decode()

    def ask(method: str, path: str, body: object = None) -> Any:
        line = http.client.HTTPSConnection(*place, context=trusted, timeout=120)
        line.request(method, f"/nvue_v1{path}", json.dumps(body), {"Authorization": f"Basic {login}"})
        answer = line.getresponse()
        assert answer.status == 200, answer.read()
        return json.loads(answer.read())

    (number,) = ask("POST", "/revision")
    ask("PATCH", f"/interface/swp1s0?rev={number}", {"description": "over REST"})
    done = ask("PATCH", f"/revision/{number}", {"state": "apply", "auto-prompt": {"ays": "ays_yes"}})
    assert done["state"] == "applied_and_saved"
    assert shown(lab, "spine02", "interface swp1s0 description") == "over REST"
