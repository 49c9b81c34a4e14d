"""Grouping findings into causes and symptoms, and the order of repair, on hand-made findings."""

from collections.abc import Sequence

from netkit.judge import Finding, Verdict, fail, skip, warn
from netkit.judge.cause import CauseGroup, cause_groups, linked
from netkit.judge.check import Check, Layer
from tests.judge.scenes import fabric, scene

BUILT = fabric()
SCENE = scene(BUILT)
UP = next(port for port in BUILT.switch("leaf01").ports if port.peer == "spine01")
CABLE = SCENE.cable("leaf01", UP.name)


def check(name: str, layer: Layer, follows: Sequence[str] | None = None) -> Check:
    return Check(
        name, name, layer, (), has_window=False, on="device", follows=None if follows is None else tuple(follows)
    )


CHECKS = (
    check("optics.light", "physical", []),
    check("links.up", "link", ["optics"]),
    check("bgp.sessions", "routing", ["links.up"]),
    check("routes.paths", "routing", ["bgp.sessions"]),
    check("routes.lookups", "host", []),
    check("counters.stuck", "reach", []),
    check("pfc.rate", "congestion", []),
    check("pfc.origin", "congestion", []),
    check("probe.loss", "application", ["links", "bgp", "routes"]),
    check("own.words", "application"),
)
LAYERS = {one.name: one.layer for one in CHECKS}


def said(finding: Finding, name: str, device: str) -> Finding:
    """A finding as a run of its check leaves it."""
    place = finding.place.partition("/")[0]
    return finding._replace(check=name, device=device, cause=finding.cause or SCENE.cable(device, place))


def found(*findings: Finding) -> tuple[CauseGroup, ...]:
    return cause_groups(linked(SCENE, CHECKS, findings), LAYERS)


def heads(*findings: Finding) -> list[tuple[str, int]]:
    """The check of each cause, and its number of symptoms."""
    return [(one.head.check, len(one.symptoms)) for one in found(*findings)]


def test_a_chain_of_symptoms_has_one_cause() -> None:
    light = said(warn(UP.peer_port, "dim"), "optics.light", "spine01")
    down = said(fail(UP.name, "down"), "links.up", "leaf01")
    session = said(fail(UP.name, "lost"), "bgp.sessions", "leaf01")
    (one,) = found(session, down, light)
    assert (one.head.text, {symptom.text for symptom in one.symptoms}) == ("dim", {"down", "lost"})
    assert one.verdict == Verdict.FAIL
    assert {one.head.cause, *(symptom.cause for symptom in one.symptoms)} == {CABLE}


def test_a_finding_unexplained_on_its_cable_is_a_cause_of_its_own() -> None:
    dim = said(fail(UP.name, "dim"), "optics.light", "leaf01")
    origin = said(fail(f"{UP.name}/3", "causes pauses"), "pfc.origin", "leaf01")
    assert heads(origin, dim) == [("optics.light", 0), ("pfc.origin", 0)]


def test_two_origins_are_two_causes_although_each_affects_the_other() -> None:
    one = said(fail("rail0/3", "origin", explains=["to leaf", "to gpu02"]), "pfc.origin", "gpu01")
    other = said(fail("rail0/3", "origin too", explains=["to gpu01", "to gpu02"]), "pfc.origin", "gpu02")
    victims = [said(warn("rail1/3", f"held {way}", cause=way), "pfc.rate", "gpu01") for way in ("to gpu01", "to leaf")]
    assert sorted((one.head.text, len(one.symptoms)) for one in found(*victims, one, other)) == [
        ("origin", 1),
        ("origin too", 1),
    ]


def test_one_direction_of_a_cable_does_not_explain_the_other() -> None:
    light = said(fail(UP.name, "dim", cause=SCENE.way_in("leaf01", UP.name)), "optics.light", "leaf01")
    for way, number in ((SCENE.way_in("leaf01", UP.name), 1), (SCENE.way("leaf01", UP.name), 2)):
        errors = said(fail(UP.name, "down", cause=way), "links.up", "leaf01")
        assert len(found(light, errors)) == number


def test_a_remote_symptom_follows_from_the_places_it_names() -> None:
    session = said(fail(UP.name, "lost"), "bgp.sessions", "leaf01")
    near = said(fail("", "narrow", cause="paths of leaf02", touches=[CABLE]), "routes.paths", "leaf02")
    far = said(fail("", "narrow", cause="paths of leaf02", touches=["elsewhere"]), "routes.paths", "leaf02")
    probe = said(fail("rail0", "lost", touches=["leaf01"]), "probe.loss", "gpu02")
    assert heads(probe, near, session) == [("bgp.sessions", 2)]
    assert heads(far, session) == [("bgp.sessions", 0), ("routes.paths", 0)]


def test_a_check_without_named_causes_follows_from_any_lower_layer_on_its_cable() -> None:
    mine = said(fail(UP.name, "mine"), "own.words", "leaf01")
    assert heads(mine, said(warn(UP.name, "held up"), "pfc.rate", "leaf01")) == [("pfc.rate", 1)]
    assert heads(mine, said(fail("", "of the device"), "routes.paths", "leaf01")) == [
        ("routes.paths", 0),
        ("own.words", 0),
    ]


def test_causes_are_in_order_of_repair_without_skipped_ones() -> None:
    findings = [
        said(skip("", "?"), "bgp.sessions", "spine02"),
        said(fail("rail1", "no answer"), "probe.loss", "gpu01"),
        said(warn("", "dim"), "optics.light", "leaf02"),
        said(fail("rail0", "no route", cause="route"), "routes.lookups", "gpu02"),
        said(fail(UP.name, "lost"), "bgp.sessions", "leaf01"),
    ]
    assert heads(*findings) == [("bgp.sessions", 0), ("routes.lookups", 0), ("probe.loss", 0), ("optics.light", 0)]


def test_equal_findings_at_many_places_and_settings_of_one_device_are_one_cause() -> None:
    names = [f"p{number}" for number in range(5)]
    missing = [said(fail(name, "no watchdog"), "pfc.rate", f"leaf0{name}") for name in names]
    (one,) = found(*missing)
    assert (one.places, len(one.symptoms)) == (5, 4)
    assert len(found(*missing[:3])) == 3
    pair = [
        said(warn(name, "began anew", cause=f"counters of {name}"), "counters.stuck", "leaf01") for name in names[:2]
    ]
    assert [one.places for one in found(*pair)] == [2]
    assert len(found(*(said(fail(name, "origin", cause=name), "pfc.origin", "leaf01") for name in names[:2]))) == 2
