"""The order of a plan: what reaches each other before and after reaches each other in every state between."""

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from netkit import plan as planning
from netkit.errors import NetkitError
from tests import intents
from tests.plan.replay import Transition, unnamed
from tests.plan.scenes import VERSIONS

PLATFORMS = tuple(VERSIONS)
SMALL: dict[str, Any] = {
    "ceilings": {"units": 3, "hosts_per_unit": 2, "spines": 3},
    "units": [{"unit": "1", "hosts": 2}],
}
MANY = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
EDITS: dict[str, dict[str, Any]] = {
    "higher ceilings": {"ceilings": {"hosts_per_unit": 8}},
    "lower ceilings": {"ceilings": {"hosts_per_unit": 2}},
    "more ceilings of units": {"ceilings": {"units": 5}},
    "grow": {"units": [{"unit": "1", "hosts": 3}]},
    "shrink": {"units": [{"unit": "1", "hosts": 1}]},
    "new unit": {"units": [{"unit": "1-2", "hosts": 2}]},
    "renumbered": {"pools": {"hosts": "10.160.0.0/16"}},
    "new AS numbers": {"pools": {"asn_base": 4_200_100_000}},
    "loopbacks": {"pools": {"loopbacks": "10.254.0.0/24"}},
    "drained spine": {"overrides": {"spine01": {"drain": True}}},
    "drained leaf": {"overrides": {"leaf01": {"drain": True}}},
    "drained neighbor": {"overrides": {"leaf01": {"drain_neighbors": ["spine01"]}}},
    "AS number of a spine": {"overrides": {"spine01": {"asn": 4_200_200_000}}},
    "AS number of a leaf": {"overrides": {"leaf01": {"asn": 4_200_200_001}}},
    "per-leaf": {"host_routes": "per-leaf"},
    "supernet": {"host_routes": "supernet"},
    "blocked": {"cross_rail": "blocked"},
    "routed": {"cross_rail": "routed"},
    "vlan": {"attachment": "vlan"},
    "p2p": {"attachment": "p2p"},
    "one spine": {"switches": {"spine": {"slots": 1}}},
    "other spine": {"switches": {"spine": {"slots": "2"}}},
    "three spines": {"switches": {"spine": {"slots": 3}}},
    "slower sessions": {"routing": {"keepalive_s": 5, "hold_s": 15}},
    "other thresholds": {"lossless": {"ecn": {400: {"min_bytes": 200_000, "max_bytes": 900_000}}}},
    "unique spines": {"routing": {"spine_asn": "unique"}},
}
SPINE_OF = {"nvue": "sonic", "sonic": "frr", "eos": "nvue", "frr": "eos"}
"""The NOS its spines change to."""


def merged(*changes: dict[str, Any]) -> dict[str, Any]:
    """Return changes on top of each other."""
    found: dict[str, Any] = {}
    for one in changes:
        for key, value in one.items():
            found[key] = merged(found[key], value) if isinstance(found.get(key), dict) else value
    return found


def transition(platform: str, before: dict[str, Any], after: dict[str, Any], *, spines: str = "") -> Transition:
    """Return the transition between two variants of a small fabric."""
    first = intents.on_platform(platform, VERSIONS[platform], merged(SMALL, before))
    last = intents.on_platform(platform, VERSIONS[platform], merged(SMALL, after))
    if spines:
        last["switches"]["spine"] |= intents.ON_PLATFORM[spines]["spine"] | {"version": VERSIONS[spines]}
        last["purpose"] = first["purpose"] = "lab"
    return Transition.of(intents.fabric(first), intents.fabric(last))


def assert_loses_only_what_it_names(found: Transition) -> None:
    for step, when, lost in found.lost():
        strange = unnamed(lost, step.during, step.after)
        assert not strange, f"step {step.number} {when}: {sorted(map(sorted, strange))[:3]} of {len(strange)}"
        assert len(lost) <= max(step.during.pairs, step.after.pairs), f"step {step.number} {when}"


@pytest.mark.parametrize("platform", PLATFORMS)
@MANY
@given(
    first=st.lists(st.sampled_from(sorted(EDITS)), max_size=3),
    second=st.lists(st.sampled_from(sorted(EDITS)), min_size=1, max_size=3),
    has_other_spines=st.sampled_from([False, False, False, True]),
)
def test_no_state_between_two_random_intents_loses_what_the_plan_does_not_name(
    platform: str, first: list[str], second: list[str], *, has_other_spines: bool
) -> None:
    before = merged(*(EDITS[name] for name in first))
    after = merged(before, *(EDITS[name] for name in second))
    try:
        found = transition(platform, before, after, spines=SPINE_OF[platform] if has_other_spines else "")
    except NetkitError:
        assume(False)  # a shape that is refused
        raise
    assert_loses_only_what_it_names(found)
    assert planning.read(planning.write(found.plan)) == found.plan
    assert not found.again().changed


FEW = {"ceilings": {"hosts_per_unit": 2}}
NEEDS_ORDER = {
    "higher ceilings": (FEW, {"ceilings": {"hosts_per_unit": 8}}),
    "lower ceilings": ({"ceilings": {"hosts_per_unit": 8}}, FEW),
}
"""Changes that lose traffic in the wrong order."""


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", ["higher ceilings", "lower ceilings"])
def test_other_lengths_of_summaries_lose_nothing_in_two_stages(platform: str, name: str) -> None:
    found = transition(platform, *NEEDS_ORDER[name])
    assert {step.stage for step in found.plan.steps} >= {"both", "finish"}
    assert not found.plan.worst
    assert not any(lost for _, _, lost in found.lost())
    assert planning.read(planning.write(found.plan)) == found.plan
    assert found.plan.bridges
    assert not found.again().changed


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", ["higher ceilings", "lower ceilings"])
def test_the_opposite_order_loses_pairs(platform: str, name: str) -> None:
    found = transition(platform, *NEEDS_ORDER[name])
    assert not any(lost for _, _, lost in found.lost())
    assert any(lost for _, _, lost in found.lost(found.reversed_steps()))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_order_is_the_same_every_time(platform: str) -> None:
    plans = [transition(platform, *NEEDS_ORDER["higher ceilings"]).plan for _ in range(2)]
    assert planning.write(plans[0]) == planning.write(plans[1])


@pytest.mark.parametrize("platform", PLATFORMS)
def test_gone_is_what_the_intended_fabric_does_not_connect(platform: str) -> None:
    for before, after in (({}, {"cross_rail": "blocked"}), ({"cross_rail": "blocked"}, {}), ({}, {})):
        found = transition(platform, before, after)
        configs = found.configs()
        at_first = found.reached(configs)
        dropped = at_first - found.reached(found.done(configs, found.plan.steps))
        assert found.plan.gone.pairs == len(dropped)
        assert not unnamed(dropped, found.plan.gone)
