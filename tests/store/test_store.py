import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netkit.errors import StoreError
from netkit.facts import Observation, Sample
from netkit.judge import Verdict, fail, skip, warn
from netkit.judge.delta import Earlier
from netkit.judge.run import Judgement
from netkit.store import CheckRun, Source
from netkit.store.record import Retention, judgement_of, packed
from netkit.store.store import Store, open_store
from tests.lanes import examples
from tests.store.anything import JUDGEMENT, RUN
from tests.store.runs import (
    BEGAN_S,
    DAY_S,
    SOURCE,
    counted,
    judgement,
    lit,
    measured,
    result,
    run,
    save,
    snapshot,
)

NUMBERS = count()
UNHURRIED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)


@settings(max_examples=examples(40), suppress_health_check=UNHURRIED)
@given(run=RUN, said=JUDGEMENT)
def test_what_is_saved_is_read_back_equal(store: Store, run: CheckRun, said: Judgement) -> None:
    saved = replace(run, source=Source(f"fabric {next(NUMBERS)}"))
    store.save(saved, said, snapshot(saved.taken_s))
    assert store.runs(saved.source) == (saved,)
    assert store.judgement(saved) == said


@settings(max_examples=examples(20), suppress_health_check=UNHURRIED)
@given(counters=st.dictionaries(st.text(max_size=9), st.dictionaries(st.text(max_size=9), st.integers(0, 2**64))))
def test_counters_are_read_back_equal(store: Store, counters: dict[str, dict[str, int]]) -> None:
    source = Source(f"counted {next(NUMBERS)}")
    saved = replace(run(), source=source)
    seen = Observation("leaf01", "nvue", samples=(Sample(1.0, {}), Sample(2.5, counters)))
    store.save(saved, judgement(), snapshot(leaf01=seen))
    assert store.counters(source) == {"leaf01": Earlier(Sample(2.5, counters))}


def test_runs_come_newest_first_and_those_of_a_lab_are_apart(store: Store) -> None:
    later, earlier = save(store, BEGAN_S + 60), save(store, BEGAN_S)
    lab = Source("small", "small")
    of_lab = replace(run(BEGAN_S + 90), source=lab)
    store.save(of_lab, judgement(), snapshot())
    assert store.runs(SOURCE) == (later, earlier)
    assert store.runs(SOURCE, 1) == (later,)
    assert store.runs(lab) == (of_lab,)


def test_data_of_a_fabric_at_one_site_is_apart_from_another(store: Store) -> None:
    owners = (SOURCE, Source("small", site="tokyo"), Source("small", site="paris"))
    saved = []
    for number, owner in enumerate(owners):
        one = replace(run(BEGAN_S + number), source=owner)
        found = result("leaf01", fail("swp1", owner.site))
        seen = counted("leaf01", one.taken_s, number)
        store.save(
            one, judgement(found), snapshot(one.taken_s, leaf01=replace(lit("leaf01", -number), samples=seen.samples))
        )
        saved.append(one)
    for number, owner in enumerate(owners):
        assert store.runs(owner) == (saved[number],)
        assert [one.text for one in store.states(owner).items] == [owner.site]
        assert [one.group.head.text for one in store.open_now(owner).causes] == [owner.site]
        assert store.counters(owner)["leaf01"].sample.counters == {"rx_errors": {"swp1": number}}
        assert store.readings(owner, "leaf01", 1e12) == [measured(BEGAN_S + number, -number)]


def test_only_the_newest_counters_of_a_device_are_kept_and_a_device_not_seen_keeps_its_own(store: Store) -> None:
    save(store, BEGAN_S, leaf01=counted("leaf01", BEGAN_S, 5), leaf02=counted("leaf02", BEGAN_S, 7))
    save(store, BEGAN_S + 60, leaf01=counted("leaf01", BEGAN_S + 60, 9, boot="b2", uptime_s=3.0))
    save(store, BEGAN_S + 30, leaf01=counted("leaf01", BEGAN_S + 30, 6))
    assert store.counters(SOURCE) == {
        "leaf01": Earlier(Sample(BEGAN_S + 60, {"rx_errors": {"swp1": 9}}), "b2", 3.0),
        "leaf02": Earlier(Sample(BEGAN_S, {"rx_errors": {"swp1": 7}}), "b1"),
    }


