"""Properties of every fabric that netkit designs."""

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.design import Fabric, Host, Switch, capacity
from netkit.design.external import valleys
from netkit.errors import DesignError
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms import PLATFORMS
from tests import path_vector
from tests.lanes import examples
from tests.random_intents import Values, grown, intents

CATALOG = Catalog()
MANY = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
FEW = settings(MANY, max_examples=examples(30))


def build(values: Values) -> Fabric:
    return design.build(Intent.model_validate(values), CATALOG)


@MANY
@given(intents())
def test_every_address_name_and_number_is_unique(values: Values) -> None:
    fabric = build(values)
    addresses = [switch.loopback for switch in fabric.switches]
    addresses += [switch.management.address for switch in fabric.switches if switch.management]
    addresses += [str(IPv4Interface(switch.vlan.gateway).ip) for switch in fabric.switches if switch.vlan]
    addresses += [
        str(IPv4Interface(port.address).ip) for switch in fabric.switches for port in switch.ports if port.address
    ]
    addresses += [nic.address for host in fabric.hosts for nic in host.nics]
    assert [address for address, count in Counter(addresses).items() if count > 1] == []
    names = [switch.name for switch in fabric.switches] + [host.name for host in fabric.hosts]
    assert len(set(names)) == len(names)
    numbers = [leaf.asn for leaf in fabric.tier("leaf")]
    assert len(set(numbers)) == len(numbers)
    assert not set(numbers) & {switch.asn for switch in fabric.switches if switch.role != "leaf"}
    prefixes = [IPv4Network(leaf.leaf_prefix) for leaf in fabric.tier("leaf")]
    assert len(set(prefixes)) == len(prefixes)
    assert all(prefix.subnet_of(IPv4Network(fabric.host_pool)) for prefix in prefixes)


@MANY
@given(intents())
def test_both_ends_of_every_link_agree(values: Values) -> None:
    fabric = build(values)
    for switch in fabric.switches:
        places = [(port.cage, port.lane_port) for port in switch.ports]
        assert len(set(places)) == len(places) == len({port.name for port in switch.ports})
        for port in switch.fabric_ports:
            peer = fabric.switch(port.peer)
            (other,) = (found for found in peer.ports if found.name == port.peer_port)
            assert (other.peer, other.peer_port) == (switch.name, port.name)
            ours, theirs = port.profile, other.profile
            assert (ours.speed_gbps, ours.fec, ours.mtu_bytes, ours.cable) == (
                theirs.speed_gbps,
                theirs.fec,
                theirs.mtu_bytes,
                theirs.cable,
            )
            assert {ours.role, theirs.role} == {"up", "down"}
            assert switch.mtu_bytes == peer.mtu_bytes
    for host in fabric.hosts:
        check_host(fabric, host, values)


def check_host(fabric: Fabric, host: Host, values: Values) -> None:
    for nic in host.nics:
        leaf = fabric.switch(nic.leaf)
        (port,) = (found for found in leaf.ports if found.name == nic.leaf_port)
        assert (port.peer, port.peer_port, leaf.rail) == (host.name, nic.interface, nic.rail)
        assert port.speed_gbps == host.model.speed_gbps
        own = IPv4Interface(f"{nic.address}/{nic.prefix_length}")
        if leaf.vlan:
            assert str(own.network) == leaf.vlan.subnet == leaf.leaf_prefix
            assert leaf.vlan.gateway == f"{nic.gateway}/{nic.prefix_length}"
            assert leaf.vlan.number == values["pools"]["first_vlan"] + nic.rail
            assert own.ip not in {own.network.network_address, own.network.broadcast_address}
        else:
            pods = values["ceilings"].get("addresses_per_nic", 1) - 1
            assert (port.address, own.network.prefixlen) == (f"{nic.gateway}/{leaf.link_length}", leaf.link_length)
            assert (own.network.prefixlen == 31) == (pods == 0)
            assert len(list(own.network.hosts())) >= 2 + pods
            assert IPv4Interface(port.address).network == own.network
            assert own.network.subnet_of(IPv4Network(leaf.leaf_prefix))
        assert IPv4Address(nic.gateway) in own.network
        assert own.ip in IPv4Network(fabric.rails[nic.rail].prefix)
    assert host.mtu_bytes == values["hosts"]["mtu_bytes"]


