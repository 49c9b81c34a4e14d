from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from netkit.judge import Finding, Verdict, error, fail, skip
from netkit.judge.run import FABRIC, CheckResult, Judgement
from netkit.judge.silence import REACHED
from netkit.store.state import GONE, UNCHECKED, CheckState, Extent, Key, after, over, without_half_seen
from tests.store.anything import JUDGEMENT, WORD
from tests.store.runs import judgement, result

NAMES = ("leaf01", "leaf02")
DOWN = Key("links.up", "leaf01", "swp1")


def bad(*keys: Key) -> Mapping[Key, CheckState]:
    return {key: CheckState(key, Verdict.FAIL, 1.0, 1.0, "bad") for key in keys}


def reported(before: Mapping[Key, CheckState], said: Judgement) -> dict[Key, tuple[Verdict, float, float]]:
    found = after(before, said, NAMES, 2.0)
    return {key: (state.verdict, state.since_s, state.seen_s) for key, state in found.items()}


def test_the_worst_of_several_findings_at_a_place_counts() -> None:
    findings = (Finding(Verdict.WARN, "swp1"), fail("swp1", "down"), Finding(Verdict.WARN, "swp1"))
    assert reported({}, judgement(result("leaf01", *findings))) == {DOWN: (Verdict.FAIL, 2.0, 2.0)}


def test_a_place_passes_when_it_was_judged_without_a_finding() -> None:
    other = fail("swp2", "down")
    assert reported(bad(DOWN), judgement(result("leaf01", other)))[DOWN] == (Verdict.PASS, 2.0, 2.0)
    assert reported(bad(DOWN), judgement(result(FABRIC)))[DOWN] == (Verdict.PASS, 2.0, 2.0)


def test_unjudged_places_keep_their_state() -> None:
    left_out = CheckResult("links.up", "leaf01", Verdict.FAIL, 900, (), left_out=3)
    for said in (
        judgement(),
        judgement(result("leaf02")),
        judgement(result("leaf01", check="links.speed")),
        judgement(result("leaf01", skip("swp1", "not told"))),
        judgement(result("leaf01", skip("", "no interfaces"), examined=0)),
        judgement(result("leaf01", error("", "broke off"))),
        judgement(result("leaf01", skip("swp1", "not told"))),
        judgement(result(FABRIC, skip("", "too little"))),
        judgement(result(FABRIC, skip("swp9", "too little"))),
        judgement(result(FABRIC, skip("", "not told", device="leaf01"))),
        judgement(left_out),
    ):
        assert DOWN not in reported(bad(DOWN), said), said


def test_a_skipped_check_of_one_device_changes_no_other() -> None:
    said = judgement(result(FABRIC, skip("", "not told", device="leaf02")))
    assert reported(bad(DOWN), said) == {DOWN: (Verdict.PASS, 2.0, 2.0)}


def test_a_check_of_the_fabric_changes_no_unreached_device() -> None:
    missed = Key("reached", "leaf01")
    said = judgement(result(FABRIC), unreached=[("leaf01", "refused")])
    assert reported(bad(DOWN), said) == {missed: (Verdict.FAIL, 2.0, 2.0)}
    assert reported(bad(missed), judgement()) == {missed: (Verdict.PASS, 2.0, 2.0)}
    away = Key("reached", "leaf03")
    assert reported(bad(away), judgement()) == {}


def test_since_stays_while_the_verdict_stays() -> None:
    found = after(bad(DOWN), judgement(result("leaf01", fail("swp1", "still down"))), NAMES, 2.0)
    assert found == {DOWN: CheckState(DOWN, Verdict.FAIL, 1.0, 2.0, "still down")}


def test_a_check_of_the_fabric_passes_no_place_with_an_unread_far_end() -> None:
    lossless = Key("links.up", "leaf01", "swp1/3")
    for peer, unreached, is_well in (("leaf02", (), True), ("leaf02", [("leaf02", "x")], False), ("leaf03", (), False)):
        for key in (DOWN, lossless):
            said = judgement(result(FABRIC), unreached=unreached)
            found = without_half_seen(after(bad(key), said, NAMES, 2.0), said, NAMES, {("leaf01", "swp1"): peer})
            assert (key in found) is is_well
    alone = judgement(result("leaf01"), unreached=[("leaf02", "x")])
    states = after(bad(DOWN), alone, NAMES, 2.0)
    assert without_half_seen(states, alone, NAMES, {("leaf01", "swp1"): "leaf02"}) == states


KEYS = st.builds(Key, st.sampled_from(["links.up", "optics.light"]), st.sampled_from([FABRIC, *NAMES, "leaf03"]), WORD)


@given(st.lists(KEYS, max_size=5), JUDGEMENT, st.sampled_from(NAMES))
def test_a_place_is_well_again_only_if_it_was_judged(keys: list[Key], said: Judgement, peer: str) -> None:
    peers = {(key.device, key.place): peer for key in keys}
    reached = {*NAMES} - {name for name, _ in said.unreached}
    found = without_half_seen(after(bad(*keys), said, NAMES, 2.0), said, NAMES, peers)
    for key in (key for key, one in found.items() if one.verdict is Verdict.PASS and key.check != "reached"):
        own = [one for one in said.results if (one.check, one.device) == (key.check, key.device)]
        results = own or [one for one in said.results if (one.check, one.device) == (key.check, FABRIC)]
        assert key.device in {FABRIC, *reached}
        assert own or peer in reached
        assert any(one.examined and not one.left_out for one in results)
        unknown = [one for one in results[-1].findings if one.verdict in {Verdict.SKIPPED, Verdict.ERROR}]
        assert not any(one.device in {"", key.device} and one.place in {"", key.place} for one in unknown)


def test_states_of_places_that_are_no_longer_checked_end() -> None:
    mine, away, whole = Key("my-rule.cables", "leaf01"), Key(REACHED, "leaf09"), Key("links.up", FABRIC)
    before = {**bad(DOWN, mine, away, whole), Key("links.up", "leaf08"): CheckState(DOWN, Verdict.PASS, 1.0, 1.0)}
    some = over(before, Extent(frozenset(NAMES)), 2.0)
    assert some == {away: CheckState(away, Verdict.PASS, 2.0, 2.0, GONE)}
    every = over(before, Extent(frozenset({*NAMES, "leaf09"}), frozenset({"links.up"})), 2.0)
    assert every == {mine: CheckState(mine, Verdict.PASS, 2.0, 2.0, UNCHECKED)}