def test_readings_come_earliest_first_and_only_those_before(store: Store) -> None:
    for hour, dbm in ((2, -3.0), (0, -1.0), (1, -2.0)):
        save(store, BEGAN_S + 3600 * hour, leaf01=lit("leaf01", dbm))
    found = store.readings(SOURCE, "leaf01", BEGAN_S + 7200)
    assert found == [measured(BEGAN_S, -1.0), measured(BEGAN_S + 3600, -2.0)]
    assert store.readings(SOURCE, "leaf02", BEGAN_S + 7200) == []


def test_an_hour_has_one_set_of_readings_and_a_past_day_too(store: Store) -> None:
    for minute in range(0, 180, 30):
        save(store, BEGAN_S + 60 * minute, leaf01=lit("leaf01", -minute))
    times = [one.at_s - BEGAN_S for one in store.readings(SOURCE, "leaf01", 1e12)]
    assert times == [0, 3600, 7200]
    save(store, BEGAN_S + 3 * DAY_S, leaf01=lit("leaf01", -1.0))
    times = [one.at_s - BEGAN_S for one in store.readings(SOURCE, "leaf01", 1e12)]
    assert times == [0, 3 * DAY_S]


def test_old_runs_are_dropped_and_those_of_other_fabrics_kept(store: Store) -> None:
    other = replace(run(BEGAN_S), source=Source("other"))
    store.save(other, judgement(result("leaf01", fail("p", "bad"))), snapshot(leaf01=lit("leaf01", -1.0)))
    bad = result("leaf01", fail("swp1", "down"))
    save(store, BEGAN_S, bad, leaf01=counted("leaf01", BEGAN_S, 1), leaf02=lit("leaf02", -1.0))
    newest = run(BEGAN_S + 11 * DAY_S)
    store.save(newest, judgement(), snapshot(newest.taken_s), keep=Retention.of_all(10 * DAY_S))
    assert store.runs(SOURCE) == (newest,)
    assert store.counters(SOURCE) == {}
    assert store.states(SOURCE).items == ()
    assert store.readings(SOURCE, "leaf02", 1e12) == []
    assert store.runs(other.source) == (other,)
    assert len(store.states(other.source).items) == 1
    assert len(store.readings(other.source, "leaf01", 1e12)) == 1


def test_each_kind_is_kept_for_its_own_time(store: Store) -> None:
    keep = Retention(runs_s=30 * DAY_S, findings_s=10 * DAY_S, readings_s=20 * DAY_S)
    for day in range(0, 41, 5):
        at_s = BEGAN_S + day * DAY_S
        one = run(at_s)
        found = judgement(result("leaf01", fail("swp1", "down")))
        store.save(one, found, snapshot(at_s, leaf01=lit("leaf01", -day)), keep=keep)
    kept = store.runs(SOURCE)
    assert [(one.taken_s - BEGAN_S) / DAY_S for one in kept] == [40, 35, 30, 25, 20, 15, 10]
    assert [(one.at_s - BEGAN_S) / DAY_S for one in store.readings(SOURCE, "leaf01", 1e12)] == [20, 25, 30, 35, 40]
    for one in kept[:3]:
        assert len(store.judgement(one).findings) == 1
    for one in kept[3:]:
        with pytest.raises(StoreError, match=r"the findings of run .* are no longer stored"):
            store.judgement(one)
    assert len(store.open_now(SOURCE).causes) == 1
    later = run(BEGAN_S + 40 * DAY_S + 60)
    store.save(later, judgement(), snapshot(), keep=Retention(runs_s=5 * DAY_S))
    assert len(store.runs(SOURCE)) == 2, "findings are not kept for longer than their run"


def test_a_dropped_run_is_reported_as_missing(store: Store) -> None:
    with pytest.raises(StoreError, match="are no longer stored"):
        store.judgement(run())


