"""Open causes: all present warnings and failures, whichever run saw them last."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from netkit.judge import Finding, Verdict, fail, warn
from netkit.judge.run import FABRIC, Judgement
from netkit.judge.silence import REACHED
from netkit.store import schema
from netkit.store.open_cause import FoundByRun, OpenNow, open_now
from netkit.store.state import CheckState, Key, after
from netkit.store.store import Store, open_store
from tests.lanes import examples
from tests.store import runs
from tests.store.runs import BEGAN_S, SOURCE, judgement, result, snapshot

SEEN = {name: runs.counted(name, BEGAN_S, 1) for name in ("leaf01", "leaf02")}
DOWN = fail("swp1", "down", "see the cable", cause="leaf01:swp1 — spine01:swp1")
IDLE = fail("swp1", "BGP is idle", cause="leaf01:swp1 — spine01:swp1")._replace(is_symptom=True)


def save(store: Store, taken_s: float, said: Judgement) -> str:
    saved = runs.run(taken_s)
    saved = replace(saved, layers={"links.up": "link", "bgp.sessions": "routing"})
    store.save(saved, said, snapshot(taken_s, **SEEN))
    return saved.name


def reported(found: OpenNow) -> list[tuple[str, int, float, float, str]]:
    return [(one.group.head.text, len(one.group.symptoms), one.since_s, one.seen_s, one.run) for one in found.causes]


def test_a_cause_is_listed_once_with_its_symptoms_remedy_and_beginning(store: Store) -> None:
    said = judgement(result("leaf01", DOWN), result("leaf01", IDLE, check="bgp.sessions"))
    save(store, BEGAN_S, said)
    name = save(store, BEGAN_S + 900, said)
    found = store.open_now(SOURCE)
    assert reported(found) == [("down", 1, BEGAN_S, BEGAN_S + 900, name)]
    (one,) = found.causes
    assert (one.group.head.remedy, one.layer) == ("see the cable", "link")
    assert one.keys == (Key("links.up", "leaf01", "swp1"), Key("bgp.sessions", "leaf01", "swp1"))


def test_places_that_a_run_did_not_judge_keep_their_verdict(store: Store) -> None:
    first = save(store, BEGAN_S, judgement(result("leaf01", DOWN), result("leaf02")))
    other = fail("swp9", "another")
    later = save(store, BEGAN_S + 900, judgement(result("leaf02", other), unreached=[("leaf01", "no answer")]))
    found = store.open_now(SOURCE)
    assert sorted(reported(found)) == [
        ("another", 0, BEGAN_S + 900, BEGAN_S + 900, later),
        ("down", 0, BEGAN_S, BEGAN_S, first),
    ]
    assert found.unreached == (
        CheckState(Key(REACHED, "leaf01"), Verdict.FAIL, BEGAN_S + 900, BEGAN_S + 900, "no answer"),
    )


def test_since_is_the_beginning_of_the_present_verdict(store: Store) -> None:
    save(store, BEGAN_S, judgement(result("leaf01", warn("swp1", "dim"))))
    save(store, BEGAN_S + 900, judgement(result("leaf01", DOWN)))
    (one,) = store.open_now(SOURCE).causes
    assert (one.group.verdict, one.since_s) == (Verdict.FAIL, BEGAN_S + 900)


def test_a_resolved_cause_is_not_open(store: Store) -> None:
    save(store, BEGAN_S, judgement(result("leaf01", DOWN)))
    save(store, BEGAN_S + 900, judgement(result("leaf01")))
    assert store.open_now(SOURCE) == OpenNow()


def test_a_cause_stays_open_after_its_run_was_dropped(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        save(store, BEGAN_S, judgement(result("leaf01", DOWN)))
        with store._engine.begin() as connection:  # noqa: SLF001 (as time does it)
            connection.execute(delete(schema.findings))
            connection.execute(delete(schema.runs))
        assert reported(store.open_now(SOURCE)) == [("down", 0, BEGAN_S, BEGAN_S, "")]


BAD = (Verdict.SKIPPED, Verdict.WARN, Verdict.FAIL, Verdict.ERROR)
FINDING = st.builds(
    Finding, st.sampled_from(BAD), st.sampled_from(("", "swp1", "swp1/3")), st.just("bad"), cause=st.sampled_from("ab ")
)
RESULTS = st.dictionaries(st.sampled_from(("leaf01", "leaf02", FABRIC)), st.lists(FINDING, max_size=3), min_size=1)
MISSED = st.sets(st.sampled_from(("leaf01", "leaf02")))
JUDGEMENT = st.builds(
    lambda some, missed: judgement(
        *(result(device, *found) for device, found in some.items()), unreached=[(one, "gone") for one in sorted(missed)]
    ),
    RESULTS,
    MISSED,
)


@settings(max_examples=examples(60))
@given(st.lists(JUDGEMENT, min_size=1, max_size=3))
def test_whatever_stands_bad_is_in_a_cause_or_not_reached(said: list[Judgement]) -> None:
    states: dict[Key, CheckState] = {}
    kept = []
    for number, one in enumerate(said):
        states |= after(states, one, ("leaf01", "leaf02"), float(number))
        kept.append(FoundByRun(runs.run(float(number)), one.findings, one.excused))
    found = open_now(states.values(), reversed(kept))
    keys = {key for one in found.causes for key in one.keys} | {one.key for one in found.unreached}
    assert keys == {one.key for one in states.values() if one.verdict > Verdict.SKIPPED}
