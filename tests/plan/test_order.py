"""The order of a plan: pairs that reach each other before and after reach each other in every state between."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from netkit import plan as planning
from netkit.errors import NetkitError
from netkit.plan import Plan, Running, Unreachable
from netkit.plan.model import Partial, ReachabilityLoss, Step
from netkit.plan.order import Order, is_drained_first
from netkit.plan.retain import with_entries
from netkit.platforms.compare import MODELS
from netkit.platforms.secrets import PLACEHOLDER, SECRET
from netkit.report.plan_text import markdown, step_lines, worst_state
from tests import intents
from tests.lanes import daily, examples
from tests.plan.replay import NicPair, Transition, nics, words
from tests.plan.scenes import BREAKOUT, VERSIONS

PLATFORMS = tuple(VERSIONS)
TABLE: dict[str, Any] = yaml.load(
    (Path(__file__).parent / "transitions.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
)
EDITS: dict[str, dict[str, Any]] = TABLE["edits"]
ANY_EDIT: dict[str, dict[str, Any]] = EDITS | TABLE["wider edits"]
EXAMPLES = "NETKIT_EXAMPLES"
MANY = settings(
    max_examples=int(os.environ.get(EXAMPLES) or examples(15)),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
SPINE_OF = {"nvue": "sonic", "sonic": "frr", "eos": "nvue", "frr": "eos"}
"""The NOS its spines change to."""


def merged(*changes: dict[str, Any]) -> dict[str, Any]:
    """Edits on top of each other."""
    found: dict[str, Any] = {}
    for one in changes:
        for key, value in one.items():
            found[key] = merged(found[key], value) if isinstance(found.get(key), dict) else value
    return found


def transition(platform: str, before: dict[str, Any], after: dict[str, Any], *, spines: str = "") -> Transition:
    """The transition between two variants of a small fabric."""
    first = intents.on_platform(platform, VERSIONS[platform], merged(TABLE["small"], before))
    last = intents.on_platform(platform, VERSIONS[platform], merged(TABLE["small"], after))
    if spines:
        last["switches"]["spine"] |= intents.ON_PLATFORM[spines]["spine"] | {"version": VERSIONS[spines]}
        last["purpose"] = first["purpose"] = "lab"
    return Transition.of(intents.fabric(first), intents.fabric(last))


def assert_loses_only_what_it_names(found: Transition, steps: Sequence[Step] | None = None) -> None:
    """Compare the pairs that each state loses with those that the plan names for its step."""
    changing: dict[int, set[NicPair]] = {}
    until_next: set[NicPair] = set()
    for step, during, after in found.named():
        assert words(during) == words_of(step.during), f"step {step.number}"
        assert words(after) == words_of(step.after), f"step {step.number}"
        changing[step.number] = during | after | until_next
        until_next = after
    for step, when, lost in found.lost(steps):
        assert not lost - changing[step.number], f"step {step.number} {when}"


def words_of(loss: ReachabilityLoss) -> tuple[int, set[str], set[tuple[str, ...]]]:
    return loss.pairs, set(loss.hosts), set(loss.rail_pairs)


@pytest.mark.parametrize("platform", PLATFORMS)
@MANY
@given(
    first=st.lists(st.sampled_from(sorted(ANY_EDIT)), max_size=3),
    second=st.lists(st.sampled_from(sorted(ANY_EDIT)), min_size=1, max_size=3),
    is_on_top=st.booleans(),
    way=st.sampled_from([lambda found: found, Transition.as_deployed, Transition.rolled_back]),
    has_other_spines=st.sampled_from([False, False, False, True]),
)
def test_no_state_between_two_random_intents_loses_what_the_plan_does_not_name(
    platform: str,
    first: list[str],
    second: list[str],
    way: Callable[[Transition], Transition],
    *,
    is_on_top: bool,
    has_other_spines: bool,
) -> None:
    before = merged(*(ANY_EDIT[name] for name in first))
    after = merged(before if is_on_top else {}, *(ANY_EDIT[name] for name in second))
    try:
        found = transition(platform, before, after, spines=SPINE_OF[platform] if has_other_spines else "")
    except NetkitError:
        assume(False)  # an unsupported shape
        raise
    assert_loses_only_what_it_names(way(found))
    assert planning.read(planning.write(found.plan)) == found.plan
    assert not found.again().changed


NEEDS_ORDER: dict[str, list[list[str]]] = TABLE["needs order"]
"""Changes that lose traffic in the wrong order."""
SUMMARIES = ("higher ceilings", "lower ceilings")


@cache
def needs_order(platform: str, name: str) -> Transition:
    before, after = (merged(*(EDITS[one] for one in names)) for names in NEEDS_ORDER[name])
    return transition(platform, before, after)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", SUMMARIES)
def test_another_length_of_summaries_loses_nothing_in_two_stages(platform: str, name: str) -> None:
    found = needs_order(platform, name)
    assert {step.stage for step in found.plan.steps} >= {"both", "finish"}
    assert not found.plan.worst
    assert not any(lost for _, _, lost in found.lost())
    assert planning.read(planning.write(found.plan)) == found.plan
    assert found.plan.bridges
    assert not found.again().changed


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_host_with_another_address_is_the_same_host(platform: str) -> None:
    """With higher ceilings the hosts of the second unit get other addresses, and are cut off until they have them."""
    found = needs_order(platform, "higher ceilings of two units")
    assert not found.plan.gone
    assert {host for step in found.plan.steps for host in step.after.hosts} == {"gpu11", "gpu12", "gpu21", "gpu22"}
    assert_loses_only_what_it_names(found)
    there = {name: found.running[name] for name in found.intended}
    sides = planning.sides_of(there, found.intended)
    whole = planning.make(found.fabrics[-1], there, found.intended, is_part=True)
    part = planning.limited(found.fabrics[-1], whole, ["leaf01"], sides)
    assert part.partial is not None
    assert "leaf03" in part.partial.missing
    assert not part.gone


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_summary_is_not_replaced_in_one_step_where_all_others_accept_both(platform: str) -> None:
    """A run was cut off in its last stage, and is rolled back."""
    there = needs_order(platform, "higher ceilings")
    found = Transition.of(*reversed(there.fabrics[-2:]))
    kept = {
        one.device: planning.keeping(there.fabrics[-1], one.device, there.intended[one.device], one.kept)
        for one in there.plan.bridges
    }
    running = {
        name: planning.Running(kept.get(name, files) if name != "leaf01" else files)
        for name, files in there.intended.items()
    }
    plan = planning.make(found.fabrics[-1], running, found.intended)
    stages = [step.stage for step in plan.steps if "leaf01" in step.devices]
    assert stages == ["both", "finish"]
    assert not plan.worst
    assert not any(lost for _, _, lost in replace(found, running=running, plan=plan, order=None).lost())


@pytest.mark.parametrize(
    ("running", "intended"), [("10.128.0.0/28", "10.128.0.0/29"), ("2001:db8:128::/63", "2001:db8:128::/64")]
)
def test_a_summary_of_either_family_is_not_replaced_in_one_step(running: str, intended: str) -> None:
    """All others accept both lengths, and the summary of the other family stays."""
    both = merged(EDITS["IPv6"], EDITS["new unit"])
    found = transition("frr", both, both)
    length, other = intended.partition("/")[2], running.partition("/")[2]
    there = {}
    for name, one in found.running.items():
        files = dict(one.files)
        text = (files.get("frr.conf") or "").replace(f"ge {length} le {length}", f"ge {other} le {length}")
        if name == "leaf01":
            for head in (" aggregate-address", "seq 20 permit"):
                text = text.replace(f"{head} {intended}", f"{head} {running}")
        there[name] = Running(files | {"frr.conf": text} if text else files)
    found = replace(found, running=there).as_deployed()
    assert [step.stage for step in found.plan.steps if "leaf01" in step.devices] == ["both", "finish"]
    assert not found.plan.worst
    assert not any(lost for _, _, lost in found.lost())


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", daily(NEEDS_ORDER, *SUMMARIES))
def test_the_opposite_order_loses_pairs(platform: str, name: str) -> None:
    found = needs_order(platform, name)
    assert_loses_only_what_it_names(found)
    with pytest.raises(AssertionError, match=r"(after|while) (leaf|spine)"):
        assert_loses_only_what_it_names(found, found.reversed_steps())


@pytest.mark.in_turn("platform")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", TABLE["needs detours"])
def test_sessions_take_a_detour_where_pairs_would_be_cut_off_between_steps(platform: str, name: str) -> None:
    before, after = (merged(*(EDITS[edit] for edit in edits)) for edits in TABLE["needs detours"][name])
    found = transition(platform, before, after)
    assert not any(step.after for step in found.plan.steps)
    assert_loses_only_what_it_names(found)
    assert found.order is not None
    once = Order(found.fabrics[-1], list(found.order.devices.values()), found.fabrics[:1])
    assert any(step.after for step in once.steps())


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_detour_holds_every_secret_as_a_placeholder(platform: str) -> None:
    found = transition(platform, {"services": {"snmp": None, "login": None}}, EDITS["new AS numbers"])
    assert len(found.plan.bridges) == 4
    for bridge in found.plan.bridges:
        intended = found.intended[bridge.device]
        both = planning.keeping(found.fabrics[-1], bridge.device, intended, bridge.kept)
        assert {file: PLACEHOLDER.findall(text) for file, text in both.items()} == {
            file: PLACEHOLDER.findall(text) for file, text in intended.items()
        }
        assert not any(SECRET in text for text in both.values())


def test_no_detour_is_written_that_would_lose_a_secret() -> None:
    found = transition("eos", {}, EDITS["new AS numbers"])
    bridge = found.plan.bridges[0]
    files = dict(found.intended[bridge.device])
    assert with_entries(MODELS["eos"], files, bridge.kept.entries)
    files["eos.cfg"] += "snmp-server community one ro\nsnmp-server community two ro\n"  # equal once masked
    assert with_entries(MODELS["eos"], files, bridge.kept.entries) is None


def test_a_plan_of_a_release_without_detours_can_be_read() -> None:
    plan = needs_order("frr", "higher ceilings").plan
    assert plan.bridges
    text = planning.write(plan)
    assert '"entries"' not in text
    assert planning.read(text).bridges == plan.bridges


def test_a_loss_of_an_earlier_plan_may_be_between_any_of_its_rails() -> None:
    lost = ReachabilityLoss(2, ("gpu11", "gpu12"), ("rail0", "rail1"), 10)
    plan = replace(needs_order("frr", "higher ceilings").plan, gone=lost)
    text = planning.write(plan)
    assert '"rail_pairs"' not in text
    assert planning.read(text).gone == lost
    assert lost.may_have_lost({"gpu11", "gpu12"}, ["rail1", "rail1"])
    assert not replace(lost, rail_pairs=(("rail0", "rail1"),)).may_have_lost({"gpu11", "gpu12"}, ["rail1", "rail1"])


@pytest.mark.parametrize("platform", ["nvue", "frr"])
def test_a_changed_breakout_takes_no_detour(platform: str) -> None:
    found = transition(platform, {}, BREAKOUT)
    assert not found.plan.bridges


@pytest.mark.in_turn("platform")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("one spine", "other spine"),
        ("three spines", "one spine"),
        ("three spines", "other spine"),
        ("three spines", "new AS numbers"),  # the spine expects the old ones
    ],
)
@pytest.mark.parametrize("links", [{}, {"pools": {"links": "10.9.0.0/24"}}], ids=["by interface", "by address"])
def test_a_spine_outside_the_intended_fabric_carries_traffic_until_it_is_drained(
    platform: str, links: dict[str, Any], first: str, second: str
) -> None:
    found = transition(platform, merged(links, EDITS[first]), merged(links, EDITS[second]))
    plan = found.as_deployed().plan
    assert plan.steps == found.plan.steps
    assert bool(plan.worst) == any(lost for _, _, lost in found.lost())
    assert_loses_only_what_it_names(found)


def cutting_off(found: Transition) -> tuple[set[int], set[int]]:
    """The steps after which pairs are lost until a later one: in the replay, and by the plan."""
    lost = {step.number for step, when, lost in found.lost() if lost and when.startswith("after")}
    return lost, {step.number for step in found.plan.steps if step.after}


@pytest.mark.in_turn("platform")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("links", [{}, {"pools": {"links": "10.250.0.0/24"}}], ids=["by interface", "by address"])
@pytest.mark.parametrize(
    ("first", "second"),
    [("one spine", "other spine"), ("two spines", "third spine"), ("three spines", "one spine")],
)
def test_a_spine_outside_the_fabric_passes_routes_also_on_the_way_back(
    platform: str, first: str, second: str, links: dict[str, Any]
) -> None:
    forth = transition(platform, merged(EDITS[first], links), merged(EDITS[second], links)).as_deployed()
    for found in (forth, forth.rolled_back()):
        assert not found.plan.gone
        lost, named = cutting_off(found)
        assert lost == named


@pytest.mark.in_turn("platform")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("both", "second"), [("", ""), ("vlan", ""), ("IPv6", ""), ("links by address", ""), ("", "other spine")]
)
def test_a_leaf_outside_the_fabric_announces_its_old_prefix_on_the_way_back(
    platform: str, both: str, second: str
) -> None:
    """The prefix of the rail that is removed becomes that of another one; its leaf may have a removed spine, too."""
    edits = ANY_EDIT | {"": {}}
    first = merged(edits[both], edits["three rails"])
    forth = transition(platform, first, merged(edits[both], edits[second])).as_deployed()
    for found in (forth, forth.rolled_back()):
        lost: dict[int, set[NicPair]] = {}
        for step, when, pairs in found.lost():
            lost.setdefault(step.number, set()).update(pairs if when.startswith("after") else ())
        assert {step.number: step.after.pairs for step in found.plan.steps} == {
            number: words(pairs)[0] for number, pairs in lost.items()
        }
        assert any(lost.values())


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_cable_that_the_intended_fabric_lacks_carries_traffic_until_its_session_ends(platform: str) -> None:
    forth = transition(platform, ANY_EDIT["two uplinks"], {}).as_deployed()
    for found in (forth, forth.rolled_back()):
        assert_loses_only_what_it_names(found)
        assert found.plan.worst


def test_a_port_shut_down_by_hand_counts_where_routing_does_not_change() -> None:
    """netkit does not own the line: the other spine is the only way between the leaves, also for a rollback."""
    found = transition("frr", {}, EDITS["slower sessions"])
    files = dict(found.running["spine02"].files)
    files["frr.conf"] = (files["frr.conf"] or "").replace("interface swp1s1\n", "interface swp1s1\n shutdown\n")
    forth = replace(found, running={**found.running, "spine02": Running(files)}).as_deployed()
    for way in (forth, forth.rolled_back()):
        assert [(step.devices, step.during.pairs) for step in way.plan.steps] == [
            (("spine02",), 0),
            (("leaf01",), 2),
            (("leaf02",), 2),
            (("spine01",), 2),
        ]


@pytest.mark.parametrize(("by_hand", "pairs"), [("", 0), (" shutdown\n", 2)])
def test_a_port_shut_down_by_hand_counts_where_a_limit_leaves_its_switch_out(by_hand: str, pairs: int) -> None:
    """The sessions of the spine that changes alone are down until its leaves expect its new number."""
    found = transition("frr", {}, EDITS["AS number of a spine"])
    files = dict(found.running["spine02"].files)
    files["frr.conf"] = (files["frr.conf"] or "").replace("interface swp1s1\n", f"interface swp1s1\n{by_hand}")
    there = {name: found.running[name] for name in found.intended} | {"spine02": Running(files)}
    fabric, sides = found.fabrics[-1], planning.sides_of(there, found.intended)
    part, rest = (
        planning.make(
            fabric, {one: there[one] for one in names}, {one: found.intended[one] for one in names}, is_part=True
        )
        for names in (["spine01"], [one for one in there if one != "spine01"])
    )
    plan = planning.ordered(fabric, part, sides, others=lambda: (rest, sides))
    assert plan.partial is not None
    assert plan.partial.missing == ("leaf01", "leaf02")
    assert plan.partial.loss.pairs == pairs


def test_every_two_leaves_of_a_group_are_compared_where_one_lacks_a_session() -> None:
    units = {"units": [{"unit": "1-3", "hosts": 1}], "rails": 1}
    links = [{"pools": {"links": pool}} for pool in ("10.250.0.0/24", "10.251.0.0/24")]
    found = transition("frr", merged(units, links[0]), merged(units, links[1]))
    files = dict(found.running["leaf03"].files)
    lines = (files["frr.conf"] or "").splitlines(keepends=True)
    neighbor = next(line.split()[1] for line in lines if "remote-as" in line)
    files["frr.conf"] = "".join(line for line in lines if f"neighbor {neighbor} " not in line)
    found = replace(found, running={**found.running, "leaf03": Running(files)}).as_deployed()
    lost: dict[tuple[str, ...], set[NicPair]] = {}
    for step, when, pairs in found.lost():
        lost.setdefault(step.devices, set()).update(pairs if when.startswith("after") else ())
    assert {devices: len(pairs) for devices, pairs in lost.items()} == {
        step.devices: step.after.pairs for step in found.plan.steps
    }
    assert len(lost["leaf01", "leaf02", "leaf03"]) == 3


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_switch_back_to_its_factory_configuration_changes_once(platform: str) -> None:
    back = transition(platform, EDITS["two spines"], EDITS["third spine"]).rolled_back()
    assert [step.stage for step in back.plan.steps if "spine03" in step.devices] == [""]
    assert {bridge.device for bridge in back.plan.bridges} == {"leaf01", "leaf02"}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_sessions_between_old_and_new_addresses_have_no_routes_until_both_ends_have_changed(platform: str) -> None:
    found = transition(platform, EDITS["renumbered"], EDITS["loopbacks"])
    assert not any(step.waiting for step in found.plan.steps)  # in two stages
    assert found.order is not None
    found.order.kept.clear()
    first, *_, last = (step for step in found.order.steps() if not step.devices[0].startswith("gpu"))
    assert {end.partition(":")[0] for end in first.waiting} == set(first.devices)
    assert not last.waiting
    kept = transition(platform, {}, EDITS["renumbered"])  # loopbacks stay, and are routes too
    assert not any(step.waiting for step in kept.plan.steps)


@pytest.mark.in_turn("platform")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["IPv6"], ["other IPv6"]),
        (["IPv6"], []),
        ([], ["IPv6"]),
        (["IPv6"], ["IPv6", "drained spine"]),
        (["IPv6"], ["IPv6", "new unit"]),
        (["IPv6", "lower ceilings"], ["IPv6", "higher ceilings"]),
        (["IPv6"], ["IPv6", "vlan"]),
    ],
)
def test_pairs_that_lose_only_ipv6_are_named(platform: str, first: list[str], second: list[str]) -> None:
    found = transition(platform, *(merged(*(EDITS[name] for name in names)) for names in (first, second)))
    assert_loses_only_what_it_names(found)
    assert planning.read(planning.write(found.plan)) == found.plan
    assert not found.again().changed


@pytest.mark.parametrize("platform", PLATFORMS)
def test_other_ipv6_addresses_cut_hosts_off_over_ipv6_only(platform: str) -> None:
    found = transition(platform, EDITS["IPv6"], EDITS["other IPv6"])
    configs = found.configs()
    assert sum(":" in address for pair in found.reached(configs) for _, _, address in pair) == 8
    assert any(lost for _, _, lost in found.lost())
    after = [step.after for step in found.plan.steps if step.after]
    assert {(one.hosts, one.is_only_ipv6) for one in after} == {(("gpu11", "gpu12"), True)}
    stages = {device: [step.stage for step in found.plan.steps if device in step.devices] for device in found.intended}
    assert {name for name, one in stages.items() if one == ["both", "finish"]} == {
        "leaf01",
        "leaf02",
        "spine01",
        "spine02",
    }
    in_v4 = transition(platform, {}, EDITS["renumbered"])
    costs = [[(step.stage, step.after.pairs) for step in one.plan.steps] for one in (found, in_v4)]
    assert costs[0] == costs[1]
    assert planning.read(planning.write(found.plan)) == found.plan
    assert not found.plan.gone
    said = "4 pairs of NICs of gpu11, gpu12 on rail0, rail1 over IPv6"
    assert worst_state(found.plan).endswith(f": {said} until a later step")
    there = {name: found.running[name] for name in found.intended}
    sides = planning.sides_of(there, found.intended)
    whole = planning.make(found.fabrics[-1], there, found.intended, is_part=True)
    part = planning.limited(found.fabrics[-1], whole, ["spine01", "spine02"], sides)
    rails = (("rail0", "rail1"),)
    loss = ReachabilityLoss(2, ("gpu11", "gpu12"), ("rail0", "rail1"), 0, rails, is_only_ipv6=True)
    assert part.partial == Partial(loss, ("gpu11", "gpu12", "leaf01", "leaf02"))
    assert loss.may_have_lost({"gpu11", "gpu12"}, ["rail0", "rail1"], is_ipv6=True)
    assert not loss.may_have_lost({"gpu11", "gpu12"}, ["rail0", "rail1"])


@pytest.mark.parametrize("platform", PLATFORMS)
def test_removed_ipv6_ends_by_intent(platform: str) -> None:
    found = transition(platform, EDITS["IPv6"], {})
    rails = (("rail0", "rail0"), ("rail0", "rail1"), ("rail1", "rail1"))
    loss = ReachabilityLoss(4, ("gpu11", "gpu12"), ("rail0", "rail1"), 0, rails, is_only_ipv6=True)
    assert found.plan.gone == loss
    said = "4 pairs of NICs of gpu11, gpu12 no longer reach each other over IPv6"
    assert f"ends by intent: {said}" in step_lines(found.plan)
    assert f"\n⚠ Ends by intent: {said}.\n" in markdown(found.plan).split("<details>")[0]
    assert planning.read(planning.write(found.plan)) == found.plan
    assert '"is_only_ipv6"' not in planning.write(transition(platform, {}, EDITS["drained spine"]).plan)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_beside_pairs_that_end_by_intent_the_worst_state_is_that_of_the_others(platform: str) -> None:
    found = transition(platform, {}, EDITS["blocked"])
    assert words_of(found.plan.gone) == (2, {"gpu11", "gpu12"}, {("rail0", "rail1")})
    assert worst_state(found.plan) == "no other pair of hosts loses a path"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_restart_lasts_as_long_where_the_change_ends_the_other_sessions(platform: str) -> None:
    """The sessions that remain restart while the change removes those that would carry meanwhile."""
    found = transition(platform, EDITS["three spines"], merged(EDITS["one spine"], EDITS["slower sessions"]))
    leaves = [step.during for step in found.plan.steps if step.devices[0].startswith("leaf")]
    alone = transition(platform, EDITS["one spine"], merged(EDITS["one spine"], EDITS["slower sessions"]))
    (seconds,) = {step.during.seconds for step in alone.plan.steps if step.devices[0].startswith("leaf")}
    assert [one.pairs > 0 and one.seconds >= seconds for one in leaves] == [True, True]


@pytest.mark.parametrize(
    ("platform", "name"), [("frr", "CONNECTED"), ("nvue", "RM-CONNECTED"), ("eos", "RM-CONNECTED")]
)
def test_a_leaf_that_replaces_how_it_announces_its_prefixes_loses_them_for_a_moment(platform: str, name: str) -> None:
    named = {"object_names": {"route_map": {name: "OTHER"}}}
    found = transition(platform, {}, {"switches": {"leaf": named, "spine": named}})
    lost = [(step.devices[0][:4], step.during.pairs > 0, step.after.pairs) for step in found.plan.steps]
    assert lost == [("spin", False, 0)] * 2 + [("leaf", True, 0)] * 2


def test_a_leaf_that_replaces_how_it_announces_ipv6_prefixes_loses_only_these() -> None:
    named = {"object_names": {"route_map": {"CONNECTED-V6": "OTHER"}}}
    found = transition("frr", EDITS["IPv6"], merged(EDITS["IPv6"], {"switches": {"leaf": named, "spine": named}}))
    lost = [step.during for step in found.plan.steps if step.devices[0].startswith("leaf")]
    assert [(one.pairs > 0, one.is_only_ipv6) for one in lost] == [(True, True)] * 2


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_order_is_deterministic(platform: str) -> None:
    plans = [needs_order(platform, "higher ceilings").plan for _ in range(2)]
    assert planning.write(plans[0]) == planning.write(plans[1])


@pytest.mark.parametrize("platform", PLATFORMS)
def test_removed_pairs_are_those_that_the_intended_fabric_does_not_connect(platform: str) -> None:
    for before, after in (({}, {"cross_rail": "blocked"}), ({"cross_rail": "blocked"}, {}), ({}, {})):
        found = transition(platform, before, after)
        configs = found.configs()
        at_last = found.done(configs, found.plan.steps)
        dropped = nics(found.reached(configs)) - nics(found.reached(at_last))
        assert words_of(found.plan.gone) == words(dropped)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("first", "second", "fewer"),
    [
        # Nothing needs the other rail any more, so summaries change at once: the spines filter the new one until they
        # change, and leaf02 has lost leaf01 before its own turn.
        (["lower ceilings"], ["higher ceilings", "blocked"], [("leaf01", "leaf02", 0)]),
        (["lower ceilings"], ["higher ceilings"], []),
        (["three spines"], [], [("leaf01", "leaf02", 2)]),
        ([], ["three spines"], []),
    ],
)
def test_a_step_names_what_its_switches_reach_over_fewer_ports_after_it(
    platform: str, first: list[str], second: list[str], fewer: list[tuple[str, str, int]]
) -> None:
    found = transition(platform, *(merged(*(EDITS[name] for name in names)) for names in (first, second)))
    named = [(one.device, one.leaf, one.ports) for step in found.plan.steps for one in step.narrowed]
    assert named == fewer
    assert planning.read(planning.write(found.plan)) == found.plan
    assert ('"narrowed"' in planning.write(found.plan)) == bool(fewer)  # a plan of an earlier release lacks it


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("TO-LEAVES", "match tag 77"),
        ("TO-LEAVES-V6", "match tag 77"),
        ("TO-LEAVES", "set metric 100"),
        ("CONNECTED", "match tag 77"),
        ("TO-LEAVES", "set origin incomplete"),
    ],
)
@pytest.mark.parametrize("spines", [("spine01",), ("spine02",), ("spine01", "spine02")])
def test_nothing_depends_on_a_spine_with_lines_of_which_the_order_knows_nothing(
    name: str, by_hand: str, spines: tuple[str, ...]
) -> None:
    """A match by hand may hold back every route: such a spine goes first, and the other cannot change alone."""
    found = transition("frr", EDITS["IPv6"], merged(EDITS["IPv6"], EDITS["loopbacks"]))
    there = dict(found.running)
    for spine in spines:
        text = there[spine].files["frr.conf"] or ""
        head = f"route-map {name} permit 10\n"
        assert head in text
        there[spine] = Running({**there[spine].files, "frr.conf": text.replace(head, f"{head} {by_hand}\n")})
    fabric, owner = found.fabrics[-1], planning.sides_of(there, found.intended)

    def plan(*names: str) -> Plan:
        parts = [
            {one: found.intended[one] for one in found.intended if (one in names) == is_in} for is_in in (True, False)
        ]
        part, rest = (planning.make(fabric, {one: there[one] for one in some}, some, is_part=True) for some in parts)
        return planning.ordered(fabric, part, owner, others=lambda: (rest, owner))

    whole = plan(*found.intended)
    line = f"the order does not know what this does to routes (1): route-map {name} 10: {by_hand}"
    warned = {device.name: device.warnings for device in whole.changed if device.warnings}
    assert warned == dict.fromkeys(spines, (line,))
    assert {step.during or step.after for step in whole.steps if step.devices[0] in spines} == {ReachabilityLoss()}
    other = next((spine for spine in ("spine01", "spine02") if spine not in spines), "")
    if other:
        order = [step.devices for step in whole.steps]
        assert order.index(spines) < order.index((other,))
        cut_off, without = ({step.during.pairs > 0 for step in plan(spine).steps} for spine in (other, *spines))
        assert (cut_off, without) == ({True}, {False})


def test_a_leaf_does_not_end_the_session_with_a_spine_of_which_the_order_knows_nothing_first() -> None:
    """The lines may hold back every route, or none: then packets are lost when the leaf ends the session."""
    found = transition("frr", {}, merged(EDITS["AS number of a spine"], EDITS["drained leaf"]))
    files, head = found.running["spine01"].files, "route-map TO-LEAVES permit 10\n"
    text = files["frr.conf"] or ""
    assert head in text
    by_hand = Running({**files, "frr.conf": text.replace(head, f"{head} set metric 100\n")})
    plan = planning.make(found.fabrics[-1], {**found.running, "spine01": by_hand}, found.intended)
    assert [step.devices for step in plan.steps] == [("spine01",), ("leaf01",), ("leaf02",)]
    assert not plan.worst


@pytest.mark.parametrize("by_number", [False, True])
def test_a_plan_warns_of_internal_bgp(by_number: bool) -> None:
    found = transition("frr", {}, EDITS["loopbacks"])
    files = found.running["leaf01"].files
    text = files["frr.conf"] or ""
    (asn,) = re.findall(r"^router bgp (\d+)$", text, flags=re.MULTILINE)
    session = f" neighbor swp60 interface remote-as {asn if by_number else 'internal'}\n"
    text = text.replace(f"router bgp {asn}\n", f"router bgp {asn}\n{session}")
    text = text.replace("address-family ipv4 unicast\n", "address-family ipv4 unicast\n  neighbor swp60 activate\n")
    there = {**found.running, "leaf01": Running({**files, "frr.conf": text})}
    plan = planning.make(found.fabrics[-1], there, found.intended)
    line = "the order does not know what this does to routes (1): neighbor swp60: internal BGP"
    assert {device.name: device.warnings for device in plan.devices if device.warnings} == {"leaf01": (line,)}


@pytest.mark.parametrize(
    ("filters", "is_quiet"),
    [
        ("route-map NOTHING deny 10\nexit\n", True),
        ("", False),
        ("route-map NOTHING deny 10\nexit\nroute-map NOTHING permit 20\nexit\n", False),
    ],
)
def test_internal_bgp_that_brings_no_route_is_harmless(filters: str, is_quiet: bool) -> None:
    """Spines announce their routes to a collector, and accept none of it."""
    found = transition("frr", {}, EDITS["loopbacks"])
    there, intended = dict(found.running), {name: dict(files) for name, files in found.intended.items()}
    for name in ("spine01", "spine02"):
        for files in (there[name].files, intended[name]):
            text = files["frr.conf"] or ""
            (asn,) = re.findall(r"^router bgp (\d+)$", text, flags=re.MULTILINE)
            peer = "neighbor 10.255.0.200"
            text = text.replace(f"router bgp {asn}\n", f"router bgp {asn}\n {peer} remote-as {asn}\n")
            lines = f"  {peer} activate\n  {peer} route-map NOTHING in\n  {peer} route-map TO-LEAVES out\n"
            family = "address-family ipv4 unicast\n"
            text = text.replace(family, f"{family}{lines}").replace("\nroute-map TO-", f"\n{filters}route-map TO-")
            if files is intended[name]:
                intended[name] = {**files, "frr.conf": text}
            else:
                there[name] = Running({**files, "frr.conf": text})
    plan = planning.make(found.fabrics[-1], there, intended)
    line = "the order does not know what this does to routes (1): neighbor 10.255.0.200: internal BGP"
    warned = {device.name: device.warnings for device in plan.devices if device.warnings}
    assert warned == ({} if is_quiet else dict.fromkeys(("spine01", "spine02"), (line,)))


@pytest.mark.parametrize(
    ("line", "doubt"),
    [
        (
            "ip route 10.128.4.0/22 10.99.0.1",
            "static route 10.128.4.0/22 via 10.99.0.1: its next hop is not known here",
        ),
        ("ip route 10.128.4.0/22 10.99.0.1 swp60", "ip route 10.128.4.0/22 10.99.0.1 swp60"),
        ("ip route 10.0.0.0/8 10.99.0.1 nexthop-vrf mgmt", "ip route 10.0.0.0/8 10.99.0.1 nexthop-vrf mgmt"),
        ("ip route 10.128.4.0/22 10.99.0.1 vrf mgmt", ""),
        ("ip route 198.18.0.0/16 10.99.0.1", ""),
        ("ip route 198.18.0.0/16 10.99.0.1 swp60", ""),
        ("ip route 0.0.0.0/0 10.99.0.1", ""),
        ("ip route 0.0.0.0/0 10.99.0.1 swp60", ""),
        ("ip route 198.18.0.0/16 blackhole", ""),
    ],
)
def test_a_plan_warns_of_static_routes_to_hosts_whose_next_hop_it_cannot_find(line: str, doubt: str) -> None:
    found = transition("frr", {}, EDITS["loopbacks"])
    plan = planning.make(found.fabrics[-1], with_lines(found, "leaf01", line), found.intended)
    warned = [warning for device in plan.devices for warning in device.warnings]
    assert warned == ([f"the order does not know what this does to routes (1): {doubt}"] if doubt else [])


def test_static_routes_are_warned_of_in_their_order() -> None:
    found = transition("frr", {}, EDITS["loopbacks"])
    lines = [f"ip route 10.128.{place}.0/24 10.99.0.1" for place in range(3)]
    plan = planning.make(found.fabrics[-1], with_lines(found, "leaf01", *reversed(lines)), found.intended)
    doubts = [f"static route 10.128.{place}.0/24 via 10.99.0.1: its next hop is not known here" for place in range(3)]
    warned = [warning for device in plan.devices for warning in device.warnings]
    assert warned == [f"the order does not know what this does to routes (3): {'; '.join(doubts)}"]


@pytest.mark.parametrize("line", ["ip route 10.50.0.0/16 10.1.1.1 vrf mgmt", "ip route 10.53.0.0/16 192.168.0.1"])
def test_static_routes_to_other_networks_do_not_change_the_order(line: str) -> None:
    found = transition("frr", {}, EDITS["loopbacks"])
    intended = dict(found.intended)
    text = intended["spine01"]["frr.conf"] or ""
    intended["spine01"] = {**intended["spine01"], "frr.conf": f"{text}{line}\n"}
    usual = planning.make(found.fabrics[-1], found.running, found.intended)
    plan = planning.make(found.fabrics[-1], with_lines(found, "spine01", line), intended)
    assert [step.devices for step in plan.steps] == [step.devices for step in usual.steps]
    assert [(step.during, step.after) for step in plan.steps] == [(step.during, step.after) for step in usual.steps]


def with_lines(found: Transition, name: str, *lines: str) -> dict[str, Running]:
    """What runs, with more lines at the end of the configuration of a switch."""
    files = found.running[name].files
    text = "".join(f"{line}\n" for line in lines)
    return {**found.running, name: Running({**files, "frr.conf": f"{files['frr.conf']}{text}"})}


@pytest.mark.parametrize("remote", ["own", "internal"])
def test_a_plan_warns_of_internal_bgp_between_loopbacks(remote: str) -> None:
    found = transition("frr", {}, EDITS["loopbacks"])
    files = found.running["leaf01"].files
    text = files["frr.conf"] or ""
    (asn,) = re.findall(r"^router bgp (\d+)$", text, flags=re.MULTILINE)
    peer = "neighbor 10.255.0.200"
    lines = f" {peer} remote-as {asn if remote == 'own' else remote}\n {peer} update-source lo\n"
    text = text.replace(f"router bgp {asn}\n", f"router bgp {asn}\n{lines}")
    text = text.replace("address-family ipv4 unicast\n", f"address-family ipv4 unicast\n  {peer} activate\n")
    there = {**found.running, "leaf01": Running({**files, "frr.conf": text})}
    plan = planning.make(found.fabrics[-1], there, found.intended)
    line = f"the order does not know what this does to routes (1): {peer}: internal BGP"
    assert {device.name: device.warnings for device in plan.devices if device.warnings} == {"leaf01": (line,)}


def test_leaves_change_between_spines_that_announce_only_a_summary() -> None:
    """By hand, spines announce one summary of all leaves, which the intended filters do not accept."""
    found = transition("frr", {}, {})
    there = dict(found.running)
    for name in ("spine01", "spine02", "leaf01", "leaf02"):
        text = re.sub(r"(FABRIC seq 20 permit 10.128.0.0/16) ge .*", r"\1 le 32", there[name].files["frr.conf"] or "")
        if name.startswith("spine"):
            text = text.replace("  redistribute", "  aggregate-address 10.128.0.0/16 summary-only\n  redistribute")
        there[name] = Running({**there[name].files, "frr.conf": text})
    owner = planning.sides_of(there, found.intended)
    fabric = found.fabrics[-1]
    plan = planning.ordered(fabric, planning.make(fabric, there, found.intended, is_part=True), owner)
    assert [step.devices for step in plan.steps] == [("spine01",), ("leaf01",), ("leaf02",), ("spine02",)]
    assert {step.during or step.after for step in plan.steps} == {ReachabilityLoss()}


@pytest.mark.parametrize(("before", "destination"), [({}, "10."), (EDITS["IPv6"], "2001:")])
def test_a_plan_warns_of_routes_of_a_host_that_the_order_does_not_know(
    before: dict[str, Any], destination: str
) -> None:
    found = transition("frr", before, merged(before, EDITS["supernet"]))
    files = found.running["gpu11"].files
    route = re.compile(rf"(- \{{to: \"?{destination}[^,]+, via: [^}},]+)\}}")
    text, count = route.subn(r"\1, congestion-window: 20}", files["netplan.yaml"] or "", count=1)
    assert count == 1
    there = {**found.running, "gpu11": Running({**files, "netplan.yaml": text})}
    plan = planning.make(found.fabrics[-1], there, found.intended)
    warned = {device.name: device.warnings for device in plan.devices if device.warnings}
    assert list(warned) == ["gpu11"]
    (line,) = warned["gpu11"]
    assert line.startswith(f"the order does not know what this does to routes (1): rail0: routes to={destination}")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_spines_that_carry_traffic_by_the_second_stage_change_one_by_one(platform: str) -> None:
    """Two of three spines are drained at first, so both carry nothing; when the third has gone, they carry all."""
    drained = {"overrides": {name: {"drain": True} for name in ("spine01", "spine02")}}
    found = transition(platform, merged(EDITS["three spines"], drained), EDITS["new AS numbers"])
    spines = [step.devices for step in found.plan.steps if step.stage == "finish" and step.devices[0][:5] == "spine"]
    assert spines == [("spine01",), ("spine02",)]
    assert_loses_only_what_it_names(found)


@pytest.mark.parametrize(
    ("given", "drained"),
    [
        ({}, {"c0x1", "c1x1", "p1s1", "p1s2", "p2s1", "p2s2"}),
        ({"planes": 1, "cores": 2}, {"c0x1", "c0x2", "p1s1", "p1s2", "p2s1", "p2s2"}),
        ({"planes": 1}, {"p1s1", "p1s2", "p2s1", "p2s2"}),
        ({"planes": 1, "spines": 1, "cores": 2}, {"c0x1", "c0x2"}),
    ],
    ids=["a core for each plane", "two cores", "one core", "one spine"],
)
def test_a_switch_is_drained_first_if_its_leaves_have_another_path(given: dict[str, int], drained: set[str]) -> None:
    """Also a core that is the only one of its plane: the spines below it have no other, but the leaves have."""
    tiers = intents.three_tiers(**given)
    found = transition("frr", tiers, merged(tiers, EDITS["loopbacks"]))
    switches = [device for device in found.plan.changed if device.role in {"spine", "core"}]
    assert {one.name for one in switches if is_drained_first(one, found.fabrics[-1])} == drained
    assert_loses_only_what_it_names(found)
    for step in found.plan.steps:
        assert bool(step.during) == (step.devices[0] not in drained)


def test_a_spine_that_loses_nothing_goes_before_one_that_does() -> None:
    """With other AS numbers, the next spine in line would be the last way of its pod; one of another group is not."""
    tiers = intents.three_tiers()
    found = transition("frr", tiers, merged(tiers, EDITS["new AS numbers"]))
    above = [step for step in found.plan.steps if step.devices[0] not in {"p1r0", "p1r1", "p2r0", "p2r1"}]
    assert [step for step in above if step.during or step.after] == []
    assert_loses_only_what_it_names(found)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_hosts_change_after_their_leaves_where_that_costs_no_more(platform: str) -> None:
    found = transition(platform, {}, EDITS["vlan"])
    assert [step.devices for step in found.plan.steps][-1] == ("gpu11", "gpu12")
    assert_loses_only_what_it_names(found)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_ipv6_that_does_not_change_leads_to_no_second_stage(platform: str) -> None:
    """The step that loses least leads to a greater loss here: tier by tier, all change in a single stage."""
    ends = [
        [merged(EDITS["vlan"], EDITS[name], families) for name in ("lower ceilings", "higher ceilings")]
        for families in ({}, EDITS["IPv6"])
    ]
    alone, both = (transition(platform, *one) for one in ends)
    for found in (alone, both):
        assert [step.stage for step in found.plan.steps] == [""] * 5
        assert sum(step.after.pairs for step in found.plan.steps) == 2
    assert_loses_only_what_it_names(both)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_switch_that_was_not_read_keeps_what_it_is_known_to_run(platform: str) -> None:
    found = needs_order(platform, "higher ceilings")
    fabric, name = found.fabrics[-1], "leaf02"
    away = Unreachable("timed out")

    def plan(others: dict[str, Running], known: Running | Unreachable) -> Plan:
        read: dict[str, Running | Unreachable] = {**others, name: away}
        part = planning.make(fabric, read, found.intended, is_part=True)
        alone = planning.make(fabric, {name: known}, {name: found.intended[name]}, is_part=True)
        alone = replace(alone, unreachable=part.unreachable)
        sides, sides_of_it = (planning.sides_of(one, found.intended) for one in (read, {name: known}))
        return planning.ordered(fabric, part, sides, others=lambda: (alone, sides_of_it))

    there = {one: found.running[one] for one in found.intended}
    as_before, as_intended, unknown = (
        plan(there, known) for known in (there[name], Running(found.intended[name]), away)
    )
    assert as_before.partial is not None
    assert as_before.partial.missing == (name,)
    assert as_before.partial.is_unread
    cut_off = "outage: 2 pairs of NICs of gpu11, gpu12 no longer reach each other, also after the deploy"
    assert worst_state(as_before) == cut_off
    assert words_of(as_before.partial.loss) == (2, {"gpu11", "gpu12"}, {("rail0", "rail1")})
    assert [one.partial for one in (as_intended, unknown)] == [None, None]
    assert [one.unknown for one in (as_before, as_intended, unknown)] == [(), (), (name,)]
    bare = {one: Running(dict.fromkeys(files)) for one, files in found.intended.items()}
    assert plan(bare, away).unknown == ()
    assert planning.read(planning.write(unknown)) == unknown
    assert '"unknown"' not in planning.write(as_before)  # a plan of an earlier release lacks it


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["spine01"], ("leaf01", "leaf02")),
        (["leaf01"], ("leaf02", "spine01")),
        (["leaf01", "leaf02"], ("spine01",)),
        (["leaf01", "leaf02", "spine01"], ()),
    ],
)
def test_a_limit_that_takes_a_path_away_names_what_has_to_change_with_it(
    platform: str, names: list[str], missing: tuple[str, ...]
) -> None:
    """Only one end of a session would expect the new AS number of the spine; the other spine still carries all."""
    found = transition(platform, {}, EDITS["AS number of a spine"])
    there = {name: found.running[name] for name in found.intended}
    whole = planning.make(found.fabrics[-1], there, found.intended, is_part=True)
    part = planning.limited(found.fabrics[-1], whole, names, planning.sides_of(there, found.intended))
    expected = Partial(ReachabilityLoss(), missing, ("leaf01", "leaf02", "spine01"))
    assert part.partial == (expected if missing else None)
    assert planning.read(planning.write(part)) == part
    worse = "worse than before: fewer equal paths from leaf01, leaf02, spine01"
    if names == ["spine01"]:
        assert list(step_lines(part))[:2] == [worse, "  change these with it: leaf01, leaf02"]
        unread = replace(part, partial=replace(expected, is_unread=True))
        assert list(step_lines(unread))[:2] == [worse, "  leaf01, leaf02 could not be read"]
        assert worst_state(part) == worse


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("before", "after", "names", "missing"),
    [
        ("vlan", "p2p", ["gpu11", "leaf01"], ("gpu12",)),
        ("vlan", "p2p", ["leaf01"], ("gpu11", "gpu12")),
        ("p2p", "vlan", ["gpu12"], ("gpu11", "leaf01")),
    ],
)
def test_a_leaf_bridges_only_the_ports_of_its_vlan(
    platform: str, before: str, after: str, names: list[str], missing: tuple[str, ...]
) -> None:
    """A host with a prefix for its whole leaf asks the others for their MAC address, also where the leaf routes."""
    found = transition(platform, {"rails": 1, "attachment": before}, {"rails": 1, "attachment": after})
    there = {name: found.running[name] for name in found.intended}
    whole = planning.make(found.fabrics[-1], there, found.intended, is_part=True)
    part = planning.limited(found.fabrics[-1], whole, names, planning.sides_of(there, found.intended))
    assert part.partial is not None
    assert part.partial.missing == missing
    assert words_of(part.partial.loss) == (1, {"gpu11", "gpu12"}, {("rail0", "rail0")})


@pytest.mark.parametrize("platform", PLATFORMS)
def test_leaves_without_configuration_change_together_below_hosts_that_have_it(platform: str) -> None:
    """A leaf without its VLAN bridges nothing, whatever the hosts take to be on their link."""
    found = transition(platform, EDITS["vlan"], EDITS["vlan"])
    there = {name: found.running[name] for name in found.intended}
    there |= {name: Running(dict.fromkeys(found.intended[name])) for name in ("leaf01", "leaf02")}
    plan = planning.make(found.fabrics[-1], there, found.intended)
    assert [step.devices for step in plan.steps] == [("leaf01",), ("leaf02",)]
    assert not plan.worst


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_switch_to_which_no_neighbor_runs_a_session_is_not_unknown(platform: str) -> None:
    found = transition(platform, {}, merged(EDITS["new unit"], EDITS["drained leaf"]))
    fabric, new = found.fabrics[-1], ("leaf03", "leaf04")

    def unread(*names: str) -> tuple[str, ...]:
        away = Unreachable("timed out")
        read = {name: away if name in (*new, *names) else found.running[name] for name in found.intended}
        part = planning.make(fabric, read, found.intended, is_part=True)
        rest = planning.make(fabric, {}, {}, is_part=True)
        sides = planning.sides_of(read, found.intended)
        plan = planning.ordered(fabric, part, sides, others=lambda: (rest, sides))
        assert {one.name for one in plan.unreachable} == {*new, *names}
        assert any(device.role != "host" for device in plan.changed)
        return plan.unknown

    assert unread() == ()
    assert unread("leaf02") == ("leaf02",)
    # Only its neighbors could tell, and those are unknown themselves.
    assert unread("leaf02", "spine01", "spine02") == ("leaf02", *new, "spine01", "spine02")
