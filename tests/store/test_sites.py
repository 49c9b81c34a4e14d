"""A fabric at several sites: what a run found at each is stored apart, on SQLite and on PostgreSQL."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from netkit.facts import Observation, Snapshot
from netkit.judge import Finding, Verdict, catalog, error, fail, skip, warn
from netkit.judge.run import FABRIC, CheckResult, Judgement
from netkit.judge.silence import KINDS, silenced
from netkit.project.checking import Checking
from netkit.project.judging import judged_of, silencing
from netkit.project.past import Past, Storing, extent_of, past
from netkit.project.project import Project
from netkit.store import CheckState, Source
from netkit.store.store import open_store
from tests.intents import BASE
from tests.lab.running import write_fabric
from tests.project.test_processes import snapshot
from tests.store import runs

BEGAN_S = 1_763_769_600.0
WHOLE, TOKYO, OSAKA = Source("small"), Source("small", site="tokyo"), Source("small", site="osaka")
CHECKS = ("links", "load", "bgp", "optics")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write_fabric(tmp_path / "small", BASE)
    return Project.open(tmp_path / "small", processes=1)


def placed(project: Project) -> dict[str, frozenset[str]]:
    """The devices at each site: the second unit is at osaka."""
    at_osaka = frozenset(device.name for device in project.devices() if device.unit == 2)
    return {"tokyo": frozenset(project.fabric.names) - at_osaka, "osaka": at_osaka}


def check(
    project: Project,
    where: str,
    found: Snapshot,
    sites: Mapping[str, Collection[str]],
    *,
    limit: str = "",
) -> Judgement:
    """Judge facts and store the run, as `netkit check` does."""
    checks = catalog.select(project.checks(), CHECKS)
    with past(replace(Storing.of(where, ""), sites=sites), project) as earlier:
        silences = silencing(project, earlier, project.checks(), sites)
        context = Checking.of(project, limit=limit).context_of(found)
        judged = judged_of(context, checks, silenced=silences)
        extent = extent_of(context, judged, has_all_checks=False)
        earlier.save(context, judged, project.intent, extent=extent)
        return judged.judgement


def at(found: Snapshot, number: int, *unreached: str) -> Snapshot:
    """The facts of a later round, in which some devices are not reached."""
    gone = {name: Observation(name, found.devices[name].platform, failure="it is off") for name in unreached}
    return replace(found, taken_s=BEGAN_S + 900.0 * number, devices={**found.devices, **gone})


def states(where: str, source: Source) -> set[CheckState]:
    with open_store(where) as store:
        return set(store.states(source).items)


def test_each_site_has_its_own_history_and_states(project: Project, where: str) -> None:
    sites, found = placed(project), snapshot(project.fabric)
    leaf = found.devices["leaf04"]
    lit = replace(leaf, facts=replace(leaf.facts, modules=runs.lit("leaf04", -2.5).facts.modules))
    found = replace(found, devices={**found.devices, "leaf04": lit})
    for number, unreached in enumerate(((), ("leaf03", "gpu01"), ())):
        check(project, where, at(found, number, *unreached), sites)
    with open_store(where) as store:
        assert store.sources() == (WHOLE, OSAKA, TOKYO)
        known = {source: store.runs(source) for source in (WHOLE, TOKYO, OSAKA)}
        times = [[one.taken_s for one in runs_] for runs_ in known.values()]
        assert times == [[BEGAN_S + 1800.0, BEGAN_S + 900.0, BEGAN_S]] * 3
        for source, site in ((TOKYO, "tokyo"), (OSAKA, "osaka")):
            assert [one.devices for one in known[source]] == [len(sites[site])] * 3
            assert [one.counts.unreached for one in known[source]] == [0, 1, 0]
            assert [one.exit_code for one in known[source]][1] == 4
            for mine, whole in zip(known[source], known[WHOLE], strict=True):
                here, everywhere = store.judgement(mine), store.judgement(whole)
                assert set(here.findings) == {one for one in everywhere.findings if one.device in sites[site]}
        total = [one.counts.failures + one.counts.warnings for one in known[WHOLE]]
        parts = [
            sum(one.counts.failures + one.counts.warnings for one in both)
            for both in zip(known[TOKYO], known[OSAKA], strict=True)
        ]
        assert total == parts
        assert min(total) > 0
        measured = [store.readings(source, "leaf04", BEGAN_S * 2) for source in (WHOLE, OSAKA, TOKYO)]
        assert measured == [[runs.measured(BEGAN_S, -2.5)]] * 2 + [[]]
    assert states(where, TOKYO) | states(where, OSAKA) == states(where, WHOLE)
    assert {one.key.device for one in states(where, TOKYO)} <= sites["tokyo"]
    assert states(where, OSAKA)


def test_a_device_that_moves_ends_its_states_at_the_site_it_left(project: Project, where: str) -> None:
    sites, found = placed(project), snapshot(project.fabric)
    check(project, where, at(found, 0, "leaf03"), sites)
    moved = {"tokyo": sites["tokyo"] | {"leaf03"}, "osaka": sites["osaka"] - {"leaf03"}}
    check(project, where, at(found, 1, "leaf03"), moved)
    before, after = (
        {one.key.id: one.verdict for one in states(where, source)}["reached[leaf03]"] for source in (OSAKA, TOKYO)
    )
    assert (before, after) == (Verdict.PASS, Verdict.FAIL)


def test_a_run_on_some_devices_is_not_a_run_of_the_other_sites(project: Project, where: str) -> None:
    check(project, where, at(snapshot(project.fabric), 0), placed(project), limit="unit=2")
    with open_store(where) as store:
        assert store.sources() == (WHOLE, OSAKA)
        assert len(store.runs(OSAKA)) == 1


def test_an_acknowledgement_is_remembered_where_it_is(project: Project, where: str) -> None:
    (project.folder / "silences.yaml").write_text(
        "acknowledgements:\n"
        "  - {id: off, check: reached, where: leaf03, verdict: fail, from: 2025-11-21T00:00:00Z, by: ann, why: swap}\n",
        encoding="utf-8",
    )
    sites, found = placed(project), snapshot(project.fabric)
    check(project, where, at(found, 0, "leaf03", "gpu01"), sites)
    with open_store(where) as store:
        assert [key.id for key in store.silences(OSAKA)["off"].keys] == ["reached[leaf03]"]
        assert store.silences(TOKYO)["off"].keys == ()
        exits = [store.runs(source)[0].exit_code for source in (WHOLE, TOKYO)]
        assert exits == [4, 4]
        (run,) = store.runs(OSAKA)
        assert (run.counts.unreached, run.counts.silenced, run.exit_code) == (1, 1, 0)


def result(*findings: Finding, examined: int = 9, left_out: int = 0) -> CheckResult:
    return replace(runs.result(FABRIC, *findings, check="links.cabling", examined=examined), left_out=left_out)


HERE, THERE = fail("swp1", "loose", device="leaf01"), warn("swp1", "dim", device="leaf09")


@pytest.mark.parametrize(
    ("whole", "verdict", "kept"),
    [
        (result(), Verdict.PASS, 0),
        (result(examined=0), Verdict.SKIPPED, 0),
        (result(THERE), Verdict.PASS, 0),
        (result(HERE, THERE), Verdict.FAIL, 1),
        (result(fail("", "the fabric is unbalanced")), Verdict.PASS, 0),
        (result(error("", "it broke off")), Verdict.ERROR, 1),
        (result(skip("", "not read"), examined=0), Verdict.SKIPPED, 1),
        (result(skip("", "not read")), Verdict.PASS, 1),
        (result(THERE, left_out=3), Verdict.WARN, 0),
    ],
)
def test_a_result_on_the_fabric_is_at_a_site_no_better_than_what_was_seen(
    whole: CheckResult, verdict: Verdict, kept: int
) -> None:
    found = whole.part({"leaf01"})
    assert (found.verdict, len(found.findings), found.left_out) == (verdict, kept, whole.left_out)


SILENCES = """\
silences:
  - {check: reached, where: "*", site: osaka, until: 2100-01-01T00:00:00Z, by: ann, why: moved}
  - {check: links.*, where: "*", site: tokyo, until: 2100-01-01T00:00:00Z, by: ann, why: moved}
  - {check: "*", where: gpu01, site: berlin, until: 2100-01-01T00:00:00Z, by: ann, why: moved}
