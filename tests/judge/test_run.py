import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from netkit.facts import Facts
from netkit.facts.device import System
from netkit.judge import (
    PASSED,
    Check,
    CheckContext,
    DeviceContext,
    Finding,
    Verdict,
    device_check,
    fabric_check,
    fail,
    skip,
    warn,
)
from netkit.judge.run import CheckResult, run
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()


@device_check(layer="link", needs=["system"], on="switch")
def known(scene: CheckContext, seen: DeviceContext) -> Iterator[Finding]:
    """A switch tells what it is."""
    del scene, seen
    yield PASSED


@device_check(layer="link", on="host")
def broken(scene: CheckContext, seen: DeviceContext) -> Iterator[Finding]:
    """It breaks off."""
    del scene
    yield fail("", "first")
    raise ValueError(seen.name)


@fabric_check(layer="routing")
def whole(scene: CheckContext) -> Iterator[Finding]:
    """The fabric as a whole."""
    del scene
    yield warn("swp1s0", "odd", device="leaf01", seen=0.1)
    yield PASSED
    yield skip("", "who knows")


@device_check(layer="link", needs=["system"], window=True)
def counting(scene: CheckContext, seen: DeviceContext) -> Iterator[Finding]:
    """It needs a window."""
    del scene, seen
    yield PASSED


@device_check(layer="link", needs=["system"])
def silent(scene: CheckContext, seen: DeviceContext) -> Iterator[Finding]:
    """It looks at nothing."""
    del scene, seen
    yield from ()


def last_line(function: Any) -> int:
    """The number of the last line of a function."""
    lines, first = inspect.getsourcelines(function)
    return first + len(lines) - 1


def results(check: Check) -> dict[str, CheckResult]:
    seen = observation("leaf01", Facts(system=System("leaf01"))), observation("leaf02"), observation("gpu01", Facts())
    return {result.device: result for result in run(scene(BUILT, *seen), [check]).results}


def test_unreached_devices_and_unreported_facts_are_skipped_and_never_pass() -> None:
    found = results(known)
    assert sorted(found) == ["leaf01", "leaf02", "spine01", "spine02"]
    assert (found["leaf01"].verdict, found["leaf01"].examined) == (Verdict.PASS, 1)
    assert [one.text for one in found["leaf02"].findings] == ["no system: not requested"]
    assert [one.text for one in found["spine01"].findings] == ["not reached: connection refused"]
    assert {found[name].verdict for name in ("leaf02", "spine01", "spine02")} == {Verdict.SKIPPED}


def test_a_check_that_raises_is_an_error_beside_its_earlier_findings() -> None:
    assert [(one.verdict, one.text) for one in results(broken)["gpu01"].findings] == [
        (Verdict.ERROR, f"the check failed: ValueError: gpu01, line {last_line(broken.of_device)}"),
        (Verdict.FAIL, "first"),
    ]
    assert results(broken)["gpu02"].findings[0].text == "not reached: connection refused"


def _exits(*_: object) -> Iterator[Finding]:
    yield PASSED
    raise SystemExit(0)


def _raises(*_: object) -> Iterator[Finding]:
    raise ValueError("at once")


@pytest.mark.parametrize(
    ("body", "why", "examined"),
    [
        (_exits, f"SystemExit: 0, line {last_line(_exits)}", 2),
        (_raises, f"ValueError: at once, line {last_line(_raises)}", 1),
        (lambda one: one, "TypeError: <lambda>() takes 1 positional argument but 2 were given", 1),
        (lambda *_: None, "TypeError: 'NoneType' object is not iterable", 1),
        (lambda *_: [PASSED, None], "TypeError: it yields NoneType, not a Finding", 2),
        (lambda *_: "fail", "TypeError: it yields str, not a Finding", 1),
        (lambda *_: [fail("swp1", 3)], "TypeError: the text of a finding is 3, not a text", 1),  # type: ignore[arg-type]
        (lambda *_: [Finding("fail")], "TypeError: 'fail' is not a verdict", 1),  # type: ignore[arg-type]
    ],
)
def test_a_misbehaving_check_breaks_only_itself(body: Callable[..., Any], why: str, examined: int) -> None:
    body.__doc__ = "It is broken."
    found = results(device_check(layer="link", on="host")(body))["gpu01"]
    assert [(one.verdict, one.text) for one in found.findings] == [(Verdict.ERROR, f"the check failed: {why}")]
    assert found.examined == examined


def test_a_finding_of_the_fabric_names_its_device_and_cable() -> None:
    (found,) = results(whole).values()
    assert (found.device, found.verdict, found.examined) == ("fabric", Verdict.WARN, 2)
    port = BUILT.switch("leaf01").ports[0]
    odd = found.findings[0]
    assert (odd.check, odd.device, odd.place, odd.evidence) == ("whole", "leaf01", "swp1s0", (("seen", "0.1"),))
    assert set(odd.cause.split(" — ")) == {f"leaf01:{port.name}", f"{port.peer}:{port.peer_port}"}


def test_without_a_window_counters_are_not_judged() -> None:
    found = results(counting)["leaf01"]
    assert found.verdict is Verdict.SKIPPED
    assert found.findings[0].text == "only one sample of its counters: give a window"


def test_a_check_that_judged_nothing_did_not_pass() -> None:
    assert (results(silent)["leaf01"].verdict, results(silent)["leaf01"].examined) == (Verdict.SKIPPED, 0)


def test_ids_are_unique() -> None:
    found = run(scene(BUILT), [known, broken, whole]).results
    assert len({result.id for result in found}) == len(found)


@device_check(layer="link", needs=["counters"], window=True)
def rising(scene: CheckContext, seen: DeviceContext) -> Iterator[Finding]:
    """It says its own window once, and skips once."""
    del scene, seen
    yield warn("swp1s0", "rises")
    yield warn("swp1s1", "rises", window="3 s", state="reset")
    yield skip("swp33s0", "not known: missing")


def test_findings_from_counters_state_the_window_and_the_counter_state() -> None:
    seen = observation("leaf01", rx_errors={"swp1s0": (1, 2)})
    (result,) = (one for one in run(scene(BUILT, seen), [rising]).results if one.device == "leaf01")
    assert {one.place: one.evidence for one in result.findings} == {
        "swp1s0": (("window", "10.0 s"), ("state", "delta")),
        "swp1s1": (("window", "3 s"), ("state", "reset")),
        "swp33s0": (),
    }
