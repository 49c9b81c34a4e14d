"""Any fabric that is rendered is adopted again: the intent found renders the same configurations."""

from collections.abc import Mapping

from hypothesis import HealthCheck, given, settings

from netkit import design
from netkit.adopt import Adoption, FoundIntent, fitted, propose, survey
from netkit.adopt.fit import compared
from netkit.adopt.links import End
from netkit.design import Fabric
from netkit.design.select import select
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms.config import Files
from netkit.render import Engine, render
from tests.lanes import examples
from tests.random_intents import PLATFORMS, Values, of_ipv4
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
@given(random_intents().map(of_ipv4))
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