"""


def test_a_silence_for_a_site_is_about_its_devices_alone(project: Project, where: str) -> None:
    (project.folder / "silences.yaml").write_text(SILENCES, encoding="utf-8")
    sites = placed(project)
    found = at(snapshot(project.fabric), 0, "leaf01", "leaf03", "gpu01")
    judged = check(project, where, found, sites)
    missed = {name for name, _ in judged.unreached}
    assert missed == {"leaf01", "leaf03", "gpu01"}
    excused = {name for name, _ in judged.excused}
    assert excused == missed & sites["osaka"]
    assert 0 < len(excused) < 3
    links = [one for one in judged.findings if one.check.startswith("links.") and one.verdict in KINDS]
    assert {one.device for one in links} == {"spine01", "spine02"} <= sites["tokyo"]
    assert all(one.silenced is not None for one in links)
    unknown = check(project, where, replace(found, taken_s=found.taken_s + 900), {})
    assert (unknown.excused, unknown.silenced) == ((), ())
    alone = check(replace(project, site="osaka"), where, replace(found, taken_s=found.taken_s + 1800), {})
    assert ({name for name, _ in alone.excused}, alone.silenced) == (missed, ())


EVERYWHERE = """\
silences:
  - {check: links.up, where: ["*", fabric], site: osaka, until: 2100-01-01T00:00:00Z, by: ann, why: moved}
"""


@pytest.mark.parametrize(
    ("site", "sites", "covered"),
    [
        ("osaka", {}, {"leaf01", "leaf03"}),
        ("", {"osaka": {"leaf03"}, "tokyo": {"leaf01"}}, {"leaf03"}),
        ("tokyo", {}, set()),
        ("", {}, set()),
    ],
)
def test_a_silence_for_a_site_leaves_findings_on_the_fabric(
    project: Project, site: str, sites: Mapping[str, Collection[str]], covered: set[str]
) -> None:
    """Even where the fabric is at no other site."""
    (project.folder / "silences.yaml").write_text(EVERYWHERE, encoding="utf-8")
    entries = silencing(replace(project, site=site), Past(), project.checks(), sites).silences
    findings = [fail("", "it is wrong", device=name) for name in ("leaf01", "leaf03", "")]
    marked = silenced(Judgement((runs.result(FABRIC, *findings),), ()), entries, BEGAN_S, {"links.up": "link"})
    assert {one.device for one in marked.silenced} == covered
