"""Static routes and peers outside are adopted; those that no intent expresses are left as they run."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netkit.platforms.config import Files
from netkit.project.adopting import adopted
from tests import intents
from tests.adopt.test_round_trip import files_of
from tests.test_ipv6 import RELEASES, V6, values

ROUTES: list[dict[str, Any]] = [
    {"prefix": "198.18.0.0/16", "discard": True},
    {"prefix": "198.19.0.0/16", "discard": True, "devices": "role=spine"},
    {"prefix": "203.0.113.0/24", "via": "10.128.0.1", "devices": "leaf01"},
]


@pytest.mark.parametrize("name", sorted(RELEASES.keys() - {"nvue-old"}))
def test_static_routes_are_adopted(name: str) -> None:
    files = files_of(intents.fabric(values(name, routing={"static": ROUTES})))
    found = adopted("again", files, {}, Path())
    routing = found.proposal.values["routing"]
    assert isinstance(routing, dict)
    assert routing["static"] == ROUTES
    assert (found.leave, found.remaining) == ((), {})


@pytest.mark.parametrize(("name", "network"), [("nvue", intents.storage), ("eos", intents.storage_eos)])
def test_static_routes_of_networks_are_adopted(name: str, network: Callable[[], dict[str, Any]]) -> None:
    own = {"prefix": "0.0.0.0/0", "via": "10.200.3.250", "devices": "role=storage"}
    files = files_of(intents.fabric(values(name, routing={"static": [own, *ROUTES[1:]]}, networks=[network()])))
    found = adopted("again", files, {}, Path())
    routing = found.proposal.values["routing"]
    assert isinstance(routing, dict)
    assert routing["static"] == [own, *ROUTES[1:]]
    assert (found.leave, found.remaining) == ((), {})


@pytest.mark.parametrize(
    ("platform", "options"),
    [("eos", "tag 77"), ("eos", "name CORP"), ("eos", "200"), ("frr", "tag 77"), ("frr", "5"), ("frr", "table 10")],
)
def test_a_route_with_options_is_left_as_it_runs(platform: str, options: str) -> None:
    files = dict(files_of(intents.fabric(values(platform, routing={"static": ROUTES}))))
    file, line = "eos.cfg" if platform == "eos" else "frr.conf", "ip route 203.0.113.0/24 10.128.0.1"
    files["leaf01"] = {**files["leaf01"], file: files["leaf01"][file].replace(line, f"{line} {options}")}
    found = adopted("again", files, {}, Path())
    routing = found.proposal.values["routing"]
    assert isinstance(routing, dict)
    assert routing["static"] == ROUTES[:2]
    (rule,) = found.leave
    assert rule == {"path": f"{'' if platform == 'eos' else 'frr.conf / '}{line} {options}", "devices": "leaf01"}
    assert found.remaining == {}


def test_a_route_with_a_distance_is_left() -> None:
    files = dict(files_of(intents.fabric(values("frr", {}))))
    strange = "ip route 203.0.113.0/24 blackhole 254"
    text = files["leaf01"]["frr.conf"].replace("router bgp", f"{strange}\n!\nrouter bgp", 1)
    files["leaf01"] = {**files["leaf01"], "frr.conf": text}
    found = adopted("again", files, {}, Path())
    routing = found.proposal.values.get("routing") or {}
    assert isinstance(routing, dict)
    assert "static" not in routing
    assert found.remaining == {}


def test_a_route_into_the_fabric_is_left() -> None:
    files = dict(files_of(intents.fabric(values("frr", routing={"static": ROUTES}))))
    strange = "ip route 10.128.0.0/9 10.128.0.1"
    files["leaf01"] = {
        **files["leaf01"],
        "frr.conf": files["leaf01"]["frr.conf"].replace("ip route 203", f"{strange}\nip route 203"),
    }
    found = adopted("again", files, {}, Path())
    routing = found.proposal.values["routing"]
    assert isinstance(routing, dict)
    assert routing["static"] == ROUTES
    assert [rule["path"] for rule in found.leave] == [f"frr.conf / {strange}"]
    (guess,) = (text for section, text in found.proposal.guesses if section == "routing")
    assert guess == (
        "1 static routes are left as they run, such as: 10.128.0.0/9 overlaps pools.loopbacks:"
        " packets to it would not take the paths of the fabric"
    )
    assert found.remaining == {}


PEERS: list[dict[str, Any]] = [
    {
        "name": name,
        "device": "spine01",
        "address": f"203.0.113.{place}/31",
        "peer": f"203.0.113.{place - 1}",
        "asn": 64512 + place,
        "announce": ["10.128.0.0/16"],
        "bfd": True,
    }
    for name, place in (("isp-a", 1), ("isp-b", 3))
]


def with_peers(platform: str, ports: tuple[str, str]) -> dict[str, Files]:
    """Return the files of a fabric with two peers."""
    peers = [{**peer, "port": port} for peer, port in zip(PEERS, ports, strict=True)]
    return dict(files_of(intents.fabric(values(platform, external=peers))))


def test_a_peer_that_no_intent_has_does_not_hinder_another() -> None:
    files = with_peers("nvue", ("swp60s0", "swp60s1"))
    above, announced, below = files["spine01"]["startup.yaml"].partition("PL-EXTERNAL-OUT-isp-a:\n")
    strange = below.replace("10.128.0.0/16", "192.168.0.0/16", 1)
    files["spine01"] = {"startup.yaml": above + announced + strange}
    found = adopted("again", files, {}, Path())
    assert [peer.name for peer in found.proposal.intent.external] == ["isp-b"]
    message = "192.168.0.0/16 is not a summary of the fabric's addresses"
    assert ("external", f"1 peers outside are left as they run, such as: {message}") in found.proposal.guesses
    assert found.remaining == {}


def test_peers_that_the_nos_refuses_are_named() -> None:
    files = with_peers("sonic", ("Ethernet472", "Ethernet476"))
    for name in ("leaf01", "leaf02", "spine01", "spine02"):
        tree = json.loads(files[name]["config_db.json"])
        tree["ACL_TABLE"] = {"SSH_ONLY": {"type": "CTRLPLANE", "stage": "ingress", "services": ["SSH"]}}
        rule = {"PRIORITY": "9999", "PACKET_ACTION": "ACCEPT", "SRC_IP": "192.0.2.0/24"}
        tree["ACL_RULE"] = {"SSH_ONLY|RULE_1": rule}
        files[name] = {**files[name], "config_db.json": json.dumps(tree)}
    found = adopted("again", files, {}, Path())
    assert found.proposal.intent.external == ()
    message = "spine01: with management.allow, SONiC drops BFD of peers outside the fabric"
    assert ("external", f"2 peers outside are left as they run, such as: {message}") in found.proposal.guesses
    assert found.remaining == {}


@pytest.mark.parametrize(("platform", "port"), [("nvue", "swp60s0"), ("eos", "Ethernet60/1"), ("sonic", "Ethernet472")])
def test_filters_of_peers_keep_the_names_of_others(platform: str, port: str) -> None:
    """A peer at one of many spines, with lists and maps of its own."""
    spines = {"ceilings": {"spines": 16}, "switches": {"leaf": {}, "spine": {"slots": 16}}}
    peer = {**PEERS[0], "port": port, "device": "spine02", "filter": {"first_number": 100}}
    names = {"NETKIT-EDGE-isp-a": "INTERNET", "EXTERNAL-IN-isp-a": "FROM-ISP", "EXTERNAL-OUT-isp-a": "TO-ISP"}
    files = dict(files_of(intents.fabric(values(platform, external=[peer], **spines))))
    for own, other in names.items():
        files["spine02"] = {file: text.replace(own, other) for file, text in files["spine02"].items()}
    found = adopted("again", files, {}, Path())
    assert (found.leave, found.remaining) == ((), {})
    (external,) = found.proposal.intent.external
    networks = ["10.128.0.0/16", "10.255.0.0/24", "192.0.2.0/24"]
    assert external.filter is not None
    assert external.filter.model_dump(mode="json") == {
        "deny_from": networks,
        "deny_to": networks[1:],
        "first_number": 100,
    }


@pytest.mark.in_turn("attachment")
@pytest.mark.parametrize("name", sorted(RELEASES.keys() - {"nvue-old"}))
@pytest.mark.parametrize("attachment", ["p2p", "vlan"])
def test_ipv6_of_other_lengths_is_named(name: str, attachment: str) -> None:
    files = files_of(intents.fabric(values(name, V6, attachment=attachment)))
    length, last = (127, "") if attachment == "p2p" else (64, "[0-9a-f]")  # of a VLAN, not the prefix itself
    odd = re.compile(rf"(2001:db8:128:[0-9a-f:]*{last})/{length}\b")
    moved = {device: {file: odd.sub(r"\1/80", text) for file, text in own.items()} for device, own in files.items()}
    found = adopted("again", moved, {}, Path())
    pools = found.proposal.intent.pools
    assert (pools.loopbacks_v6 is not None, pools.hosts_v6) == (True, None)
    text = f"IPv6 of hosts at leaf01, leaf02, leaf03 … is left as it runs: its prefixes are not of /{length}"
    assert ("pools", text) in found.proposal.guesses
    assert found.leave
    assert found.remaining == {}


@pytest.mark.parametrize(
    ("links", "names", "why"),
    [
        (
            {"links": "10.9.0.0/20"},
            ("leaf01", "leaf02", "leaf03"),
            "sessions by address have no next hop for it",
        ),
        ({}, ("leaf01",), "most switches have none"),
    ],
)
def test_ipv6_that_no_intent_has_is_named(links: dict[str, str], names: tuple[str, ...], why: str) -> None:
    files = dict(files_of(intents.fabric(values("eos", pools=links))))
    for number, name in enumerate(names, 1):
        head = "interface Loopback0\n"
        text = files[name]["eos.cfg"].replace(head, f"{head}   ipv6 address 2001:db8:255::{number}/128\n")
        files[name] = {**files[name], "eos.cfg": text}
    found = adopted("again", files, {}, Path())
    assert ("pools", f"IPv6 of {', '.join(names)} is left as it runs: {why}") in found.proposal.guesses
    assert [rule["path"] for rule in found.leave] == [
        f"interface Loopback0 / ipv6 address 2001:db8:255::{number}/128" for number in range(1, len(names) + 1)
    ]
    assert found.remaining == {}


def test_peers_that_no_intent_expresses_are_named() -> None:
    files = with_peers("eos", ("Ethernet60/1", "Ethernet60/5"))
    text = files["spine01"]["eos.cfg"].replace("   ip address 203.0.113.1/31\n", "")
    text = re.sub(r"(PL-EXTERNAL-IN-isp-b\n +seq 10 permit 0.0.0.0/0)", r"\1 le 24", text)
    text += "vlan 300\n!\ninterface Vlan300\n   ip address 203.0.113.1/31\n!\n"
    files["spine01"] = {**files["spine01"], "eos.cfg": text}
    own = files["leaf01"]["eos.cfg"]
    bgp = re.sub(r"(router bgp \d+\n)", r"\1   neighbor 203.0.113.8 remote-as 64999\n", own)
    files["leaf01"] = {**files["leaf01"], "eos.cfg": bgp}
    found = adopted("again", files, {}, Path())
    lists = "an intent has lists of exact prefixes in both directions, but it has RM-EXTERNAL-IN-isp-b in"
    assert [text for section, text in found.proposal.guesses if section == "external"] == [
        "the session of spine01 to 203.0.113.0 is left as it runs: it runs on Vlan300, which is not a port",
        f"the session of spine01 to 203.0.113.2 is left as it runs: {lists}",
        "the session of leaf01 to 203.0.113.8 is left as it runs: an intent has no peers at leaves",
    ]
    assert found.proposal.intent.external == ()
    assert found.remaining == {}
