"""Silences affect the findings that they match and their symptoms, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.judge import Finding, Verdict, error, fail, skip, warn
from netkit.judge.cause import cause_groups, heads
from netkit.judge.check import Layer
from netkit.judge.finding import worst
from netkit.judge.run import CheckResult, Judgement
from netkit.judge.silence import Fault, Silence, Subject, cause_of, kind_of, silenced, states

NOW_S = 1_000_000.0
LAYERS: dict[str, Layer] = {"links.up": "link", "bgp.sessions": "routing", "optics.light": "physical"}
DEVICES = ("leaf01", "leaf02", "")
PLACES = ("swp1", "swp1/3", "swp2", "")


def judged(*findings: Finding, unreached: tuple[tuple[str, str], ...] = ()) -> Judgement:
    """A judgement with findings, one result for each check and device."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.check, one.device or "fabric"), []).append(one)
    results = []
    for (check, device), group in groups.items():
        ordered = tuple(sorted(group, key=lambda one: -one.verdict))
        results.append(CheckResult(check, device, worst(one.verdict for one in group), 9, ordered))
    return Judgement(tuple(results), unreached)


def found(one: Finding, check: str = "links.up", device: str = "leaf01", **more: Any) -> Finding:
    return one._replace(check=check, device=device, **more)


def silence(*checks: str, where: str = "leaf01", until_s: float | None = NOW_S + 60, **more: Any) -> Silence:
    return replace(Silence("s1", checks, (Subject.of(where),), "alice", "known", until_s=until_s), **more)


def marks(judgement: Judgement) -> list[tuple[str, str, str, str]]:
    return [(one.check, one.device, one.place, one.silenced.id) for one in judgement.silenced if one.silenced]


FINDINGS = st.builds(
    lambda verdict, check, device, place, number, cause, is_symptom: Finding(
        verdict, place, f"lost {number} packets", check=check, device=device, cause=cause, is_symptom=is_symptom
    ),
    st.sampled_from([Verdict.SKIPPED, Verdict.WARN, Verdict.FAIL, Verdict.ERROR]),
    st.sampled_from(sorted(LAYERS)),
    st.sampled_from(DEVICES),
    st.sampled_from(PLACES),
    st.integers(0, 9),
    st.sampled_from(["", "a — b", "c — d"]),
    st.booleans(),
)
SUBJECTS = st.builds(
    Subject, st.sampled_from(["leaf01", "leaf*", "fabric", "*"]), st.sampled_from(["", "swp1", "swp*"])
)
FAULTS = st.one_of(st.none(), st.builds(Fault, st.sampled_from([Verdict.WARN, Verdict.FAIL])))
SILENCES = st.builds(
    lambda checks, subjects, begins_s, until_s, fault: Silence(
        f"{checks}{subjects}", tuple(checks), tuple(subjects), "alice", "known", begins_s, until_s, fault=fault
    ),
    st.lists(st.sampled_from(["links.up", "links", "bgp.*", "*"]), min_size=1, max_size=2),
    st.lists(SUBJECTS, min_size=1, max_size=2),
    st.sampled_from([0.0, NOW_S, NOW_S + 1]),
    st.sampled_from([NOW_S - 1, NOW_S, NOW_S + 1]),
    FAULTS,
)


@given(st.lists(FINDINGS, max_size=12), st.lists(SILENCES, max_size=3))
def test_silences_mark_matches_and_their_symptoms_and_change_nothing_else(
    findings: list[Finding], silences: list[Silence]
) -> None:
    before = judged(*findings)
    after = silenced(before, silences, NOW_S, LAYERS)
    plain = [one._replace(silenced=None) for one in after.findings]
    assert plain == list(before.findings)
    active = {one.id: one for one in silences if one.begins_s <= NOW_S and (one.until_s or 0) > NOW_S}
    for one in after.findings:
        about = [each for each in active.values() if each.is_about(one.check, one.device, one.place)]
        if one.silenced is not None:
            assert one.verdict in {Verdict.WARN, Verdict.FAIL}
            assert active[one.silenced.id] in about or one.is_symptom
        elif one.verdict in {Verdict.WARN, Verdict.FAIL}:
            assert all(each.fault is not None and each.fault.verdict < one.verdict for each in about)
    counted = [one for one in after.findings if one.silenced is None]
    assert after.verdict == max((result.open_verdict for result in after.results), default=Verdict.SKIPPED)
    assert after.count(Verdict.FAIL) == sum(one.verdict is Verdict.FAIL for one in counted)
    shown = [one for group in cause_groups(after.findings, LAYERS) for one in group.findings]
    assert sorted(shown, key=repr) == sorted((one for one in after.findings if one.verdict > 1), key=repr)


@given(st.lists(FINDINGS, max_size=12), st.lists(SILENCES, max_size=3))
def test_an_ended_or_future_silence_has_no_effect(findings: list[Finding], silences: list[Silence]) -> None:
    before = judged(*findings)
    over = [replace(one, begins_s=0.0, until_s=NOW_S) for one in silences]
    later = [replace(one, id=f"{one.id} later", begins_s=NOW_S + 1, until_s=None) for one in silences]
    assert silenced(before, [*over, *later], NOW_S, LAYERS) == before


def test_a_silenced_cause_includes_its_symptoms_while_none_is_worse() -> None:
    head = found(warn("swp1", "dim"), "optics.light", cause="a — b")
    session = found(warn("swp1", "BFD is down"), "bgp.sessions", "leaf02", cause="a — b", is_symptom=True)
    lost = found(fail("swp1", "lost packets"), "links.up", "leaf02", cause="a — b", is_symptom=True)
    after = silenced(judged(head, session, lost), [silence("optics")], NOW_S, LAYERS)
    assert [(check, device) for check, device, *_ in marks(after)] == [
        ("optics.light", "leaf01"),
        ("bgp.sessions", "leaf02"),
    ]
    (group,) = cause_groups(after.findings, LAYERS)
    assert (group.verdict, group.is_silenced, after.verdict) == (Verdict.FAIL, False, Verdict.FAIL)


