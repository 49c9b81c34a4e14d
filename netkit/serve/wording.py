"""Runs, rounds and times in words."""

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
    0: "all is well",
    1: "something fails",
    3: "it could not run",
    4: "a device was not reached",
    5: "another check kept its results in this store",
    70: "a defect of netkit",
}
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


def state_of(run: CheckRun) -> HealthState:
    """Return how a fabric stood; what nobody judged, or only in part, is never well."""
    counts = run.counts
    if not counts.examined:
        return HealthState.UNKNOWN
    told = (
        (counts.errors, HealthState.ERROR),
        (counts.failures, HealthState.FAIL),
        (counts.warnings, HealthState.WARN),
    )
    bad = next((state for number, state in told if number), None)
    return bad or (HealthState.UNREACHED if counts.unreached else HealthState.PASS)


def verdict_of(run: CheckRun) -> str:
    """Return how a run came out."""
    counts, state = run.counts, state_of(run)
    if state in STATES:
        return STATES[state] + (f" but for {counts.silenced} silenced" if counts.silenced else "")
    told = (
        (counts.errors, "error"),
        (counts.failures, "fail"),
        (counts.warnings, "warn"),
        (counts.silenced, "silenced"),
    )
    return ", ".join(f"{number} {word}" for number, word in told if number)


def reached_of(run: CheckRun) -> str:
    """Return how many devices were reached."""
    return f"{run.devices - run.counts.unreached} of {counted(run.devices, 'device')}"


def end_of(one: ScheduledRound) -> str:
    """Return how a round ended."""
    if one.is_running:
        return "running"
    if one.exit_code is None:
        return one.text or "ended from outside"
    if one.exit_code < 0:
        return f"ended by signal {-one.exit_code}"
    return ENDS.get(one.exit_code, f"exit code {one.exit_code}")


def moment(at_s: float) -> str:
    """Return a time as people read it everywhere alike."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))


def stamp(at_s: float) -> str:
    """Return a time as programs read it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def length(span_s: float) -> str:
    """Return how long something takes."""
    for unit_s, letter in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if span_s >= unit_s and span_s % unit_s == 0:
            return f"{span_s / unit_s:.0f} {letter}"
    return f"{span_s:.0f} s" if span_s >= 10 else f"{span_s:.1f} s"


def ago(at_s: float, now_s: float) -> str:
    """Return how long ago something was."""
    return f"{rough(now_s - at_s)} ago" if now_s >= at_s else f"in {rough(at_s - now_s)}"


def rough(span_s: float) -> str:
    """Return a length of time in its largest unit."""
    for unit_s, letter in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if span_s >= 2 * unit_s:
            return f"{span_s / unit_s:.0f} {letter}"
    return f"{max(span_s, 0):.0f} s"