def test_states_contain_changes_and_their_times(store: Store) -> None:
    down, dim = fail("swp1", "swp1 is down"), warn("swp2", "swp2 is dim")
    steps = [
        (judgement(result("leaf01", down, dim)), {"swp1": Verdict.FAIL, "swp2": Verdict.WARN}),
        (judgement(result("leaf01", down, dim._replace(text="dimmer"))), {}),
        (judgement(result("leaf01", skip("swp1", "not told"), dim)), {}),
        (judgement(result("leaf01", dim)), {"swp1": Verdict.PASS}),
    ]
    for number, (said, expected) in enumerate(steps):
        taken_s = BEGAN_S + number
        changed = store.save(run(taken_s), said, snapshot(taken_s, leaf01=lit("leaf01", 0.0))).changes
        assert {state.key.place: state.verdict for state in changed} == expected, number
    second, first = store.states(SOURCE).items
    assert (first.key.id, first.verdict, first.since_s - BEGAN_S) == ("links.up[leaf01] swp1", Verdict.PASS, 3)
    assert (second.text, second.since_s - BEGAN_S, second.seen_s - BEGAN_S) == ("swp2 is dim", 0, 3)


def test_an_older_run_changes_no_state(store: Store) -> None:
    save(store, BEGAN_S, result("leaf01", fail("swp1", "down")))
    assert store.save(run(BEGAN_S - 60), judgement(result("leaf01")), snapshot(BEGAN_S - 60)).changes == ()
    assert [state.verdict for state in store.states(SOURCE).items] == [Verdict.FAIL]


def test_a_run_from_the_future_blocks_and_drops_nothing(store: Store) -> None:
    now_s = time.time() - 5
    down = result("leaf01", fail("swp1", "down"))
    first = save(store, now_s - 60, down, leaf01=counted("leaf01", now_s - 60, 5))
    ahead_s = now_s + 1000 * DAY_S
    ahead = save(store, ahead_s, down, leaf01=counted("leaf01", ahead_s, 6))
    then = save(store, now_s - 30, down, leaf01=counted("leaf01", now_s - 30, 7))
    last = run(now_s)
    changed = store.save(last, judgement(result("leaf01")), snapshot(now_s, leaf01=counted("leaf01", now_s, 8))).changes
    assert [state.verdict for state in changed] == [Verdict.PASS]
    assert store.runs(SOURCE) == (last, then, first, ahead)
    assert store.runs(SOURCE, 1) == (last,)
    assert store.counters(SOURCE)["leaf01"].sample.at_s == now_s


def test_text_that_a_database_does_not_accept_is_kept(store: Store) -> None:
    odd = "\x00\ud800" + "x" * 3000
    said = judgement(result("leaf01", fail(odd, odd)))
    saved = run()
    store.save(saved, said, snapshot(leaf01=lit("leaf01", 0.0)))
    assert store.judgement(saved) == said
    (state,) = store.states(SOURCE).items
    assert state.key.place == "\ufffd\ufffd" + "x" * 253


def test_a_store_is_created_only_on_request(where: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no store|nothing is stored there yet"):
        open_store(where, is_new_allowed=False)
    assert list(tmp_path.iterdir()) == []
    with open_store(where) as store:
        saved = save(store, BEGAN_S)
    with open_store(where, is_new_allowed=False) as again:
        assert again.runs(SOURCE) == (saved,)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("mysql://u@h/d", "mysql is not supported as a store; use a file, or postgresql://USER@HOST/DATABASE"),
        ("://x", "the URL of the store cannot be read"),
        ("sqlite://", "a store in memory would not persist; name a file"),
        ("sqlite:///:memory:", "a store in memory would not persist; name a file"),
        ("/proc/no/where.db", "unable to open database file; check the path and its permissions"),
        ("postgresql://u:hidden@/d?host=/nowhere", "postgresql+psycopg://u:***@/d?host="),
    ],
)
def test_what_is_not_a_store_is_refused_in_one_line(where: str, message: str) -> None:
    with pytest.raises(StoreError) as refused:
        open_store(where)
    (problem,) = refused.value.problems
    assert message in str(problem)
    assert "hidden" not in str(problem)
    assert "\n" not in str(problem)


def test_a_file_that_is_not_a_store_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database at all, but long enough to be looked at\n" * 100, encoding="utf-8")
    before = file.read_bytes()
    with pytest.raises(StoreError, match="file is not a database; name a file that does not exist yet, or a store"):
        open_store(str(file))
    assert file.read_bytes() == before


def test_a_run_from_before_findings_named_symptoms_is_read() -> None:
    found = fail("swp1", "swp1 is down")
    plain = {"results": [["links.up", "leaf01", Verdict.FAIL, 1, [list(found)[:9]], 0]], "unreached": []}
    assert judgement_of(packed(plain), "run").results[0].findings == (found,)