ACKNOWLEDGED = fail("swp1", "BGP to spine01 is Idle")


@pytest.mark.parametrize(
    ("now", "is_covered"),
    [
        (ACKNOWLEDGED, True),
        (fail("swp1", "BGP to spine01 is Active"), True),
        (warn("swp1", "BGP to spine01 is Idle"), True),
        (fail("swp1", "no BGP session to spine01"), False),
        (fail("swp1", "BGP to spine02 is Idle"), False),
        (fail("swp2", "BGP to spine01 is Idle"), False),
        (error("swp1", "BGP to spine01 is Idle"), False),
        (skip("swp1", "BGP to spine01 is Idle"), False),
        (ACKNOWLEDGED._replace(cause="a — b", is_symptom=True), False),
    ],
)
def test_an_acknowledgement_covers_the_same_fault_until_it_gets_worse(now: Finding, is_covered: bool) -> None:
    fault = Fault(Verdict.FAIL, (ACKNOWLEDGED.text,))
    one = silence("bgp.sessions", where="leaf01:swp1", until_s=None, fault=fault)
    head = [found(fail("swp9", "down"), "links.up", cause="a — b")] if now.is_symptom else []
    after = silenced(judged(found(now, "bgp.sessions"), *head), [one], NOW_S, LAYERS)
    assert bool(after.silenced) is is_covered


def test_an_acknowledgement_covers_all_lanes_of_a_module_with_their_cause() -> None:
    lanes = [
        found(
            fail("swp1", f"lane {lane}, transmitted power -{lane}.0 dBm", ""),
            "optics.light",
            cause="a — b",
            is_symptom=lane > 1,
        )
        for lane in (1, 2, 3)
    ]
    after = judged(*lanes)
    causes = {cause_of(one, heads(after.findings, LAYERS)) for one in after.findings}
    assert causes == {""}
    entry = silence("optics.light", where="leaf01:swp1", until_s=None)
    fault = Fault(Verdict.FAIL, tuple(one.text for one in lanes), causes.pop())
    assert len(silenced(after, [replace(entry, fault=fault)], NOW_S, LAYERS).silenced) == 3


def test_an_acknowledged_warning_that_fails_counts() -> None:
    one = silence("links.up", where="leaf01:swp1", fault=Fault(Verdict.WARN))
    after = silenced(judged(found(fail("swp1", "down"))), [one], NOW_S, LAYERS)
    assert (marks(after), after.verdict) == ([], Verdict.FAIL)


def test_changed_numbers_are_the_same_fault_and_changed_names_are_not() -> None:
    assert kind_of("bit error rate 1.2e-08 before FEC") == kind_of("bit error rate 4e-7 before FEC")
    assert kind_of("took 1,234 s") == kind_of("took 7 s")
    assert kind_of("runs at 400G towards leaf01:swp3") != kind_of("runs at 100G towards leaf01:swp3")


def test_findings_beyond_the_limit_count() -> None:
    one = judged(found(fail("swp1", "down")))
    many = replace(one, results=tuple(replace(result, left_out=3) for result in one.results))
    assert silenced(one, [silence("links")], NOW_S, LAYERS).verdict is Verdict.PASS
    assert silenced(many, [silence("links")], NOW_S, LAYERS).verdict is Verdict.FAIL


def test_an_unreachable_device_can_be_silenced() -> None:
    after = silenced(
        judged(unreached=(("leaf01", "refused"), ("leaf02", "refused"))), [silence("reached")], NOW_S, LAYERS
    )
    assert [name for name, _ in after.excused] == ["leaf01"]


def test_each_entry_has_a_state() -> None:
    entries = [
        silence("links", id="active"),
        silence("bgp", id="unmatched"),
        silence("bgp", id="unseen", where="leaf09"),
        silence("bgp", id="expired", until_s=NOW_S),
        silence("bgp", id="later", begins_s=NOW_S + 1),
        silence("bgp.sessions", id="healed", fault=Fault(Verdict.FAIL)),
    ]
    after = silenced(judged(found(fail("swp1", "down")), unreached=(("leaf09", "refused"),)), entries, NOW_S, LAYERS)
    whole = states(entries, after, NOW_S, {"healed"}, is_whole=True)
    reported = {one.silence.id: one.state for one in whole}
    assert reported == {name: "active" if name == "unseen" else name for name in reported}
    assert [one.findings for one in whole] == [1, 0, 0, 0, 0, 0]
    part = states(entries, after, NOW_S, {"healed"}, is_whole=False)
    assert [one.state for one in part if one.silence.id == "unmatched"] == ["active"]


def test_a_silence_for_a_site_is_one_for_its_devices() -> None:
    whole, one = silence("links.up", where="*"), silence("links.up", where="*", site="tokyo")
    sites = {"tokyo": {"leaf01"}, "osaka": {"leaf02"}}
    assert (whole.at({}), whole.at({"": {"leaf01"}}), whole.at(sites)) == (whole, whole, whole)
    assert (one.at({}), one.at({"": {"leaf01"}}), one.at({"osaka": {"leaf02"}})) == (None, None, None)
    placed = one.at(sites)
    assert placed is not None
    assert [placed.is_about("links.up", device, "swp1") for device in ("leaf01", "leaf02", "")] == [True, False, False]
    assert (whole.about, one.about) == ("links.up on *", "links.up on * at tokyo")
