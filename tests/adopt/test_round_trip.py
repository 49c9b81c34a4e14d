"""Any fabric that is rendered is adopted again: the intent found renders the same configurations."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import reduce
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.adopt import Adoption, FoundIntent, fitted, propose, survey
from netkit.adopt.fit import compared
from netkit.adopt.links import End
from netkit.design import Fabric
from netkit.design.entries import keys_of
from netkit.design.select import select
from netkit.design.tables import cables as designed_cables
from netkit.errors import DesignError
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms import PLATFORMS as SWITCH_PLATFORMS
from netkit.platforms.config import Files
from netkit.project.adopting import adopted as adopted_whole
from netkit.render import Engine, render
from tests.intents import fabric as small
from tests.intents import on_platform, storage, storage_eos
from tests.intents import values as small_values
from tests.lanes import examples
from tests.plan.scenes import VERSIONS
from tests.random_intents import MANAGEMENT, PLATFORMS, Values, guarded, of_ipv4
from tests.random_intents import intents as random_intents
from tests.test_speeds import MIXED

CATALOG, ENGINE = Catalog(), Engine()
READ = ("nvue", "sonic", "frr", "eos")


def files_of(fabric: Fabric) -> Mapping[str, Files]:
    return {one.device: one.files for one in render(fabric, select(fabric, ""), ENGINE)}


def adopted(files: Mapping[str, Files], neighbors: Mapping[End, End] | None = None) -> FoundIntent:
    source = Adoption("again", survey(files.items()), CATALOG, neighbors or {})
    return fitted(source, propose(source), files, ENGINE)


def differences(proposal: FoundIntent, files: Mapping[str, Files]) -> Mapping[str, list[str]]:
    return {
        name: [f"{change.path}: {change.running} -> {change.intended}" for change in comparison.changes]
        for name, comparison in compared(proposal.fabric, proposal.fabric.names, files, ENGINE)
        if comparison.changes
    }


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(guarded(random_intents()))
def test_any_rendered_fabric_is_adopted(values: Values) -> None:
    for tier in values["switches"].values():
        if tier["platform"] not in READ:
            tier.update(PLATFORMS["sonic"])
    fabric = design.build(Intent.model_validate(values), CATALOG)
    files = files_of(fabric)
    proposal = adopted(files)
    cabled = {name for link in fabric.links() for name in (link.device, link.peer)}
    placed = set(proposal.placement.places)
    assert cabled <= placed
    assert not any(fabric.switch(name).fabric_ports for name in placed - cabled)
    assert set(proposal.placement.left_out) == set(files) - placed
    assert differences(proposal, files) == {}
    assert proposal.links.dangling == ()


def test_spines_of_a_plane_without_leaves_are_adopted() -> None:
    changes: Values = {
        "rails": 3,
        "cross_rail": "blocked",
        "switches": {"spine": {"planes": 3}},
        "names": {"spine": "spine{number:02}"},
        "units": [{"unit": 1, "hosts": 2, "rails": "0,2"}],
    }
    files = files_of(small(small_values(changes)))
    found = adopted_whole("again", files, {}, Path())
    assert {spine.name for spine in found.proposal.fabric.tier("spine")} == {name for name in files if "spine" in name}
    assert (found.unread, found.leave, found.remaining) == ({}, (), {})
    assert found.proposal.invented == 0


@st.composite
def with_mixed_tiers(draw: st.DrawFn) -> Values:
    """Return a random intent some of whose switches have another NOS than their tier."""
    values = draw(random_intents())
    fabric = design.build(Intent.model_validate(values), CATALOG)
    rows: list[Values] = []
    firsts = {fabric.tier(role)[0].name for role in {switch.role for switch in fabric.switches}}  # those of the tier
    for switch in fabric.switches:
        if switch.name not in firsts and draw(st.booleans()):
            place = {key: getattr(switch, key) for key in keys_of(fabric, switch.role)}
            rows.append({"role": switch.role, **place, **PLATFORMS[draw(st.sampled_from(READ))]})
    is_lab = values["purpose"] == "lab" or any(row["platform"] == "frr" for row in rows)
    return {**values, "purpose": "lab" if is_lab else "production", "tables": {"devices": rows}}


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(with_mixed_tiers())
def test_tiers_with_several_platforms_are_adopted(values: Values) -> None:
    fabric = design.build(Intent.model_validate(values), CATALOG)
    files = files_of(fabric)
    found = adopted(files)
    assert differences(found, files) == {}
    assert found.links.dangling == ()
    placed = found.placement.places
    expected = {one.name: (one.platform, one.model.name) for one in fabric.switches if one.name in placed}
    read = ((one.name, (one.platform, one.model.name)) for one in found.fabric.switches)
    assert {name: one for name, one in read if name in placed} == expected


@pytest.mark.parametrize(
    ("planes", "written", "expected"),
    [
        (2, "s{plane}-{slot:02}", "s{plane}-{slot:02}"),
        (2, "dc1-s{number:03}", "dc1-s{number:03}"),
        (1, "dc0-s{number}", "dc0-s{slot}"),
        (2, "spine{number:02}", None),
    ],
)
def test_patterns_of_the_names_of_spines_are_found(planes: int, written: str, expected: str | None) -> None:
    changes: Values = {
        "cross_rail": "blocked" if planes > 1 else "routed",
        "switches": {"spine": {"planes": planes}},
        "names": {"leaf": None, "host": None, "spine": written},
        "ceilings": {"spines": 2},
    }
    fabric = small(small_values(changes))
    files = files_of(fabric)
    found = adopted(files)
    assert found.intent.names.spine == expected
    assert "name" not in found.tables.get("devices", [{}])[0]
    assert differences(found, files) == {}


@st.composite
def odd_links(draw: st.DrawFn) -> Values:
    """Return a fabric with sessions by address, of all or of some links: each of a /29 to /31, in any order."""
    values: Values = draw(random_intents(("two-tier", "three-tier")).map(of_ipv4))
    for tier in values["switches"].values():
        if tier["platform"] not in READ:
            tier.update(PLATFORMS["sonic"])
    values["pools"].pop("links", None)
    links = [link for link in designed_cables(design.build(Intent.model_validate(values), CATALOG)) if link["link"]]
    if len(links) == 1 or draw(st.booleans()):
        values["pools"] |= {"links": "10.8.0.0/14"}
    numbers = draw(st.permutations(range(len(links))))
    some = draw(st.sets(st.sampled_from(numbers), min_size=1, max_size=max(1, len(links) - 1)))
    rows = []
    for link, number in zip(links, numbers, strict=True):
        if "links" not in values["pools"] and number not in some:
            continue
        length = draw(st.integers(29, 31))
        first = 0 if length == 31 else 1
        ends = draw(st.permutations([first, first + 1]))
        own, peer = (str(IPv4Address("100.64.0.0") + 8 * number + end) for end in ends)
        keys = {key: link[key] for key in ("device", "peer", "link")}
        rows.append({**keys, "address": f"{own}/{length}", "peer_address": peer})
    return {**values, "tables": {"cables": rows}}


def addresses_of(fabric: Fabric) -> dict[tuple[str, str], tuple[str, str]]:
    return {
        (switch.name, port.name): (port.address, port.peer_address)
        for switch in fabric.switches
        for port in switch.fabric_ports
    }


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(odd_links(), st.data())
def test_sessions_by_address_are_adopted(values: Values, data: st.DataObject) -> None:
    fabric = design.build(Intent.model_validate(values), CATALOG)
    files = dict(files_of(fabric))
    proposal = adopted(files)
    assert differences(proposal, files) == {}
    assert addresses_of(proposal.fabric) == addresses_of(fabric)
    ends = [{switch.name, port.peer} for switch in fabric.switches for port in switch.fabric_ports if port.peer_address]
    spines = sorted(
        spine.name
        for spine in fabric.tier("spine")
        if spine.fabric_ports and not all(spine.name in found for found in ends)
    )
    if len(spines) > 1:  # one that is not read is known by the sessions of others
        del files[data.draw(st.sampled_from(spines))]
        assert differences(adopted(files), files) == {}


ACCESS = {
    "nvue": {"model": "SN4600C", "platform": "nvue", "version": "5.16.1", "breakout": "1x100G"},
    "eos": {"model": "DCS-7060X6-64PE", "platform": "eos", "version": "4.35.1F", "breakout": "2x400G"},
}
CABLES = {"nvue": {"media": "100G-DAC"}, "eos": {"media": "400G-DAC"}}
SERVER_PORTS = {"nvue": ("swp57", "swp58", "swp59"), "eos": ("Ethernet57/1", "Ethernet57/5", "Ethernet58/1")}


@st.composite
def with_networks(draw: st.DrawFn) -> Values:
    """Return a fabric with a network beside the rails."""
    values: Values = draw(random_intents())
    platform, is_pair = draw(st.sampled_from(sorted(ACCESS))), draw(st.booleans())
    cable = {**CABLES[platform], "length_m": 2}
    vlans: list[Values] = [{"number": 200, "prefix": "10.200.0.0/20"}]
    vlans[0] |= draw(st.sampled_from([{}, {"gateway": "10.200.15.254"}]))
    if is_pair:
        vlans[0] |= draw(st.sampled_from([{}, {"switch_addresses": ["10.200.15.253", "10.200.15.252"]}]))
    vlans += draw(
        st.lists(
            st.sampled_from([{"number": 201}, {"number": 210, "prefix": "10.210.0.0/24"}]), max_size=2, unique_by=str
        )
    )
    servers = [
        {
            "name": f"nas{index}",
            "ports": [port],
            "lag": draw(st.booleans()),
            **draw(st.sampled_from([{}, {"vlan": 200}, {"tagged": [200]}])),
        }
        for index, port in enumerate(SERVER_PORTS[platform])
        if draw(st.booleans())
    ]
    interfaces = [f"ens{number}" for number in range(draw(st.integers(1, 2)) * (2 if is_pair else 1))]
    hosts = {
        "interfaces": interfaces,
        "bond": draw(st.sampled_from(["bond0", "lag7"])),
        "first_address": draw(st.integers(4, 99)),
        "routes": draw(st.sampled_from([[], ["10.201.0.0/16"], ["0.0.0.0/0"]])),
        **cable,
    }
    network = {
        "name": draw(st.sampled_from(["storage", "oob-net", "front"])),
        "switches": {
            **ACCESS[platform],
            "pair": is_pair,
            **({"peer_links": draw(st.integers(1, 3)), "peer_cable": cable} if is_pair else {}),
            "asn": 4_200_090_000,
            "loopback": "10.254.0.1",
            "management": "198.18.15.200",
            **draw(st.sampled_from([{}, {"names": ["sw-a", "sw-b"][: 2 if is_pair else 1]}])),
        },
        "vlans": vlans,
        "servers": servers,
        "mtu_bytes": draw(st.sampled_from([1500, 9000])),
        **draw(st.sampled_from([{"hosts": hosts}, {}])),
    }
    values |= {"management": MANAGEMENT, "networks": [network]}
    if "hosts" in network and draw(st.booleans()):
        try:
            fabric = design.build(Intent.model_validate(values), CATALOG)
        except DesignError:  # more hosts than ports
            return values
        own = ports_of(fabric, next(switch.name for switch in fabric.switches if switch.access))
        hosts["ports"] = dict(zip(own, draw(st.permutations(list(own.values()))), strict=True))
    return values


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(with_networks())
def test_networks_beside_the_rails_are_adopted(values: Values) -> None:
    # Without a lossless class or a LAG nothing distinguishes a switch of a network from a leaf.
    assume(any(tier["platform"] != "frr" for tier in values["switches"].values()))
    try:
        fabric = design.build(Intent.model_validate(values), CATALOG)
    except DesignError:  # more hosts than ports
        assume(False)
        raise
    files = files_of(fabric)
    found = adopted(files)
    beside = {switch.name for switch in fabric.switches if switch.access}
    assert {switch.name for switch in found.fabric.switches if switch.access} == beside
    assert not beside & found.placement.left_out.keys()
    others = [text for texts in differences(found, files).values() for text in texts]
    if found.unattached:  # in an order that no ceilings make: their ports are those of servers
        others = [text for text in others if "description" not in text and "15-netkit-" not in text]
    assert others == []


OF_MODEL = {"cage", "lane_port", "split", "fec"}
FILTERS: list[Values | None] = [None, {}, {"deny_from": ["192.168.0.0/16"], "deny_to": [], "first_number": 100}]
PEER_PORTS = {"nvue": ("swp55", "swp56"), "eos": ("Ethernet55/1", "Ethernet56/5")}


@st.composite
def with_peers(draw: st.DrawFn) -> Values:
    """Return a fabric with peers outside at its spines, core switches and network beside the rails."""
    values: Values = draw(st.one_of(random_intents(("two-tier", "three-tier")), with_networks()))
    fabric = design.build(Intent.model_validate(values), CATALOG)
    at: list[tuple[str, str, str | None, list[str]]] = []
    for switch in fabric.switches:
        if switch.access:
            at += [(switch.name, port, None, ["10.200.0.0/16"]) for port in PEER_PORTS[switch.platform]]
        elif switch.role != "leaf" and switch.fabric_ports:
            split = draw(st.sampled_from([split for split in switch.model.splits if 60 in split.cages]))
            name = SWITCH_PLATFORMS[switch.platform].port_name(switch.model, split, 60, split.ports - 1)
            at.append((switch.name, name, split.mode, [str(fabric.host_pool), "10.255.0.0/21"]))
    peers = [
        {
            "name": f"isp-{index}",
            "device": device,
            "port": port,
            "breakout": breakout,
            "address": f"203.0.113.{2 * index + 1}/31",
            "peer": f"203.0.113.{2 * index}",
            "asn": 64512 + index,
            "accept": draw(st.sampled_from([["0.0.0.0/0"], ["198.51.100.0/24", "0.0.0.0/0"]])),
            "announce": announced[: draw(st.integers(1, 2))],
            "max_prefixes": draw(st.sampled_from([2, 100, 5000])),
            "bfd": draw(st.booleans()),
            "mtu_bytes": draw(st.sampled_from([1500, 9000])),
            "filter": draw(st.sampled_from(FILTERS)) if fabric.switch(device).platform != "frr" else None,
        }
        for index, (device, port, breakout, announced) in enumerate(draw(st.permutations(at))[:4])
    ]
    return {**values, "external": peers}


def peers_of(fabric: Fabric) -> dict[tuple[str, str], object]:
    """Return the peers by their ports; how those are split may follow from another model with the same names."""
    return {
        (switch.name, port.name): [getattr(port, one.name) for one in fields(port) if one.name not in OF_MODEL]
        for switch in fabric.switches
        for port in switch.external
    }


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(with_peers())
def test_peers_outside_are_adopted(values: Values) -> None:
    assume(not values.get("networks") or any(tier["platform"] != "frr" for tier in values["switches"].values()))
    try:
        fabric = design.build(Intent.model_validate(values), CATALOG)
    except DesignError:  # no free cage
        assume(False)
        raise
    files = files_of(fabric)
    found = adopted(files)
    assert peers_of(found.fabric) == peers_of(fabric)
    others = [text for texts in differences(found, files).values() for text in texts]
    assume(not found.invented)  # nor any numbers of units and slots
    if found.unattached:
        others = [text for text in others if "description" not in text and "15-netkit-" not in text]
    assert others == []


@pytest.mark.parametrize("network", [storage, storage_eos])
def test_networks_of_renamed_things_are_adopted(network: Callable[[], Values]) -> None:
    """Other names of switches, servers and LAGs are kept; hosts in another order of ports are attached as servers."""
    fabric = small(small_values({"networks": [network()]}))
    renames = {"storage01": "sw-x", "storage02": "sw-w", "nas1": "filer-7", "bond0": "lag", "vlan201": "backup"}
    files = {
        renames.get(name, name): {
            reduce(lambda one, other: one.replace(*other), renames.items(), file): reduce(
                lambda one, other: one.replace(*other), renames.items(), text
            )
            for file, text in own.items()
        }
        for name, own in files_of(fabric).items()
    }
    found = adopted_whole("again", files, {}, Path())
    (entry,) = found.proposal.intent.networks
    assert (entry.switches.names, entry.servers[0].name) == (("sw-x", "sw-w"), "filer-7")
    assert entry.hosts
    assert entry.hosts.bond == "lag"
    assert (found.leave, found.remaining) == ((), {})
    moved = {
        name: {file: swapped(text) if "sw-" in name else text for file, text in own.items()}
        for name, own in files.items()
    }
    left = adopted_whole("again", moved, {}, Path())
    (entry,) = left.proposal.intent.networks
    assert entry.hosts
    assert {server.name for server in entry.servers} == {"filer-7"}
    assert entry.hosts.ports == ports_of(left.proposal.fabric, "sw-x")
    assert len(set(entry.hosts.ports.values())) == len(fabric.hosts)
    assert left.proposal.fabric.switch("sw-x").access != found.proposal.fabric.switch("sw-x").access
    assert all(rule["path"].endswith("description") for rule in left.leave)  # of filer_7
    assert left.remaining == {}


@pytest.mark.parametrize("network", [storage, storage_eos])
def test_hosts_with_an_odd_number_of_nics_at_a_pair_are_servers(network: Callable[..., Values]) -> None:
    """The design deals NICs evenly; the network must not be left out for them."""
    entry = network(hosts={"interfaces": ["nic0", "nic1", "nic2", "nic3"], "media": network()["hosts"]["media"]})
    fabric = small(small_values({"networks": [entry]}))
    files = {
        name: {file: re.sub(r"gpu\d+:nic3", "spare", text) for file, text in own.items()}
        for name, own in files_of(fabric).items()
    }
    found = adopted_whole("again", files, {}, Path())
    (entry_found,) = found.proposal.intent.networks
    assert entry_found.hosts is None
    names = {server.name for server in entry_found.servers}
    assert names == {"nas1", *(host.name for host in fabric.hosts)}
    assert found.proposal.unattached == len(fabric.hosts)
    assert found.remaining == {}


def ports_of(fabric: Fabric, name: str) -> dict[str, str]:
    """Return the first port of each host at a switch of a network."""
    access = fabric.switch(name).access
    return {port.peer: port.name for port in reversed(access.ports if access else ()) if port.kind == "host"}


@pytest.mark.parametrize("network", [storage, storage_eos])
@pytest.mark.parametrize("is_pair", [True, False])
def test_gateways_of_ones_own_are_adopted(network: Callable[[], Values], *, is_pair: bool) -> None:
    entry = network()
    entry["switches"]["pair"] = is_pair
    entry["vlans"][0] |= {"gateway": "10.200.3.254"}
    entry["vlans"][0] |= {"switch_addresses": ["10.200.3.252", "10.200.3.253"]} if is_pair else {}
    found = adopted_whole("again", files_of(small(small_values({"networks": [entry]}))), {}, Path())
    (vlan, *_) = found.proposal.intent.networks[0].vlans
    assert str(vlan.gateway) == "10.200.3.254"
    assert [str(one) for one in vlan.switch_addresses] == entry["vlans"][0].get("switch_addresses", [])
    assert (found.leave, found.remaining) == ((), {})


@pytest.mark.parametrize("network", [storage, storage_eos])
@pytest.mark.parametrize("is_pair", [True, False])
@pytest.mark.parametrize("length", [31, 32])
def test_networks_with_prefixes_too_small_are_left_out(
    network: Callable[[], Values], length: int, *, is_pair: bool
) -> None:
    """As of a VLAN for BGP between a pair: the design has no such prefix, and the reason is given."""
    entry = network()
    entry["switches"]["pair"] = is_pair
    entry["vlans"][1] |= {"prefix": "10.201.0.0/29"}
    files = {
        name: {
            file: text.replace("10.201.0.1/29", f"10.201.0.1/{length}")
            .replace("10.201.0.2/29", f"10.201.0.0/{length}")
            .replace("10.201.0.3/29", f"10.201.0.1/{length}")
            for file, text in own.items()
        }
        for name, own in files_of(small(small_values({"networks": [entry]}))).items()
    }
    found = adopted(files)
    assert not any(switch.access for switch in found.fabric.switches)
    prefix = f"10.201.0.{0 if is_pair or length == 31 else 1}/{length}"
    why = f"storage is left out: {prefix} has no room for a gateway and two switches"
    assert [text for section, text in found.guesses if section == "networks"] == [why]


@pytest.mark.parametrize("network", [storage, storage_eos])
def test_only_networks_that_an_intent_cannot_have_are_left_out(network: Callable[..., Values]) -> None:
    """Of three networks one has a prefix that the design refuses; one is the half of a pair that was read."""
    entry = network()
    fabric = small(small_values({"networks": [entry, *(another(entry, number) for number in (1, 2))]}))
    files = dict(files_of(fabric))
    del files["netb02"]
    for name in ("neta01", "neta02"):
        files[name] = {file: re.sub(r"10\.211\.0\.[23]/\d+", "10.211.0.2/32", one) for file, one in files[name].items()}
    found = adopted_whole("again", files, {}, Path())
    assert [one.name for one in found.proposal.intent.networks] == ["storage"]
    assert dict.fromkeys(found.unread) == dict.fromkeys(["neta01", "neta02", "netb01"])
    assert [text for section, text in found.proposal.guesses if section == "networks" and "left out" in text] == [
        "netb01 is left out: it is one of a pair, and nothing names the other or it was not read",
        "neta is left out: 10.211.0.2/32 has no room for a gateway and two switches",
    ]
    assert not any("neta: " in text for _, text in found.proposal.guesses)
    assert (found.leave, found.remaining) == ((), {})


@pytest.mark.parametrize("network", [storage, storage_eos])
@pytest.mark.parametrize("described", ["gpu02", "old.node", "(spare)"])
def test_descriptions_at_networks_may_not_name_a_host(network: Callable[..., Values], described: str) -> None:
    """The host was renamed, and its old name is that of no device or of no form; the rest of the network is adopted."""
    fabric = small(small_values({"networks": [network()]}))
    files = {
        name.replace("gpu02", "node-b"): {
            file: text.replace("gpu02", described if name.startswith("storage") else "node-b")
            for file, text in own.items()
        }
        for name, own in files_of(fabric).items()
    }
    found = adopted_whole("again", files, {}, Path())
    (entry,) = found.proposal.intent.networks
    assert entry.hosts
    assert [text for _, text in found.proposal.guesses if "do not name it" in text] == [
        f"storage: {first_port(fabric, 'gpu02')} of node-b, by its place; descriptions do not name it"
    ]
    assert (found.unread, found.remaining) == ({}, {})
    assert {(one["devices"], "description" in one["path"]) for one in found.leave} == {("role=storage", True)}


def test_networks_of_switches_with_dots_have_names() -> None:
    entry, words = storage(), ("st", "x", "oob")
    networks = [another(entry, number) | {"name": word} for number, word in enumerate(words, 1)]
    for one in networks:
        one["switches"]["names"] = [f"RZ1.{one['name']}-{number}" for number in (1, 2)]
    found = adopted_whole("again", files_of(small(small_values({"networks": networks}))), {}, Path())
    assert {one.name: one.role for one in found.proposal.intent.networks} == {
        "RZ1-oob": "oob",
        "RZ1-st": "storage",
        "RZ1-x": "storage",
    }
    assert (found.unread, found.leave, found.remaining) == ({}, (), {})


def first_port(fabric: Fabric, host: str) -> str:
    return next(port.name for one in fabric.switches if one.access for port in one.access.ports if port.peer == host)


def test_a_pair_is_found_whose_switches_do_not_name_each_other() -> None:
    fabric = small(small_values({"networks": [storage()]}))
    files = {
        name: {file: re.sub(r"(?m)^ +description: .?storage0\d.*\n", "", text) for file, text in own.items()}
        for name, own in files_of(fabric).items()
    }
    found = adopted_whole("again", files, {}, Path())
    (entry,) = found.proposal.intent.networks
    assert (entry.name, entry.switches.pair, found.unread, found.remaining) == ("storage", True, {}, {})


def another(entry: Values, number: int) -> Values:
    """Return a network like one, without hosts, with names and numbers of its own."""
    first = int(entry["vlans"][0]["number"]) + 10 * number
    switches = {**entry["switches"], "asn": 4_200_095_000 + number, "loopback": f"10.254.7{number}.1"}
    switches |= {"management": f"192.0.2.{240 + 4 * number}"}
    vlans = [{"number": first, "prefix": f"10.2{number}1.0.0/24"}]
    values = {key: one for key, one in entry.items() if key not in {"hosts", "servers", "routes"}}
    return {**values, "name": f"net{'-abc'[number]}", "switches": switches, "vlans": vlans}


def swapped(text: str) -> str:
    """Return a configuration with a name that is no host name, and hosts at the ports of others."""
    return (
        text.replace("filer-7", "filer_7").replace("gpu01", "gpu00").replace("gpu06", "gpu01").replace("gpu00", "gpu06")
    )


@pytest.mark.parametrize("platform", READ)
def test_units_of_two_speeds_are_adopted(platform: str) -> None:
    fabric = small(on_platform(platform, VERSIONS[platform], MIXED))
    files = files_of(fabric)
    found = adopted(files)
    assert differences(found, files) == {}
    assert [(unit.host_breakout, unit.host_media) for unit in found.intent.units] == [
        (None, None),
        ("1x800G", "800G-DR8"),
    ]
    assert ("cables", "host of unit 2: media 800G-DR8") in found.guesses
