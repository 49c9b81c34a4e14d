from netkit.facts import Facts
from netkit.facts.device import System
from netkit.facts.qos import Watchdog
from tests.checks.judging import results, said
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
ON = {f"{port.name}/3": Watchdog(is_on=True) for port in BUILT.switch("leaf01").ports}


def test_every_port_has_a_watchdog() -> None:
    assert said(scene(BUILT, observation("leaf01", Facts(watchdogs=ON))), "watchdog") == []
    off = {**ON, "swp1s0/3": Watchdog(is_on=False)}
    assert said(scene(BUILT, observation("leaf01", Facts(watchdogs=off))), "watchdog.enabled") == [
        ("fail", "leaf01", "swp1s0/3", "no PFC watchdog")
    ]


def test_storms_and_trips_name_the_pausing_neighbor() -> None:
    stormed = {**ON, "swp1s0/3": Watchdog(is_on=True, is_stormed=True)}
    assert said(scene(BUILT, observation("leaf01", Facts(watchdogs=stormed))), "watchdog.storms") == [
        ("fail", "leaf01", "swp1s0/3", "a pause storm on priority 3 from gpu01:rail0 has not ended")
    ]
    seen = observation("leaf01", watchdog_detected={"swp1s0/3": (1, 3)}, watchdog_drops={"swp1s0/3": (0, 9)})
    assert said(scene(BUILT, seen), "watchdog.trips") == [
        ("fail", "leaf01", "swp1s0/3", "tripped 2 times in 10 s, for gpu01:rail0")
    ]


def test_unreported_drops_are_not_shown_as_zero() -> None:
    seen = observation("leaf01", watchdog_detected={"swp1s0/3": (1, 3)})
    (one,) = [one for one in results(scene(BUILT, seen), "watchdog.trips")["leaf01"].findings if one.remedy]
    assert dict(one.evidence)["dropped"] == "not reported"


def test_a_release_is_the_intended_one() -> None:
    for version, is_right in (("5.13.0", True), ("5.13.0.0001", True), ("5.13.01", False), ("5.12.1", False)):
        found = said(scene(BUILT, observation("leaf01", Facts(system=System("leaf01", version)))), "inventory.version")
        assert (found == []) is is_right, version
