"""Fabrics not designed by netkit: names, ports and numbers without a rule, and a device that was not read."""

import json
import random
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.adopt.links import End
from netkit.design import Fabric, tables
from netkit.errors import AdoptError, NetkitError
from netkit.intent import Intent
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Files
from netkit.platforms.object_names import occurrences
from netkit.project.adopting import adopted as adopted_whole
from tests.adopt.test_round_trip import CATALOG, READ, adopted, differences, files_of
from tests.lanes import examples
from tests.random_intents import PLATFORMS, Values, guarded
from tests.random_intents import intents as random_intents

Rows = list[dict[str, Any]]
WORDS = ("ai", "tor", "zz", "dc1-sw", "RZ1.Sw", "R2_Tor")
MANY = settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))


def with_own_numbers(values: Values, chance: random.Random) -> Values:
    """Return the intent with names, ports, loopbacks, AS numbers and prefixes of leaves in random order, in tables."""
    fabric = design.build(Intent.model_validate(values), CATALOG)
    rows: dict[str, Rows] = {
        table: [{key: cell for key, cell in row.items() if cell not in {None, ""}} for row in found(fabric)]
        for table, found in tables.TABLES.items()
        if table != "nics"
    }
    names = [row["name"] for row in rows["devices"]]
    has_nvue = "nvue" in {switch.platform for switch in fabric.switches}
    words = [word for word in WORDS if "_" not in word] if has_nvue else WORDS
    others = [f"{chance.choice(words)}-{number * 7 + 3}{chance.choice('abc')}" for number in range(len(names))]
    chance.shuffle(others)
    renamed = dict(zip(names, others, strict=True))
    for role in ("leaf", "spine", "core"):
        for column in ("loopback", "loopback_v6", "management_v6"):
            _shuffle([row for row in rows["devices"] if row["role"] == role and column in row], column, chance)
    leaves = [row for row in rows["devices"] if row["role"] == "leaf"]
    for leaf, asn in zip(leaves, chance.sample(range(64_512, 65_500), len(leaves)), strict=True):
        leaf["asn"] = asn
    for rail in {leaf["rail"] for leaf in leaves}:
        for column in ("prefix", "prefix_v6"):
            _shuffle([leaf for leaf in leaves if leaf["rail"] == rail and column in leaf], column, chance)
    for row in rows["devices"]:
        row["name"] = renamed[row["name"]]
        row.pop("vlan_gateway", None)
    _shuffle_ports(rows["cables"], renamed, chance)
    return {**values, "host_routes": "per-leaf", "tables": rows}


def _shuffle(rows: Rows, column: str, chance: random.Random) -> None:
    cells = [row[column] for row in rows]
    chance.shuffle(cells)
    for row, cell in zip(rows, cells, strict=True):
        row[column] = cell


def _shuffle_ports(cables: Rows, renamed: Mapping[str, str], chance: random.Random) -> None:
    by_switch: dict[tuple[str, str], Rows] = defaultdict(list)
    for row in cables:
        row |= {"device": renamed[row["device"]], "peer": renamed[row["peer"]]}
        for column in ("length_m", "media", "label"):
            row.pop(column, None)
        by_switch[(row["peer"], "peer_port")].append(row)
        if "link" in row:
            by_switch[(row["device"], "port")].append(row)
    for (_, column), found in by_switch.items():
        _shuffle(found, column, chance)


def foreign(values: Values, chance: random.Random) -> Fabric:
    """Design the intent with own numbers; combinations that the design refuses are not of interest."""
    try:
        return design.build(Intent.model_validate(with_own_numbers(values, chance)), CATALOG)
    except NetkitError:
        assume(False)
        raise


@MANY
@given(random_intents(), st.randoms(use_true_random=False))
def test_names_ports_and_numbers_of_others_are_kept(values: Values, chance: random.Random) -> None:
    fabric = foreign(values, chance)
    files = files_of(fabric)
    found = adopted(files)
    assert set(found.placement.places) == {name for link in fabric.links() for name in (link.device, link.peer)}
    assert differences(found, files) == {}


@MANY
@given(random_intents(), st.randoms(use_true_random=False))
def test_a_device_of_which_nothing_was_read_does_not_hinder_the_others(values: Values, chance: random.Random) -> None:
    fabric = foreign(values, chance)
    cabled = sorted({name for link in fabric.links() for name in (link.device, link.peer)})
    missing = chance.choice(cabled)
    read = {name: files for name, files in files_of(fabric).items() if name != missing}
    assume(any(name in read for leaf in fabric.tier("leaf") for name in [leaf.name]))
    assume(any(host.name in read for host in fabric.hosts))
    alone = {host.name for host in fabric.hosts if len(host.nics) == 1 and host.nics[0].leaf == missing}
    alone |= {
        spine.name
        for spine in fabric.tier("spine")
        if {port.peer for port in spine.ports if port.role == "down"} == {missing}
    }
    found = adopted(read)
    assert set(found.placement.places) >= set(cabled) - {missing} - alone
    roles = {switch.name: switch.role for switch in fabric.switches}
    wrong = {name for name, place in found.placement.places.items() if roles.get(name, "host") != place.role}
    assert wrong <= {missing}


