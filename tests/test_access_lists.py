"""Management access lists: the intent, and its configuration on each NOS."""

from typing import Any

import pytest

from netkit.errors import RenderError
from netkit.lab.state import SwitchState
from netkit.platforms.compare import MODELS, compare
from netkit.render import Engine, render
from tests import intents
from tests.schema import eos
from tests.test_external import peer

NOSES = {"nvue": "5.16.1", "sonic": "202411", "eos": "4.35.1F"}
HERE = ["192.0.2.0/24", "198.51.100.7/32"]
FOREIGN = {
    "nvue": ("startup.yaml", "- set:\n", "- set:\n    acl:\n      OWN:\n        type: ipv4\n"),
    "sonic": (
        "config_db.json",
        '"DEVICE_METADATA": {',
        '"ACL_TABLE": {"OWN": {"type": "CTRLPLANE", "services": ["SSH"]}}, "DEVICE_METADATA": {',
    ),
    "eos": ("eos.cfg", "ip routing ipv6", "ip access-list standard OWN\n   10 permit 10.0.0.0/8\n!\nip routing ipv6"),
}


def files(name: str, **changes: Any) -> dict[str, str]:
    fabric = intents.fabric(intents.on_platform(name, NOSES[name], changes))
    (rendered,) = render(fabric, [fabric.switch("leaf01")], Engine())
    return dict(rendered.files)


@pytest.mark.parametrize("name", NOSES)
def test_lists_by_other_names_stay_and_those_of_netkit_are_removed_with_the_intent(name: str) -> None:
    file, old, new = FOREIGN[name]
    plain, guarded = files(name), files(name, management={"allow": HERE})
    assert old in plain[file]
    foreign = {**plain, file: plain[file].replace(old, new, 1)}
    assert compare(MODELS[name], foreign, plain).changes == ()
    removed = compare(MODELS[name], guarded, plain).changes
    assert removed
    assert all(change.is_removal and any("NETKIT-" in part for part in change.path) for change in removed), removed
    assert {change.risk.word for change in removed} == {"low"}


def test_a_gateway_outside_the_list_gives_a_warning() -> None:
    fabric = intents.fabric(intents.values({"management": {"allow": ["198.51.100.0/24"]}}))
    found = [note for note in fabric.notes if note.path == ("management", "allow")]
    assert [(note.severity, note.message) for note in found] == [
        (
            "warning",
            "192.0.2.1, the gateway of leaf01, is not in it: access through NAT or a jump host there is cut off",
        )
    ]
    fabric = intents.fabric(intents.values({"management": {"allow": HERE}}))
    assert not any(note.path == ("management", "allow") for note in fabric.notes)


def test_sonic_refuses_a_list_that_would_drop_bfd_of_an_external_peer() -> None:
    given = {"external": [peer("Ethernet472")], "management": {"allow": HERE}}
    fabric = intents.fabric(intents.on_platform("sonic", "202411", given))
    with pytest.raises(RenderError, match="SONiC drops BFD of peers outside the fabric"):
        tuple(render(fabric, [fabric.switch("spine01")], Engine()))


@pytest.mark.parametrize(("address", "refused"), [("192.0.2.1", set()), ("198.51.100.8", {"ssh", "snmp"}), ("", set())])
def test_a_lab_knows_which_services_an_address_cannot_reach(address: str, refused: set[str]) -> None:
    state = SwitchState("leaf01", access={"ssh": ("192.0.2.0/24",), "snmp": ("192.0.2.1/32",)})
    assert state.refused(address) == refused


EDGES = {"nvue": "swp60s0", "sonic": "Ethernet472", "eos": "Ethernet60/1"}
EDGE_LINES = {
    "nvue": ("          '50':", "                dest-ip: 192.0.2.0/24", "          NETKIT-EDGE-isp-a:"),
    "sonic": (
        '"type": "L3", "stage": "ingress", "ports": ["Ethernet472"]}',
        '"NETKIT-EDGE-isp-a|RULE_10": {"PRIORITY": "9990", "PACKET_ACTION": "DROP", "SRC_IP": "10.128.0.0/16"}',
        '"NETKIT-EDGE-isp-a|RULE_50": {"PRIORITY": "9950", "PACKET_ACTION": "DROP", "DST_IP": "192.0.2.0/24"}',
    ),
    "eos": (
        "   10 deny ip 10.128.0.0/16 any\n   20 deny ip 10.255.0.0/24 any\n   30 deny ip 192.0.2.0/24 any\n",
        "   40 deny ip any 10.255.0.0/24\n   50 deny ip any 192.0.2.0/24\n   60 permit ip any any\n",
        "   ip access-group NETKIT-EDGE-isp-a in\n",
    ),
}


def edge(name: str, given: dict[str, Any] | None) -> dict[str, str]:
    peers = [peer(EDGES[name], bfd=False, filter=given), peer(EDGES[name], device="spine02", bfd=False)]
    peers[1] |= {"name": "isp-b", "address": "203.0.113.3/31", "peer": "203.0.113.2"}
    fabric = intents.fabric(intents.on_platform(name, NOSES[name], {"external": peers}))
    found = {one.device: dict(one.files) for one in render(fabric, fabric.tier("spine"), Engine())}
    assert not any("NETKIT-EDGE" in text for text in found["spine02"].values())
    return found["spine01"]


@pytest.mark.parametrize("name", NOSES)
def test_a_filter_drops_spoofed_sources_and_traffic_to_the_control_plane(name: str) -> None:
    guarded, plain = edge(name, {}), edge(name, None)
    text = "".join(guarded.values())
    assert all(line in text for line in EDGE_LINES[name]), text
    changes = compare(MODELS[name], guarded, plain).changes
    assert changes
    assert all(change.is_removal and change.risk.word == "low" for change in changes), changes
    assert not any(
        "NETKIT-EDGE" in part for change in compare(MODELS[name], guarded, guarded).changes for part in change.path
    )


def test_a_nos_accepts_a_filtered_file() -> None:
    assert [one for one in eos.problems(edge("eos", {})["eos.cfg"], "4.35.1F") if "access" in one] == []
