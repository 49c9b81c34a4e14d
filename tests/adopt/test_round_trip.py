"""Any fabric that is rendered is adopted again: the intent found renders the same configurations."""

from collections.abc import Mapping
from ipaddress import IPv4Address

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.adopt import Adoption, FoundIntent, fitted, propose, survey
from netkit.adopt.fit import compared
from netkit.adopt.links import End
from netkit.design import Fabric
from netkit.design.select import select
from netkit.design.tables import cables as designed_cables
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms.config import Files
from netkit.render import Engine, render
from tests.lanes import examples
from tests.random_intents import PLATFORMS, Values, guarded, of_ipv4
from tests.random_intents import intents as random_intents

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
        for name, comparison in compared(proposal.fabric, proposal.placement.places, files, ENGINE)
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
    assert set(proposal.placement.places) == cabled
    assert set(proposal.placement.left_out) == set(files) - cabled
    assert differences(proposal, files) == {}
    assert proposal.links.dangling == ()


@st.composite
def odd_links(draw: st.DrawFn) -> Values:
    """Return a fabric with sessions by address, each link with one of the /29 to /31 there are, in any order."""
    values: Values = draw(random_intents(("two-tier", "three-tier")).map(of_ipv4))
    for tier in values["switches"].values():
        if tier["platform"] not in READ:
            tier.update(PLATFORMS["sonic"])
    values["pools"] |= {"links": "10.8.0.0/14"}
    links = [link for link in designed_cables(design.build(Intent.model_validate(values), CATALOG)) if link["link"]]
    numbers = draw(st.permutations(range(len(links))))
    rows = []
    for link, number in zip(links, numbers, strict=True):
        length = draw(st.integers(29, 31))
        first = 0 if length == 31 else 1
        ends = draw(st.permutations([first, first + 1]))
        own, peer = (str(IPv4Address("100.64.0.0") + 8 * number + end) for end in ends)
        keys = {key: link[key] for key in ("device", "peer", "link")}
        rows.append({**keys, "address": f"{own}/{length}", "peer_address": peer})
    return {**values, "tables": {"cables": rows}}


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(odd_links(), st.data())
def test_sessions_by_address_are_adopted(values: Values, data: st.DataObject) -> None:
    fabric = design.build(Intent.model_validate(values), CATALOG)
    files = dict(files_of(fabric))
    proposal = adopted(files)
    assert differences(proposal, files) == {}
    found = {row["device"]: row for row in proposal.tables["cables"] if row["link"]}
    assert all(row["address"] and row["peer_address"] for row in found.values())
    spines = sorted(spine.name for spine in fabric.tier("spine") if spine.fabric_ports)
    if len(spines) > 1:  # one that is not read is known by the sessions of others
        del files[data.draw(st.sampled_from(spines))]
        assert differences(adopted(files), files) == {}