@MANY
@given(intents())
def test_all_switches_share_the_smallest_mtu_and_no_host_exceeds_it(values: Values) -> None:
    fabric = build(values)
    smallest = min(PLATFORMS[tier["platform"]].max_mtu_bytes for tier in values["switches"].values())
    assert {switch.mtu_bytes for switch in fabric.switches} == {smallest}
    assert {port.profile.mtu_bytes for switch in fabric.switches for port in switch.ports} == {smallest}
    assert len({host.mtu_bytes for host in fabric.hosts}) == 1
    assert fabric.hosts[0].mtu_bytes <= smallest


@MANY
@given(intents())
def test_every_session_has_its_mirror(values: Values) -> None:
    sessions = set(build(values).sessions())
    for session in sessions:
        mirrors = [
            other
            for other in sessions
            if (other.device, other.port, other.peer, other.peer_port)
            == (session.peer, session.peer_port, session.device, session.port)
        ]
        assert len(mirrors) == 1
        assert (mirrors[0].local_asn, mirrors[0].peer_asn) == (session.peer_asn, session.local_asn)
        assert session.local_asn != session.peer_asn
        assert mirrors[0].direction != session.direction


def place(device: Switch | Host) -> tuple[object, ...]:
    """The location of a device, independent of its name and numbers."""
    if isinstance(device, Host):
        return ("host", device.pod, device.unit, device.slot)
    return (device.role, device.pod, device.unit, device.rail, device.slot, device.plane)


def assert_nothing_moved(before: Fabric, after: Fabric) -> None:
    switches = {place(switch): switch for switch in after.switches}
    hosts = {place(host): host for host in after.hosts}
    for switch in before.switches:
        if place(switch) in switches:
            assert_switch_stayed(switch, switches[place(switch)])
    for host in before.hosts:
        if place(host) in hosts:
            other = hosts[place(host)]
            assert (host.name, host.number) == (other.name, other.number)
            nics = {nic.rail: nic for nic in other.nics}
            assert all(nics.get(nic.rail, nic) == nic for nic in host.nics)


def assert_switch_stayed(switch: Switch, other: Switch) -> None:
    ours = (switch.name, switch.number, switch.asn, switch.loopback, switch.management, switch.leaf_prefix, switch.vlan)
    theirs = (other.name, other.number, other.asn, other.loopback, other.management, other.leaf_prefix, other.vlan)
    assert ours == theirs
    ports = {port.name: port for port in other.ports}
    peers = {(port.peer, port.peer_port): port for port in other.ports}
    for port in switch.ports:
        there = ports.get(port.name)
        if there:
            assert (there.cage, there.lane_port, there.address) == (port.cage, port.lane_port, port.address)
            assert (there.peer, there.peer_port, there.peer_asn) == (port.peer, port.peer_port, port.peer_asn)
        again = peers.get((port.peer, port.peer_port))
        assert again is None or again.name == port.name


@settings(MANY, max_examples=examples(100))
@given(grown())
def test_remaining_devices_never_change_when_others_are_added_removed_or_moved(pair: tuple[Values, Values]) -> None:
    assert_nothing_moved(build(pair[0]), build(pair[1]))


@FEW
@given(intents(("three-tier",)), st.integers(1, 5))
def test_the_ceiling_of_pods_can_be_raised_without_renumbering(values: Values, more: int) -> None:
    larger = copy.deepcopy(values)
    larger["ceilings"]["pods"] += more
    assert build(values).switches == build(larger).switches
    assert build(values).hosts == build(larger).hosts


@FEW
@given(intents(("two-tier",)), st.integers(1, 3))
def test_the_ceiling_of_units_can_be_raised_in_two_tiers_without_renumbering(values: Values, more: int) -> None:
    larger = copy.deepcopy(values)
    larger["ceilings"]["units"] += more
    assert build(values).switches == build(larger).switches
    assert build(values).hosts == build(larger).hosts


@FEW
@given(intents())
def test_the_same_intent_always_gives_the_same_fabric(values: Values) -> None:
    assert build(values) == build(copy.deepcopy(values))
    renewed = design.build(Intent.model_validate(copy.deepcopy(values)), Catalog())
    assert repr(renewed) == repr(build(values))


