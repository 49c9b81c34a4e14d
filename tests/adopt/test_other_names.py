"""Lossless numbers and policies are read, whatever names they have and whether or not ports state their speed."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from netkit.adopt.document import fabric_yaml
from netkit.errors import RenderError
from netkit.platforms.compare import MODELS, compare
from netkit.platforms.config import Files
from netkit.platforms.sonic.tables import CONTROL_LISTS
from netkit.project.adopting import adopted as adopted_whole
from tests import intents
from tests.adopt.test_round_trip import adopted, files_of
from tests.random_intents import Values
from tests.test_ipv6 import V6

NUMBERS: Values = {
    "lossless": {
        "roce": {"priority": 4, "dscp": [34], "weight": 70},
        "best_effort": {"weight": 30},
        "cnp": {"priority": 5, "dscp": 40, "shape_percent": 20},
        "ecn": {400: {"min_bytes": 500_000, "max_bytes": 2_000_000, "probability_percent": 30}},
        "pool_percent": 80,
    }
}
NAMES = {
    "nvue": ("ecn-400g", "underlay", "PL-", "RM-"),
    "eos": ("ROCE-400G", "LOSSLESS", "SPINES", "PL-", "RM-"),
    "sonic": ("PL-", "RM-"),
}
RELEASES = {"nvue": "5.16.1", "eos": "4.35.1F", "sonic": "202411"}


@pytest.mark.parametrize("platform", RELEASES)
def test_numbers_of_lossless_classes_are_read(platform: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, RELEASES[platform], NUMBERS))
    files = {name: renamed(own, NAMES[platform]) for name, own in files_of(fabric).items()}
    found = adopted(files).fabric
    assert [port.profile.ecn for switch in found.switches for port in switch.ports] == [
        port.profile.ecn for switch in fabric.switches for port in switch.ports
    ]
    shape = 20 if platform != "nvue" else 10  # NVUE has none, so that it stays netkit's default
    assert (found.lossless.cnp.shape_percent, found.lossless.roce, found.lossless.pool_percent) == (
        shape,
        fabric.lossless.roce,
        80,
    )


SONIC_MAPS = {"AZURE_LOSSLESS": "WRED", "FROM-": "IN-", "TO-": "OUT-", "scheduler.": "sched-", "SPINES": "UP"}
IN_USE = {
    "nvue": ("5.16.1", {"ecn-400g": "GPU_ECN", "underlay": "FABRIC", "PL-": "prefixes-", "RM-": "map-"}),
    "eos": ("4.35.1F", {"ROCE-400G": "GPU", "SPINES": "UP", "PL-": "prefixes-", "RM-": "map-"}),
    "sonic": ("202411", SONIC_MAPS | {"q_lossy_profile": "lossy", "fabric": "FAST"}),
    "unified": ("202511", SONIC_MAPS | {"egress_lossless_profile": "lossless_out"}),
    "frr": ("10.2", {"FROM-": "IN-", "TO-": "OUT-", "SPINES": "UP", "profile fabric": "profile FAST"}),
}


@pytest.mark.parametrize("name", IN_USE)
def test_names_in_use_go_into_the_intent(name: str) -> None:
    (version, names), platform = IN_USE[name], name.replace("unified", "sonic")
    numbers: Values = {"purpose": "lab"} if platform == "frr" else NUMBERS
    mode: Values = {"switches": {tier: {"routing_mode": "unified"} for tier in ("leaf", "spine") if name == "unified"}}
    fabric = intents.fabric(intents.on_platform(platform, version, {**numbers, **mode}))
    switches = {switch.name for switch in fabric.switches}
    files = {
        device: {file: replaced(text, names) for file, text in own.items()} if device in switches else own
        for device, own in files_of(fabric).items()
    }
    found = adopted_whole("again", files, {}, Path())
    assert (found.leave, found.remaining) == ((), {})
    again = files_of(found.proposal.fabric)
    assert {name: MODELS[platform].parse(again[name]) for name in switches} == {
        name: MODELS[platform].parse(files[name]) for name in switches
    }


def test_a_group_of_sessions_by_address_is_renamed() -> None:
    tiers = {"switches": {"leaf": {"object_names": {"peer_group": {"SPINES": "UP"}}}}}
    values = intents.on_platform("eos", "4.35.1F", {"pools": {"links": "10.9.0.0/20"}, **tiers})
    text = files_of(intents.fabric(values))["leaf01"]["eos.cfg"]
    assert "peer group UP\n" in text
    assert "SPINES" not in text


def replaced(text: str, names: Mapping[str, str]) -> str:
    for own, other in names.items():
        text = text.replace(own, other)
    return text


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"route_maps": {"RM-FABRIC": "OURS"}}, "'route_maps' is not a kind of names on NVIDIA Cumulus Linux"),
        ({"route_map": {"RM-FABRIC": "OURS", "RM-LOCAL": "OURS"}}, "two of the kind route_map would have one name"),
    ],
)
def test_wrong_names_are_refused(names: Values, message: str) -> None:
    values = intents.on_platform("nvue", "5.16.1", {"switches": {"leaf": {"object_names": names}}})
    with pytest.raises(RenderError, match=message) as refused:
        files_of(intents.fabric(values))
    assert refused.value.problems[0].path == ("switches", "leaf", "object_names", *names)


@pytest.mark.parametrize("export", ["local", "all"])
@pytest.mark.parametrize("platform", RELEASES)
def test_leaves_announce_what_their_policies_permit(platform: str, export: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, RELEASES[platform], {"routing": {"leaf_export": export}}))
    files = {name: renamed(own, NAMES[platform]) for name, own in files_of(fabric).items()}
    assert adopted(files).fabric.routing.leaf_exports_all == (export == "all")


@pytest.mark.parametrize("platform", RELEASES)
def test_policies_with_lists_that_do_not_exist_are_read(platform: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, RELEASES[platform]))
    files = {
        name: {file: re.sub(r"(ip[ -]prefix-list:? )PL-LOCAL", r"\1GONE", text) for file, text in own.items()}
        for name, own in files_of(fabric).items()
    }
    assert not adopted(files).fabric.routing.leaf_exports_all


def renamed(files: Files, names: tuple[str, ...]) -> Files:
    """Return the files with other names of profiles, groups, lists and maps."""
    found = dict(files)
    for place, name in enumerate(names):
        found = {file: text.replace(name, f"their-own-{place}") for file, text in found.items()}
    return found


LISTS = {"nvue": ("NETKIT-MANAGEMENT",), "eos": ("NETKIT-MANAGEMENT",), "sonic": tuple(CONTROL_LISTS)}
ALLOWED: Values = {"management": {"allow": ["192.0.2.0/24", "198.51.100.7/32"]}}


@pytest.mark.parametrize("platform", RELEASES)
def test_management_access_lists_are_read_under_any_name(platform: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, RELEASES[platform], ALLOWED))
    files = {name: renamed(own, LISTS[platform]) for name, own in files_of(fabric).items()}
    found = adopted_whole("again", files, {}, Path())
    management = found.proposal.intent.management
    assert management
    assert [str(network) for network in management.allow] == ALLOWED["management"]["allow"]
    assert (found.leave, found.remaining) == ((), {})


def with_list(files: Files, name: str) -> Files:
    """Return the files of a switch with a list of SSH."""
    file, text = next(
        (file, text) for file, text in files.items() if file in {"startup.yaml", "config_db.json", "eos.cfg"}
    )
    if file == "eos.cfg":
        text = text.replace("management ssh\n", f"management ssh\n   ip access-group {name} in\n")
        return {**files, file: f"{text}!\nip access-list standard {name}\n   10 permit 192.0.2.0/24\n"}
    tree = yaml.safe_load(text)
    if file == "config_db.json":
        table = {"type": "CTRLPLANE", "stage": "ingress", "services": ["SSH"]}
        rule = {"PRIORITY": "9999", "PACKET_ACTION": "ACCEPT", "SRC_IP": "192.0.2.0/24"}
        return {**files, file: json.dumps(tree | {"ACL_TABLE": {name: table}, "ACL_RULE": {f"{name}|RULE_1": rule}})}
    ssh = {"ip": {"protocol": "tcp", "tcp": {"dest-port": {"22": {}}}}}
    permitted = {"ip": {**ssh["ip"], "source-ip": "192.0.2.0/24"}}
    rules = {"10": {"match": permitted, "action": {"permit": {}}}, "20": {"match": ssh, "action": {"deny": {}}}}
    bound: Values = {"system": {"control-plane": {"acl": {name: {"inbound": {}}}}}}
    intents.merge(tree[0]["set"], {"acl": {name: {"type": "ipv4", "rule": rules}}, **bound})
    return {**files, file: yaml.safe_dump(tree)}


ITS_OWN = {
    "nvue": ["acl / NETKIT-MANAGEMENT", "system / control-plane"],
    "eos": ["ip access-list standard NETKIT-MANAGEMENT"],
    "sonic": ["ACL_RULE / NETKIT-MANAGEMENT|RULE_1", "ACL_TABLE / NETKIT-MANAGEMENT"],
}
IPV4_ONLY = "the lists of allow are of IPv4: over IPv6 everyone would still reach the switches"


@pytest.mark.parametrize("platform", RELEASES)
@pytest.mark.parametrize("name", ["MINE", "NETKIT-MANAGEMENT"])
def test_a_list_that_an_intent_cannot_have_is_listed(platform: str, name: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, RELEASES[platform], V6))
    files = dict(files_of(fabric))
    files |= {switch.name: with_list(files[switch.name], name) for switch in fabric.switches}
    found = adopted_whole("again", files, {}, Path())
    assert found.proposal.fabric.loopback_pool_v6
    guess = ("management", f"allow is left as it runs: {IPV4_ONLY}")
    assert found.proposal.guesses.count(guess) == 1
    bound = [f"management ssh / ip access-group {name} in"] if platform == "eos" else []
    left = ITS_OWN[platform] if name == "NETKIT-MANAGEMENT" else []
    assert [rule["path"] for rule in found.leave] == left + bound
    assert found.remaining == {}
    assert f"\n# guessed: {guess[1]}\nmanagement: {{" in fabric_yaml(found.proposal, found.leave)


@pytest.mark.parametrize("platform", RELEASES)
def test_lists_without_a_place_in_an_intent_are_named(platform: str) -> None:
    every: list[tuple[Values, list[str], str]] = [
        ({}, ["leaf01"], "most switches have another"),
        ({"management": None}, ["leaf01", "leaf02"], "they share no management network"),
    ]
    for changes, holders, why in every:
        files = dict(files_of(intents.fabric(intents.on_platform(platform, RELEASES[platform], changes))))
        files |= {name: with_list(files[name], "MINE") for name in holders}
        found = adopted_whole("again", files, {}, Path())
        text = f"the list of who may log in to {', '.join(holders)} is left as it runs: {why}"
        assert ("management", text) in found.proposal.guesses
        assert f"\n# guessed: {text}\n" in fabric_yaml(found.proposal, found.leave)
        bound = ["management ssh / ip access-group MINE in"] if platform == "eos" else []
        assert [rule["path"] for rule in found.leave] == bound
        assert found.remaining == {}


@pytest.mark.parametrize("platform", RELEASES)
def test_a_list_by_another_name_is_netkits(platform: str) -> None:
    names = {"object_names": {"access_list": {name: f"MINE-{name[-1]}" for name in LISTS[platform]}}}
    values = intents.on_platform(platform, RELEASES[platform], {"switches": {"leaf": names}})
    many, one, none = (
        files_of(intents.fabric({**values, "management": {**values["management"], "allow": allowed}}))["leaf01"]
        for allowed in (["192.0.2.0/24", "198.51.100.7/32"], ["192.0.2.0/24"], [])
    )
    for intended in (one, none):
        found = compare(MODELS[platform], many, intended).changes
        assert found
        assert all(change.is_removal and "MINE" in " ".join(change.path) for change in found)
