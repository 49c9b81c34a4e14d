"""A check that never ends neither blocks the verdicts of others nor fills memory."""

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from netkit.facts import Facts
from netkit.judge import PASSED, Check, CheckContext, DeviceContext, Finding, Verdict, device_check, fail, warn
from netkit.judge import run as judging
from netkit.judge.run import CheckDeadline
from netkit.project.deadline import NEVER, Alarm, Deadline
from netkit.project.judging import judged_of
from tests.judge.scenes import fabric, observation, scene

WHY = "not judged before the deadline of 1m"
SCENE = scene(fabric(), *(observation(name, Facts()) for name in ("gpu01", "gpu02")))


def named(name: str, body: Callable[[], Iterable[Finding]]) -> Check:
    def function(scene: CheckContext, seen: DeviceContext) -> Iterable[Finding]:
        """Judge a host."""
        del scene, seen
        return body()

    function.__name__ = name
    return device_check(layer="host", on="host")(function)


def _hangs() -> Iterator[Finding]:
    yield fail("eth0", "lost")
    while True:
        time.sleep(30)


def _catches_all() -> Iterator[Finding]:
    try:
        time.sleep(30)
    except BaseException:
        time.sleep(30)
    yield PASSED


def _goes_on() -> Iterator[Finding]:
    while True:
        yield warn("eth0", "odd")


def _well() -> Iterator[Finding]:
    yield PASSED


def reported(checks: list[Check], limit: CheckDeadline | None = None) -> dict[str, list[tuple[Verdict, str]]]:
    found = judging.run(SCENE, checks, limit).results
    return {one.id: [(finding.verdict, finding.text) for finding in one.findings] for one in found}


def test_a_check_that_yields_without_end_is_broken_and_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "MOST_OF_DEVICE", 3000)
    result = judging.run(SCENE, [named("goes_on", _goes_on)]).results[0]
    head = result.findings[0]
    assert head.text == "the check failed: it has yielded more than 3,000 findings, and never ends"
    assert (result.verdict, head.verdict, result.examined) == (Verdict.ERROR, Verdict.ERROR, 3001)
    assert (len(result.findings), result.left_out) == (500, 2501)


def test_of_many_findings_the_worst_are_kept_in_order() -> None:
    def many() -> Iterator[Finding]:
        yield from (fail(str(number), "x") if number % 10 == 0 else warn(str(number), "x") for number in range(4000))

    result = judging.run(SCENE, [named("many", many)]).results[0]
    expected = [*range(0, 4000, 10), *(number for number in range(1, 112) if number % 10)]
    assert [int(one.place) for one in result.findings] == expected[:500]
    assert (result.left_out, result.examined) == (3500, 4000)


@pytest.mark.parametrize(("body", "before"), [(_hangs, [(Verdict.FAIL, "lost")]), (_catches_all, [])])
def test_checks_still_running_at_the_deadline_are_cancelled_and_the_rest_skipped(
    body: Callable[[], Iterable[Finding]], before: list[Any]
) -> None:
    handler = signal.getsignal(signal.SIGALRM)
    found = reported(
        [named("well", _well), named("bad", body), named("late", _well)], Alarm(time.monotonic() + 0.3, WHY)
    )
    (first, *rest) = found["bad[gpu01]"]
    assert first[0] is Verdict.ERROR
    assert first[1].startswith("the check failed: it was still running at the deadline")
    assert rest == before
    late = [(Verdict.SKIPPED, WHY)]
    assert found["bad[gpu02]"] == found["late[gpu01]"] == found["late[gpu02]"] == late
    assert found["well[gpu01]"] == []
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == (handler, (0.0, 0.0))


def test_a_run_whose_deadline_passes_between_two_checks_is_not_a_pass() -> None:
    built = fabric()
    reached = scene(built, *(observation(name, Facts()) for name in built.names))
    judged = judged_of(reached, [named("well", _well), named("late", _well)], Alarm(time.monotonic(), WHY))
    verdicts = [result.verdict for result in judged.judgement.results]
    assert verdicts == [Verdict.ERROR, Verdict.SKIPPED, Verdict.SKIPPED, Verdict.SKIPPED]
    assert judged.judgement.findings[0].text == WHY
    assert (judged.judgement.count(Verdict.ERROR), judged.exit_code) == (1, 1)


def test_judging_has_a_quarter_of_the_time_however_long_collecting_took() -> None:
    assert not Deadline("1s").judging().is_over
    assert Deadline("10m").judging().why == "not judged before the deadline of 10m"
    assert not NEVER.judging().is_over


def test_ctrl_c_reports_which_check_was_running(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> Iterator[Finding]:
        yield PASSED
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged_of(SCENE, [named("well", _well), named("hangs", interrupted)])
    assert capsys.readouterr().err == "interrupted in hangs[gpu01]\n"
    assert sys.stdout is not sys.stderr
