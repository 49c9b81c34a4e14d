"""What a run changed, by cause: new, worse, better or gone, each once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.judge import Finding, Verdict
from netkit.judge.cause import cause_groups
from netkit.judge.silence import REACHED
from netkit.store.open_cause import OpenCause, OpenNow, cause_changes, change_of, open_counts
from netkit.store.state import CheckState, Key

PASS, WARN, FAIL, ERROR = Verdict.PASS, Verdict.WARN, Verdict.FAIL, Verdict.ERROR


def bad(check: str, verdict: Verdict = FAIL, cause: str = "cable", *, is_symptom: bool = True) -> Finding:
    """Return a finding of a check on one port."""
    return Finding(verdict, "swp1", f"{check} is bad", cause=cause, device="leaf01", check=check, is_symptom=is_symptom)


def opened(*findings: Finding, unreached: tuple[str, ...] = ()) -> OpenNow:
    """Return open causes of findings and of unreached devices."""
    missed = (CheckState(Key(REACHED, name), FAIL, 1.0, 1.0, "no answer") for name in unreached)
    found = cause_groups(findings, {"links.up": "link", "bgp.sessions": "routing", "qos.pfc": "qos"})
    return OpenNow(tuple(OpenCause(one, "", 1.0, 1.0, "") for one in found), tuple(missed))


def reported(before: OpenNow, after: OpenNow) -> list[tuple[str, str, int]]:
    changes = cause_changes(before, after)
    return [(one.word, one.cause.group.head.check, len(one.cause.group.symptoms)) for one in changes]


UP, IDLE = bad("links.up", is_symptom=False), bad("bgp.sessions")


def test_a_cause_is_listed_once_and_an_unchanged_one_is_not() -> None:
    assert reported(opened(), opened(UP, IDLE)) == [("new", "links.up", 1)]
    assert reported(opened(UP, IDLE), opened(UP, IDLE)) == []
    assert reported(opened(UP, IDLE), opened()) == [("gone", "links.up", 1)]


def test_more_symptoms_are_worse_and_fewer_are_better() -> None:
    assert reported(opened(UP), opened(UP, IDLE)) == [("worse", "links.up", 1)]
    assert reported(opened(UP, IDLE), opened(UP)) == [("better", "links.up", 0)]
    assert reported(opened(UP, bad("bgp.sessions", WARN)), opened(UP, IDLE)) == [("worse", "links.up", 1)]


def test_a_cause_of_which_a_symptom_is_left_is_better() -> None:
    left = bad("bgp.sessions", cause="", is_symptom=False)
    assert reported(opened(UP, IDLE), opened(left)) == [("better", "bgp.sessions", 0)]
    assert reported(opened(left), opened(UP, IDLE)) == [("worse", "links.up", 1)]


def test_open_causes_are_listed_before_resolved_ones() -> None:
    other = bad("qos.pfc", WARN, "other")
    assert reported(opened(UP), opened(other)) == [("new", "qos.pfc", 0), ("gone", "links.up", 0)]


def test_devices_unreachable_for_one_reason_are_one_cause() -> None:
    names = tuple(f"gpu{number}" for number in range(6))
    assert reported(opened(), opened(unreached=names)) == [("new", REACHED, 5)]
    assert reported(opened(unreached=names[:5]), opened(unreached=names)) == [("worse", REACHED, 5)]
    assert reported(opened(unreached=names), opened()) == [("gone", REACHED, 5)]
    assert opened(UP, unreached=names).counts == {"error": 0, "fail": 1, "warn": 0, "unreached": 6, "silenced": 0}


def test_counts_of_states_are_of_causes() -> None:
    states = [
        (Key("links.up", "leaf01", "swp1"), "", FAIL),
        (Key("bgp.sessions", "leaf01", "swp1"), "links.up[leaf01] swp1", ERROR),
        (Key("qos.pfc", "leaf02"), "", WARN),
        (Key(REACHED, "gpu01"), "", FAIL),
    ]
    assert open_counts(states) == {"error": 1, "warn": 1, "unreached": 1}


VERDICTS = st.sampled_from((PASS, WARN, FAIL, ERROR))


@given(st.lists(st.tuples(VERDICTS, VERDICTS), min_size=1, max_size=5))
def test_a_change_reversed_is_its_opposite(pairs: list[tuple[Verdict, Verdict]]) -> None:
    back = change_of((now, before) for before, now in pairs)
    forth = change_of(pairs)
    if forth == "worse" and any(now < before for before, now in pairs):
        return  # partly better, and so it is from either side
    assert back == {None: None, "new": "gone", "gone": "new", "worse": "better", "better": "worse"}[forth]


@pytest.mark.parametrize(
    ("pairs", "word"),
    [
        ([(PASS, WARN)], "new"),
        ([(WARN, PASS), (FAIL, PASS)], "gone"),
        ([(WARN, FAIL), (FAIL, PASS)], "worse"),
        ([(FAIL, WARN)], "better"),
        ([(FAIL, FAIL)], None),
        ([], None),
    ],
)
def test_the_word_of_a_change(pairs: list[tuple[Verdict, Verdict]], word: str | None) -> None:
    assert change_of(pairs) == word