@MANY
@given(guarded(random_intents()), st.randoms(use_true_random=False), st.booleans())
def test_a_part_of_a_fabric_is_adopted(values: Values, chance: random.Random, with_hosts: bool) -> None:
    """One unit or rail, with all spines and core switches, and with its hosts or without any."""
    fabric = design.build(Intent.model_validate(values), CATALOG)
    files = files_of(fabric)
    leaves = [leaf for leaf in fabric.tier("leaf") if leaf.host_ports]
    assume(leaves)
    one, by_rail = chance.choice(leaves), chance.random() < 0.5
    part = {leaf.name for leaf in leaves if (leaf.rail == one.rail if by_rail else leaf.unit == one.unit)}
    hosts = {host.name for host in fabric.hosts if any(nic.leaf in part for nic in host.nics)} if with_hosts else set()
    above = {switch.name for switch in fabric.switches if switch.role != "leaf"}
    read = {name: own for name, own in files.items() if name in part | hosts | above}
    found = adopted_whole("again", read, {}, Path())
    roles = {switch.name: switch.role for switch in fabric.switches}
    places = found.proposal.placement.places
    assert {name for name, place in places.items() if roles.get(name, "host") != place.role} == set()
    assert part <= places.keys()
    assert found.remaining == {}


DESCRIPTION = re.compile(r"(?m)^ +(neighbor \S+ )?description:? .*\n")


def undescribed(files: Mapping[str, Files]) -> Mapping[str, Files]:
    """Return the files without the descriptions of ports and neighbours."""
    found: dict[str, dict[str, str]] = {}
    for name, own in files.items():
        found[name] = {file: DESCRIPTION.sub("", text) for file, text in own.items()}
        if "config_db.json" in own:
            tables = json.loads(own["config_db.json"])
            for row in tables.get("PORT", {}).values():
                row.pop("description", None)
            for row in tables.get("BGP_NEIGHBOR", {}).values():
                row.pop("name", None)
            found[name]["config_db.json"] = json.dumps(tables)
    return found


def heard(fabric: Fabric, chance: random.Random, share: float) -> tuple[dict[End, End], set[End]]:
    """Return LLDP neighbours at one end of most cables, and the ends between switches without a neighbour."""
    neighbors: dict[End, End] = {}
    silent: set[End] = set()
    roles = {switch.name: switch.role for switch in fabric.switches}
    for link in fabric.links():
        ends = [(link.device, link.port), (link.peer, link.peer_port)]
        chance.shuffle(ends)
        if chance.random() < share:
            neighbors[ends[0]] = ends[1]
        elif link.device in roles:
            silent |= set(ends)
    return neighbors, silent


@MANY
@given(random_intents(), st.randoms(use_true_random=False))
def test_lldp_replaces_descriptions(values: Values, chance: random.Random) -> None:
    fabric = foreign(values, chance)
    files = undescribed(files_of(fabric))
    found = adopted(files, heard(fabric, chance, 1)[0])
    assert set(found.placement.places) == {name for link in fabric.links() for name in (link.device, link.peer)}
    assert (found.links.dangling, [link for link in found.links.hosts if link.origin == "guess"]) == ((), [])
    others = [text for texts in differences(found, files).values() for text in texts]
    assert [text for text in others if "description" not in text and "BGP_NEIGHBOR" not in text] == []


@MANY
@given(random_intents(), st.randoms(use_true_random=False))
def test_cables_that_nothing_names_are_listed(values: Values, chance: random.Random) -> None:
    pools = {key: pool for key, pool in values["pools"].items() if key != "links"}  # addresses would name the ends
    fabric = foreign({**values, "pools": pools}, chance)
    neighbors, silent = heard(fabric, chance, 0.8)
    assume(silent)
    refused = ""
    ends: set[End] = set()
    try:
        ends = set(adopted(undescribed(files_of(fabric)), neighbors).links.dangling)
    except AdoptError as error:
        refused = str(error)
    expected = f"the other end of {len(silent)} ports is unknown, such as "
    assert refused.startswith(expected) if refused else ends == silent


NO_OBJECT = re.compile(r"NULL|interface|[\d.]+|(Ethernet|swp|pg_lossless_).*")


def with_own_objects(values: Values, chance: random.Random) -> Values:
    """Return the intent with names of others for some route maps, groups and profiles of each tier."""
    fabric = design.build(Intent.model_validate(values), CATALOG)
    files = files_of(fabric)
    tiers = {}
    for role, tier in values["switches"].items():
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for switch in (one for one in fabric.switches if one.role == role):
            for (kind, _), names in occurrences(
                switch.platform, MODELS[switch.platform].parse(files[switch.name]), {}
            ).items():
                for name in sorted(names):
                    if not NO_OBJECT.fullmatch(name) and name not in found[kind] and chance.random() < 0.8:
                        found[kind][name] = f"{chance.choice(WORDS)}_{len(found[kind])}"
        tiers[role] = {**tier, "object_names": dict(found)}
    return {**values, "switches": tiers}


@MANY
@given(guarded(random_intents()), st.randoms(use_true_random=False))
def test_names_of_objects_are_found(values: Values, chance: random.Random) -> None:
    assume(values["topology"] != "rail-only")  # without BGP nothing refers to policies
    for tier in values["switches"].values():
        if tier["platform"] not in READ:
            tier.update(PLATFORMS["sonic"])
    fabric = design.build(Intent.model_validate(with_own_objects(values, chance)), CATALOG)
    files = files_of(fabric)
    found = adopted_whole("again", files, {}, Path())
    assert (found.leave, found.remaining) == ((), {})
