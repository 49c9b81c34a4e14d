from netkit.judge import Finding, Verdict, fail, skip, warn
from netkit.judge.check import Layer
from netkit.judge.group import Layers, troubles

LAYERS: Layers = {
    "optics.light": "physical",
    "bgp.sessions": "routing",
    "pfc.rate": "congestion",
    "pfc.origin": "congestion",
}


def said(finding: Finding, check: str, device: str, cause: str = "") -> Finding:
    return finding._replace(check=check, device=device, cause=cause)


def test_one_cable_is_one_cause_and_the_lowest_layer_names_it() -> None:
    session = said(fail("p1", "down"), "bgp.sessions", "leaf01", "a — b")
    light = said(warn("p9", "dim"), "optics.light", "spine01", "a — b")
    (found,) = troubles([session, light], LAYERS)
    assert (found.head, found.symptoms, found.verdict) == (light, (session,), Verdict.FAIL)


def test_what_an_origin_explains_hangs_below_it() -> None:
    victims = [said(warn(f"p{index}", "paused"), "pfc.rate", "leaf01", f"cable {index}") for index in range(3)]
    origin = said(fail("p7", "origin", explains=["cable 0", "cable 2"]), "pfc.origin", "gpu01", "cable 7")
    first, second = troubles([*victims, origin], LAYERS)
    assert (first.head, set(first.symptoms)) == (origin, {victims[0], victims[2]})
    assert (second.head, second.symptoms) == (victims[1], ())


def test_causes_that_explain_each_other_are_one() -> None:
    one = said(fail("p1", "one", explains=["b"]), "pfc.origin", "gpu01", "a")
    other = said(fail("p2", "other", explains=["a"]), "pfc.origin", "gpu02", "b")
    assert len(troubles([one, other], LAYERS)) == 1


def test_the_worst_comes_first_and_what_was_skipped_does_not_come() -> None:
    found = [
        said(skip("", "?"), "bgp.sessions", "a"),
        said(warn("", "odd"), "bgp.sessions", "b"),
        said(fail("", "bad"), "bgp.sessions", "c"),
    ]
    assert [trouble.head.device for trouble in troubles(found, LAYERS)] == ["c", "b"]


def test_the_same_at_many_places_is_one_cause() -> None:
    missing = [said(fail(f"p{port}", "no watchdog"), "pfc.rate", f"leaf{port}", f"cable {port}") for port in range(9)]
    session = said(fail("p3", "down"), "bgp.sessions", "leaf3", "cable 3")
    first, second = troubles([*missing, session], LAYERS)
    assert (first.head, first.places, len(first.symptoms)) == (missing[0], 8, 7)
    assert (second.head, second.symptoms) == (session, (missing[3],))


def test_findings_without_a_cable_stand_alone() -> None:
    layer: Layer = "host"
    found = [said(fail("", "bad"), "host.sysctl", name) for name in ("gpu01", "gpu02")]
    assert [trouble.symptoms for trouble in troubles(found, {"host.sysctl": layer})] == [(), ()]


def test_a_dim_optic_is_no_symptom_of_congestion_elsewhere() -> None:
    origin = said(fail("rail0/3", "causes pauses", explains=["b"]), "pfc.origin", "gpu01", "a")
    victim = said(fail("swp1/3", "is held up"), "pfc.rate", "leaf01", "b")
    dim = said(fail("swp1", "receives too little light"), "optics.light", "leaf01", "b")
    first, second = troubles([origin, victim, dim], LAYERS)
    assert (first.head, first.symptoms) == (origin, (victim,))
    assert (second.head, second.symptoms) == (dim, ())
