"""Fabrics that no intent expresses: refused with the devices and the reason."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from netkit import design
from netkit.adopt.fit import compared
from netkit.adopt.proposal import validated
from netkit.design.fabric import Fabric, Switch
from netkit.errors import AdoptError
from netkit.hardware import Catalog
from netkit.platforms.config import Files
from netkit.project.adopting import adopted
from netkit.render import Engine
from tests import intents
from tests.adopt.by_hand import BY_HAND
from tests.adopt.test_hand_made import fabric as linux_fabric
from tests.adopt.test_round_trip import files_of
from tests.lab.running import intent, on_platform

NUMBERED: Mapping[str, Callable[[str, str, str, str], str]] = {
    "nvue": lambda text, port, own, peer: re.sub(
        rf"(      {port}:\n        description: .*\n)",
        rf"\1        ipv4: {{address: {{{own}/31: {{}}}}}}\n",
        text.replace(f"              {port}: {{", f"              {peer}: {{").replace("unnumbered", "numbered"),
    ),
    "eos": lambda text, port, own, peer: re.sub(
        rf"neighbor interface {port} peer-group (\S+) (remote-as \d+)",
        rf"neighbor {peer} peer group \1\n   neighbor {peer} \2",
        re.sub(rf"(interface {port}\n(?:   .*\n)*?)   ipv6 enable\n", rf"\1   ip address {own}/31\n", text),
    ),
    "sonic": lambda text, port, own, peer: text.replace(
        f'"{port}": {{\n            "ipv6_use_link_local_only": "enable"\n        }}',
        f'"{port}": {{}},\n        "{port}|{own}/31": {{}}',
    ).replace(f"neighbor {port} interface peer-group", f"neighbor {peer} peer-group"),
    "frr": lambda text, port, own, peer: re.sub(
        rf"(    {port}:.*\n)",
        rf"\1      addresses: [{own}/31]\n",
        text.replace(f"neighbor {port} interface peer-group", f"neighbor {peer} peer-group"),
    ),
}
RELEASES = {"nvue": "5.16.1", "eos": "4.35.1F", "sonic": "202411", "frr": "8.4.4"}


def with_addresses(platform: str, fabric: Fabric, switch: Switch, without: str) -> Files:
    """Return configurations made by hand, with an address at each end of the links between switches but of one."""
    files = {**files_of(fabric)[switch.name], **BY_HAND[platform](switch, fabric)}
    leaves = [leaf.name for leaf in fabric.tier("leaf")]
    spines = [spine.name for spine in fabric.tier("spine")]
    for port in (port for port in switch.fabric_ports if without not in {switch.name, port.peer}):
        is_leaf = switch.role == "leaf"
        leaf, spine = (switch.name, port.peer) if is_leaf else (port.peer, switch.name)
        first = 2 * (leaves.index(leaf) + len(leaves) * spines.index(spine))
        own, peer = (f"10.9.0.{first + is_leaf}", f"10.9.0.{first + (not is_leaf)}")
        files = {file: NUMBERED[platform](text, port.name, own, peer) for file, text in files.items()}
    return files


def numbered(platform: str, without: str = "") -> tuple[Fabric, dict[str, Files]]:
    model = "DCS-7060X6-64PE" if platform == "eos" else ""
    values = on_platform(platform, intent(purpose="lab"), version=RELEASES[platform], model=model)
    fabric = intents.fabric(values)
    files = {
        **files_of(fabric),
        **{one.name: with_addresses(platform, fabric, one, without) for one in fabric.switches},
    }
    assert platform != "sonic" or all(json.loads(files[one.name]["config_db.json"]) for one in fabric.switches)
    return fabric, files


@pytest.mark.parametrize("platform", RELEASES)
def test_sessions_by_address_made_by_hand_are_adopted(platform: str) -> None:
    fabric, files = numbered(platform)
    found = adopted("again", files, {}, Path())
    assert (found.unread, found.remaining) == ({}, {})
    assert found.proposal.links.dangling == ()
    designed = {
        (switch.name, port.name): (port.address, port.peer_address)
        for switch in found.proposal.fabric.switches
        for port in switch.fabric_ports
    }
    # First leaves, then spines, as with_addresses counts.
    ends = {("leaf01", "spine01"): 0, ("leaf02", "spine01"): 2, ("leaf01", "spine02"): 4, ("leaf02", "spine02"): 6}
    wanted = {
        (switch.name, port.name): (f"10.9.0.{first + is_leaf}/31", f"10.9.0.{first + (not is_leaf)}")
        for switch in fabric.switches
        for port in switch.fabric_ports
        for is_leaf in [switch.role == "leaf"]
        for first in [ends[(switch.name, port.peer) if is_leaf else (port.peer, switch.name)]]
    }
    assert designed == wanted


@pytest.mark.parametrize("platform", RELEASES)
def test_sessions_of_both_kinds_made_by_hand_are_adopted(platform: str) -> None:
    fabric, files = numbered(platform, without="spine02")
    heard = {("spine02", port.name): (port.peer, port.peer_port) for port in fabric.switch("spine02").fabric_ports}
    found = adopted("again", files, heard, Path())
    assert (found.unread, found.remaining, found.proposal.links.dangling) == ({}, {}, ())
    kinds = {
        (switch.name, port.peer): bool(port.peer_address)
        for switch in found.proposal.fabric.switches
        for port in switch.fabric_ports
    }
    assert len(kinds) == 8
    assert all(by_address == ("spine02" not in ends) for ends, by_address in kinds.items())


def test_ports_with_names_that_no_model_has_are_refused() -> None:
    def renamed(text: str) -> str:
        return re.sub(r"\bswp(\d+)s(\d)\b", lambda found: f"eth{int(found[1]) * 2 + int(found[2])}", text)

    files = {name: {file: renamed(text) for file, text in own.items()} for name, own in linux_fabric("").items()}
    with pytest.raises(AdoptError) as refused:
        adopted("again", files, {}, Path())
    assert str(refused.value) == (
        "ports of tor-1, tor-2 have names such as eth2, which no model has on Linux and FRR; "
        "ports have names such as swp1 there; rename them, or add their model"
    )


@pytest.mark.parametrize(("odd", "place"), [("leaf02", {"unit": 1, "rail": 1}), ("spine02", {"slot": 2})])
def test_a_switch_may_have_another_nos_than_its_tier(odd: str, place: dict[str, int]) -> None:
    row = {"role": odd[:-2], **place, "platform": "nvue", "version": RELEASES["nvue"]}
    fabric = intents.fabric(intents.on_platform("sonic", RELEASES["sonic"], {"tables": {"devices": [row]}}))
    found = adopted("again", files_of(fabric), {}, Path())
    systems = {switch.name: switch.platform for switch in found.proposal.fabric.switches}
    assert systems == {switch.name: "nvue" if switch.name == odd else "sonic" for switch in fabric.switches}
    assert (found.leave, found.remaining, found.unread) == ((), {}, {})


NEIGHBOR = re.compile(r"neighbor (10\.9\.0\.\d+) peer-group")


@pytest.mark.parametrize("has_frr_conf", [True, False])
def test_sessions_that_templates_of_sonic_make_are_left(*, has_frr_conf: bool) -> None:
    """In SONiC's default mode, its own templates make the configuration of FRR from the table of neighbours."""
    fabric, files = numbered("sonic")
    expected = {
        port.peer_address for one in adopted("own", files, {}, Path()).proposal.fabric.switches for port in one.ports
    }
    asns = {switch.name: str(switch.asn) for switch in fabric.switches}
    owners = {
        key.split("|")[1][:-3]: name for name in asns for key in tables_of(files[name])["INTERFACE"] if "|" in key
    }
    for name in asns:
        tables = tables_of(files[name])
        tables["DEVICE_METADATA"]["localhost"]["docker_routing_config_mode"] = "separated"
        peers = NEIGHBOR.findall(files[name]["frr.conf"])
        tables["BGP_NEIGHBOR"] = {
            peer: {"asn": asns[owners[peer]], "name": owners[peer], "admin_status": "up"} for peer in peers
        }
        kept = {"frr.conf": files[name]["frr.conf"]} if has_frr_conf else {}
        files[name] = {"config_db.json": json.dumps(tables), **kept}
    found = adopted("own", files, {}, Path())
    assert (found.unread, found.remaining, found.proposal.links.dangling) == ({}, {}, ())
    assert {port.peer_address for one in found.proposal.fabric.switches for port in one.ports} == expected
    assert [text for _, text in found.proposal.guesses if text.startswith("routing of ")] == [
        f"routing of {names} is made by the NOS: "
        "frr.conf, BGP_NEIGHBOR, DEVICE_METADATA/localhost/docker_routing_config_mode are left as they run"
        for names in ("leaf01, leaf02", "spine01, spine02")
    ]
    values = found.proposal.values | {"leave": list(found.leave)}
    lossless: Any = values["lossless"]
    lossless["ecn"][400]["min_bytes"] += 1
    values["routing"] = {"max_paths": 33}
    changed = design.build(validated(values, found.proposal.tables), Catalog())
    for _, comparison in compared(changed, sorted(asns), files, Engine()):
        assert [change.path for change in comparison.changes] == [
            ("WRED_PROFILE", "AZURE_LOSSLESS", "green_min_threshold")
        ]