@MANY
@given(intents())
def test_links_ports_and_sessions_add_up(values: Values) -> None:
    fabric = build(values)
    links = Counter(link.kind for link in fabric.links())
    tiers = values["switches"]
    spines, cores = fabric.tier("spine"), fabric.tier("core")
    installed = Counter(leaf.pod for leaf in fabric.tier("leaf"))
    assert (
        links["host"]
        == sum(len(host.nics) for host in fabric.hosts)
        == sum(len(leaf.host_ports) for leaf in fabric.tier("leaf"))
    )
    if spines:
        per_plane = len({spine.slot for spine in spines})
        assert links["spine"] == len(fabric.tier("leaf")) * per_plane * tiers["leaf"]["uplinks_per_spine"]
    if cores:
        per_plane = len({core.slot for core in cores})
        assert links["core"] == len(spines) * per_plane * tiers["spine"]["uplinks_per_core"]
        assert {spine.pod for spine in spines} == set(installed)
    ports = sum(len(switch.ports) for switch in fabric.switches)
    assert ports == links["host"] + 2 * (links["spine"] + links["core"])
    assert sum(1 for _ in fabric.sessions()) == 2 * (links["spine"] + links["core"])


@MANY
@given(intents())
def test_the_summary_agrees_with_the_fabric(values: Values) -> None:
    fabric = build(values)
    summary = capacity.summarize(fabric, CATALOG.media())
    links = Counter(link.kind for link in fabric.links())
    assert summary.links == {kind: links[kind] for kind in ("host", "spine", "core") if links[kind]}
    assert summary.gpus == 8 * len(fabric.hosts)
    assert sum(tier.ports_used for tier in summary.tiers) == sum(len(switch.ports) for switch in fabric.switches)
    for tier in summary.tiers:
        switches = fabric.tier(tier.role)  # type: ignore[arg-type]  # a tier's role is one
        limit = sum(switch.model.max_ports or switch.model.cages * 2 for switch in switches)
        assert 0 <= tier.ports_spare <= limit - tier.ports_used
    fibres = sum(item.count for item in summary.items if item.what == "fibre")
    assert fibres == sum(links.values())
    cages = {(switch.name, port.cage) for switch in fabric.switches for port in switch.ports}
    modules = {item.what: item.count for item in summary.items if "module" in item.what}
    assert modules["optical module, switch end"] == len(cages)


POLICIES = st.fixed_dictionaries({"leaf_exports_all": st.booleans(), "allowas_in": st.booleans()})


@settings(MANY, max_examples=examples(80))
@given(intents(("two-tier", "three-tier")), POLICIES, st.data())
def test_the_valley_check_agrees_with_bgp(values: Values, policy: dict[str, bool], data: st.DataObject) -> None:
    fabric = build(values)
    assume(len(fabric.switches) <= 16)
    others = [switch for switch in fabric.switches if switch.role != "leaf"]
    chosen = data.draw(
        st.dictionaries(st.sampled_from([switch.name for switch in others]), st.integers(0, 1), max_size=3)
    )
    # Two of one layer may share a number; two layers, or the spines of two pods, may not: that is refused elsewhere.
    renumbered = {
        switch.name: 64600 + 10 * switch.pod + chosen[switch.name] for switch in others if switch.name in chosen
    }
    fabric = path_vector.with_policy(fabric, asns=renumbered, **policy)
    assert {valley.turn for valley in valleys(fabric)} == path_vector.valley_switches(fabric)


@FEW
@given(intents(("two-tier", "three-tier")))
def test_a_valid_fabric_has_every_route_with_all_links_up_and_any_one_down(values: Values) -> None:
    fabric = build(values)
    assume(len(fabric.switches) <= 16)
    planes = {leaf.name: leaf.plane for leaf in fabric.tier("leaf")}
    is_split = values["topology"] == "two-tier"

    def missing(down: path_vector.Adjacency) -> set[tuple[str, str]]:
        return {
            pair for pair in path_vector.unreached(fabric, down) if not is_split or planes[pair[0]] == planes[pair[1]]
        }

    assert missing(frozenset()) == set()
    if len({spine.slot for spine in fabric.tier("spine")}) > 1:
        for down in path_vector.adjacencies(fabric):
            assert missing(down) == set(), down


