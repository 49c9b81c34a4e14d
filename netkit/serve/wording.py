"""Runs, rounds and times as text."""

import time

from netkit.report.page.view import HealthState
from netkit.report.plan_view import counted
from netkit.serve.diary import ScheduledRound
from netkit.store import CheckRun

STATES = {
    HealthState.PASS: "clean",
    HealthState.UNREACHED: "not known to be clean",
    HealthState.UNKNOWN: "nothing could be judged",
}
ENDS = {
    0: "done, nothing failed",
    1: "something failed",
    3: "it could not run",
    4: "a device was not reached",
    5: "another round of the fabric was running",
    70: "a defect of netkit",
}
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


def state_of(run: CheckRun) -> HealthState:
    """Return the state of the fabric in a run; never healthy if nothing, or only a part, was judged."""
    counts = run.counts
    if not counts.examined:
        return HealthState.UNKNOWN
    states = (
        (counts.errors, HealthState.ERROR),
        (counts.failures, HealthState.FAIL),
        (counts.warnings, HealthState.WARN),
    )
    bad = next((state for number, state in states if number), None)
    return bad or (HealthState.UNREACHED if counts.unreached else HealthState.PASS)


def verdict_of(run: CheckRun) -> str:
    """Describe the result of a run."""
    counts, state = run.counts, state_of(run)
    if state in STATES:
        return STATES[state] + (f" but for {counts.silenced} silenced" if counts.silenced else "")
    words = (
        (counts.errors, "error"),
        (counts.failures, "fail"),
        (counts.warnings, "warn"),
        (counts.silenced, "silenced"),
    )
    return ", ".join(f"{number} {word}" for number, word in words if number)


def reached_of(run: CheckRun) -> str:
    """Describe how many devices were reached."""
    return f"{run.devices - run.counts.unreached} of {counted(run.devices, 'device')}"


def end_of(one: ScheduledRound) -> str:
    """Describe how a round ended."""
    if one.is_running:
        return "running"
    if one.exit_code is None:
        return one.text or "ended from outside"
    if one.exit_code < 0:
        return f"ended by signal {-one.exit_code}"
    return ENDS.get(one.exit_code, f"exit code {one.exit_code}")


def moment(at_s: float) -> str:
    """Format a time for people, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))


def stamp(at_s: float) -> str:
    """Format a time for programs."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def length(span_s: float) -> str:
    for unit_s, letter in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if span_s >= unit_s and span_s % unit_s == 0:
            return f"{span_s / unit_s:.0f} {letter}"
    return f"{span_s:.0f} s" if span_s >= 10 else f"{span_s:.1f} s"


def ago(at_s: float, now_s: float) -> str:
    """Format a time relative to now."""
    return f"{rough(now_s - at_s)} ago" if now_s >= at_s else f"in {rough(at_s - now_s)}"


def rough(span_s: float) -> str:
    """Format a duration in its largest unit."""
    for unit_s, letter in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if span_s >= 2 * unit_s:
            return f"{span_s / unit_s:.0f} {letter}"
    return f"{max(span_s, 0):.0f} s"
