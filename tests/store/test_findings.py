"""Findings and states of a run are read page by page, as the database selects them."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netkit.errors import StoreError
from netkit.judge import Finding, Silenced, Verdict, error, fail, skip, warn
from netkit.store import CheckRun, Counts
from netkit.store.partition import PlaceFilter, StoredPage
from netkit.store.store import Store
from tests.lanes import examples
from tests.store.runs import BEGAN_S, SOURCE, judgement, lit, result, run, save, snapshot

MARK = Silenced("s1", "silence", "ann", "known")
NUMBERS = count()
PLACES = ("swp1", "swp2/3", "swp[1]", "Swp1", "a*b", "x^y")


def stored(store: Store, taken_s: float = BEGAN_S) -> tuple[CheckRun, Sequence[Finding]]:
    """Save a run with findings of every verdict on three devices and on the fabric; return the expected ones."""
    results = [
        result(
            device,
            warn(place, f"{place} is dim", "clean it", light="-9 dBm"),
            fail(place, f"{place} is down"),
            error(place, "broken"),
            skip(place, "not known"),
            check=check,
        )
        for check in ("links.up", "optics.light")
        for device in ("leaf01", "leaf02", "gpu01", "fabric")
        for place in PLACES
    ]
    saved = run(taken_s)
    store.save(saved, judgement(*results), snapshot(taken_s))
    found = [one for each in results for one in each.findings if one.verdict > Verdict.SKIPPED]
    return saved, sorted(found, key=lambda one: -one.verdict)


def test_pages_of_findings_equal_the_judgement(store: Store) -> None:
    saved, expected = stored(store)
    paged: list[Finding] = []
    while part := store.findings(saved, PlaceFilter(), 25, len(paged)).items:
        assert len(part) <= 25
        paged += part
    assert paged == list(expected)
    assert [one for one in store.judgement(saved).findings if one.verdict is Verdict.SKIPPED] == list(
        store.skipped(saved)
    )


@pytest.mark.parametrize(
    "wanted",
    [
        PlaceFilter("leaf0?"),
        PlaceFilter("leaf01", "optics.*"),
        PlaceFilter(check="*.up", place="swp[1]"),
        PlaceFilter(place="?wp1"),
        PlaceFilter(place="a*b"),
        PlaceFilter(place="x^y"),
        PlaceFilter(place="%"),
        PlaceFilter(place="swp1", verdict=Verdict.FAIL),
        PlaceFilter(verdict=Verdict.PASS),
    ],
)
def test_the_database_selects_as_a_glob_does(store: Store, wanted: PlaceFilter) -> None:
    saved, every = stored(store)
    expected = tuple(
        one
        for one in every
        if all(
            fnmatchcase(getattr(one, key), (getattr(wanted, key) or "*").replace("[", "[[]"))
            for key in ("device", "check", "place")
        )
        and wanted.verdict in {None, one.verdict}
    )
    assert store.findings(saved, wanted) == StoredPage(expected, len(expected))
    states = [(one.key.check, one.key.device, one.key.place) for one in store.states(SOURCE, wanted).items]
    assert sorted(states) == sorted(
        {(one.check, one.device or "fabric", one.place) for one in expected if one.verdict is Verdict.ERROR}
        if wanted.verdict is None
        else ()
    )


ALPHABET = st.text("ab*?[]%_\\^", max_size=6)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ALPHABET, min_size=1, max_size=5), ALPHABET.filter(bool))
def test_names_match_as_they_do_in_python(store: Store, names: list[str], pattern: str) -> None:
    saved = replace(run(), source=replace(SOURCE, fabric=f"{next(NUMBERS)}"))
    store.save(saved, judgement(result("leaf01", *(warn(name, "dim") for name in names))), snapshot())
    expected = [name for name in names if fnmatchcase(name, pattern.replace("[", "[[]"))]
    found = store.findings(saved, PlaceFilter(place=pattern))
    assert ([one.place for one in found.items], found.total) == (expected, len(expected))


def test_findings_of_a_run_that_is_not_stored_are_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match=r"the findings of run .* are no longer stored"):
        store.findings(run(), PlaceFilter())


def test_silenced_findings_are_counted_by_silence(store: Store) -> None:
    quiet = fail("swp1", "down")._replace(silenced=MARK)
    saved = run()
    store.save(saved, judgement(result("leaf01", quiet, warn("swp2", "dim")), result("leaf02", quiet)), snapshot())
    assert store.silenced(saved) == {"s1": 2}
    assert [one.silenced for one in store.findings(saved, PlaceFilter()).items] == [MARK, MARK, None]


def test_causes_are_of_the_worst_places_if_there_are_too_many(store: Store) -> None:
    found = [result(f"leaf{number:02}", warn("swp1", f"dim {number}")) for number in range(9)]
    found.append(result("leaf09", fail("swp1", "down", "plug it in")))
    missed = [(f"gpu{number:02}", "no answer") for number in range(6)]
    saved = run()
    store.save(saved, judgement(*found, unreached=missed), snapshot())
    whole, part = store.open_now(SOURCE), store.open_now(SOURCE, 4)
    assert (len(whole.causes), len(whole.unreached), whole.left_out) == (10, 6, 0)
    assert [one.group.head.text for one in part.causes] == ["down", "dim 0", "dim 1", "dim 2"]
    assert part.causes[0].group.head.remedy == "plug it in"
    assert (len(part.unreached), part.left_out) == (4, 6 + 2)
    assert store.open_now(SOURCE, 10).left_out == 0


def test_silences_of_unreached_devices_apply_to_an_incomplete_run(store: Store) -> None:
    saved = replace(run(), counts=Counts(examined=1, unreached=1, silenced=1))
    store.save(saved, replace(judgement(unreached=[("leaf01", "gone")]), excused=(("leaf01", MARK),)), snapshot())
    assert store.open_now(SOURCE, 5).excused == {"leaf01": MARK}


def test_places_that_pass_since_a_run_are_selected(store: Store) -> None:
    for number, places in enumerate((("swp1", "swp2", "swp3"), ("swp2", "swp3"), ("swp3",))):
        found = result("leaf01", *(fail(place, "down") for place in places))
        save(store, BEGAN_S + 60 * number, found, leaf01=lit("leaf01", -1.0))
    passing = PlaceFilter(verdict=Verdict.PASS)
    found_now = store.states(SOURCE, passing, since_s=BEGAN_S + 120)
    assert ([one.key.place for one in found_now.items], found_now.total) == (["swp2"], 1)
    assert store.states(SOURCE, passing, most=1).total == 2