def small(topology: str) -> Values:
    """A fabric of two units, or of two pods of which the second has a single leaf."""
    base = {"platform": "nvue", "model": "SN5600", "version": "5.16.1", "breakout": "2x400G", "slots": 2}
    values: Values = {
        "name": "small",
        "topology": topology,
        "rails": 2,
        "ceilings": {
            "units": 2,
            "hosts_per_unit": 2,
            "spines": 2,
            "pods": 2 if topology == "three-tier" else 1,
            "cores": 2,
        },
        "switches": {
            "leaf": {
                "platform": "nvue",
                "model": "SN5600",
                "version": "5.16.1",
                "host_breakout": "2x400G",
                "uplink_breakout": "2x400G",
            },
            "spine": base,
        },
        "hosts": {"model": "dgx-h100"},
        "units": [{"unit": "1-2", "hosts": 1}],
        "cables": {kind: {"media": "800G-2xDR4", "length_m": 30} for kind in ("host", "spine", "core")},
        "pools": {"loopbacks": "10.255.0.0/24", "hosts": "10.128.0.0/16"},
    }
    if topology == "three-tier":
        values["switches"]["spine"] = {**base, "uplink_breakout": "2x400G"}
        values["units"].append({"pod": 2, "unit": 1, "hosts": 1, "rails": 0})
        values["switches"]["core"] = {**base, "planes": 1}
    return values


@pytest.mark.parametrize("topology", ["two-tier", "three-tier"])
@pytest.mark.parametrize("spine_asn", ["shared", "unique"])
@pytest.mark.parametrize("leaf_exports_all", [False, True])
@pytest.mark.parametrize("allowas_in", [False, True])
def test_each_policy_makes_valleys_where_bgp_does(
    topology: str, spine_asn: str, *, leaf_exports_all: bool, allowas_in: bool
) -> None:
    safe = build({**small(topology), "routing": {"spine_asn": spine_asn}})
    fabric = path_vector.with_policy(safe, leaf_exports_all=leaf_exports_all, allowas_in=allowas_in, asns={})
    assert {valley.turn for valley in valleys(fabric)} == path_vector.valley_switches(fabric)


@pytest.mark.parametrize("topology", ["two-tier", "three-tier"])
@pytest.mark.parametrize("spine_asn", ["shared", "unique"])
@pytest.mark.parametrize("leaf_export", ["local", "all"])
@pytest.mark.parametrize("allowas_in", [False, True])
def test_a_design_is_refused_exactly_when_bgp_would_make_a_valley(
    topology: str, spine_asn: str, leaf_export: str, *, allowas_in: bool
) -> None:
    values = small(topology)
    safe = build({**values, "routing": {"spine_asn": spine_asn}})
    policy = path_vector.with_policy(safe, leaf_exports_all=leaf_export == "all", allowas_in=allowas_in, asns={})
    has_valley = bool(path_vector.valley_switches(policy))
    asked = {**values, "routing": {"spine_asn": spine_asn, "leaf_export": leaf_export, "allowas_in": allowas_in}}
    if has_valley:
        with pytest.raises(DesignError, match="valley"):
            build(asked)
    else:
        build(asked)


ECN = {"min_bytes": 200_000, "max_bytes": 900_000, "probability_percent": 40}
NUMBERS: Values = {
    "lossless": {
        "ecn": dict.fromkeys((100, 200, 400, 800), ECN),
        "headroom": {speed: {"xoff_bytes": 400_000} for speed in (200, 400)},
        "watchdog": {"poll_ms": 200, "detection_polls": 3},
        "pool_percent": 60,
    },
    "routing": {"bfd": {"interval_ms": 500, "multiplier": 4}, "keepalive_s": 5, "hold_s": 15, "max_paths": 32},
}


@FEW
@given(intents(), st.sampled_from(["lossless", "routing"]))
def test_other_numbers_design_the_same_fabric_without_a_new_design(values: Values, section: str) -> None:
    changed = Intent.model_validate({**values, section: {**values.get(section, {}), **NUMBERS[section]}})
    before = build(values)
    expected, found = (
        refused_or(make)
        for make in (
            lambda: design.build(changed, CATALOG),
            lambda: design.with_numbers(before, changed, CATALOG, before.names),
        )
    )
    assert found == expected


def refused_or(make: Callable[[], Fabric]) -> Fabric | None:
    """A fabric without its notes; None where it is refused."""
    try:
        return replace(make(), notes=())
    except DesignError:
        return None