def tables_of(files: Files) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = json.loads(files["config_db.json"])
    return tables


def test_files_without_ports_are_listed_with_the_reason() -> None:
    files = dict(files_of(intents.fabric(intents.on_platform("eos", RELEASES["eos"], {}))))
    files["spare"] = {"eos.cfg": "hostname spare\n"}
    files["pdu"] = {"notes.txt": "outlet 1\n"}
    assert adopted("again", files, {}, Path()).unread == {
        "spare": "no port is configured on it",
        "pdu": "it has no file of a known platform",
    }


def test_a_name_that_its_nos_does_not_accept_is_refused() -> None:
    fabric = intents.fabric(intents.on_platform("nvue", RELEASES["nvue"]))
    files = {
        name.replace("leaf0", "leaf_0"): {file: text.replace("leaf0", "leaf_0") for file, text in own.items()}
        for name, own in files_of(fabric).items()
    }
    with pytest.raises(AdoptError) as refused:
        adopted("again", files, {}, Path())
    why = "cannot be the name of a switch with NVIDIA Cumulus Linux (NVUE): its vendor advises against _ in host names"
    remedy = "rename its folder or backup, and in lists of devices and cables, such as to"
    wanted = [f"leaf_0{number} {why}; {remedy} leaf-0{number}" for number in range(1, 5)]
    assert str(refused.value).splitlines() == wanted


def test_an_own_host_name_that_its_nos_does_not_accept_is_left() -> None:
    fabric = intents.fabric(intents.on_platform("nvue", RELEASES["nvue"]))
    files = {
        name: {file: text.replace("hostname: leaf0", "hostname: leaf_0") for file, text in own.items()}
        for name, own in files_of(fabric).items()
    }
    found = adopted("again", files, {}, Path())
    assert (found.unread, found.remaining) == ({}, {})
    assert {rule["path"] for rule in found.leave} == {"system / hostname"}
