"""Shared by the commands that change devices: show, ask, run, and report the outcome."""

import sys
from collections.abc import Callable
from dataclasses import replace

from netkit import deploy
from netkit.cli.requests import RolloutRequest
from netkit.deploy import DeviceResult, Journal, Options, Outcome
from netkit.deploy.model import EventHandler
from netkit.design import Fabric
from netkit.errors import NetkitError, Problem, UsageError
from netkit.plan import Plan
from netkit.project.deploying import Deploying
from netkit.report.history_text import outcome_text
from netkit.report.plan_text import STAGES, text
from netkit.report.plan_view import counted, listed
from netkit.terminal.display import display
from netkit.terminal.interrupt import Interrupt
from netkit.terminal.output import check_format, is_agreed, say

DECLINED = 1
UNREACHED = 4
FEW_LINES = 10


def options_of(request: RolloutRequest) -> Options:
    """Validate the options of a run."""
    check_format(request.output)
    if request.on_failure not in ("stop", "rollback"):
        raise UsageError(Problem(f"--on-failure {request.on_failure!r} is unknown", "use stop or rollback"))
    if request.on_disconnect not in ("stop", "continue"):
        raise UsageError(Problem(f"--on-disconnect {request.on_disconnect!r} is unknown", "use stop or continue"))
    if request.skip_hook is not None and not request.skip_hook.strip():
        raise UsageError(Problem("--skip-hook is empty", "give the reason: it is kept with the run"))
    return Options(
        is_disruptive_allowed=request.disruptive,
        is_busy_allowed=request.busy,
        is_taking_over=request.take_over,
        has_canary=request.has_canary,
        has_drain=request.has_drain,
        is_together=request.together,
        parallel=request.parallel,
        max_fail=request.max_fail,
        revert_s=request.revert_s,
        watch_s=request.watch_s,
        on_failure="rollback" if request.on_failure == "rollback" else "stop",
    )


def show(request: RolloutRequest, fabric: Fabric, plan: Plan, options: Options) -> None:
    """Print the plan and its waves: in short with --yes, on standard error with JSON output."""
    stream = sys.stdout if request.output == "text" else sys.stderr
    part = _within(plan, options.limit)
    say(stream, text(part, most_lines=FEW_LINES) if request.yes else text(part))
    waves = deploy.waves(plan, fabric, options)
    lines = [
        f"wave {wave.number}{', canary' * wave.is_canary}: {listed(wave.devices)}"
        f"{wave.stage and ', '}{STAGES[wave.stage]}\n"
        for wave in waves
    ]
    say(stream, "".join(["\n", *lines] if lines else []))


def _within(plan: Plan, limit: tuple[str, ...] | None) -> Plan:
    """The part of a plan that a limit selects, which is what the user confirms."""
    if limit is None:
        return plan
    groups = (tuple(name for name in names if name in limit) for names in plan.groups)
    return replace(
        plan,
        devices=tuple(device for device in plan.devices if device.name in limit),
        unreachable=tuple(missed for missed in plan.unreachable if missed.name in limit),
        groups=tuple(names for names in groups if names),
    )


def agreed(request: RolloutRequest, plan: Plan, options: Options, verb: str) -> bool:
    """Ask the user to confirm a plan."""
    names = [device.name for device in plan.changed if options.limit is None or device.name in options.limit]
    if is_agreed(f"{verb} {counted(len(names), 'device')} of {plan.fabric}?", yes=request.yes):
        return True
    say(sys.stderr, "nothing was changed\n")
    return False


def changing(plan: Plan, options: Options) -> int:
    """Count the changes of devices: two for a device that changes in two stages."""
    names = {device.name for device in plan.changed if options.limit is None or device.name in options.limit}
    return sum(name in names for step in plan.steps for name in step.devices) or len(names)


def announce_wait(journal: Journal) -> None:
    """Print which devices an interrupted run left half done, and how long one that does not answer is waited for."""
    if left := deploy.settling_s(journal):
        what = f"{listed(sorted(left))}: finding out what {'it runs' if len(left) == 1 else 'they run'}"
        say(sys.stderr, f"{what}; a device that does not answer is given up after {max(left.values()):.0f} s\n")


def watched(
    request: RolloutRequest,
    deploying: Deploying,
    journal: Journal,
    total: int,
    work: Callable[[EventHandler, Interrupt], Outcome],
    *,
    can_roll_back: bool = False,
) -> int:
    """Run the work with a live display, and report the outcome; a failed run may be rolled back automatically."""
    go_on = request.again(f"deploy --resume {journal.run}")
    with deploying.locked(journal):
        say(sys.stderr, f"run {journal.run}\n")
        with Interrupt(go_on, request.revert_s) as is_stopping, display(total, is_stopping) as on_event:
            outcome = work(on_event, is_stopping)
        go_on = go_on if journal.outcome() is None else ""
        if can_roll_back and not go_on and journal.is_to_be_undone():
            outcome, go_on = _taken_back(request, deploying, journal, outcome)
    report_outcome(request, outcome)
    is_changed = any(device.result is DeviceResult.DONE for device in outcome.devices)
    can_go_back = outcome.rollback is None and (is_changed or (can_roll_back and outcome.has_changes))
    if go_on:
        say(sys.stderr, f"to continue: {go_on}\n")
        can_go_back = can_roll_back
    if can_go_back:
        say(sys.stderr, f"to roll back: {request.again(f'rollback {journal.run}')}\n")
    return outcome.exit_code


def _taken_back(
    request: RolloutRequest, deploying: Deploying, failed: Journal, outcome: Outcome
) -> tuple[Outcome, str]:
    """Roll back a failed run; return the outcome, and the command that continues an unfinished rollback."""
    journal = Journal.new(failed.folder.parent)
    go_on = request.again(f"deploy --resume {journal.run}")
    say(sys.stderr, f"{outcome.stopped}: run {journal.run} rolls back what was done\n")
    try:
        with Interrupt(go_on, request.revert_s) as is_stopping:
            back, options = deploying.plan_rollback(failed, deploy.rollback_options(failed), "")
            with display(changing(back[0], options), is_stopping) as on_event:
                found = deploying.undo(failed, options, journal, back, None, on_event, is_stopping)
    except NetkitError as error:
        for problem in error.problems:
            say(sys.stderr, f"not rolled back: {problem}\n")
        return outcome, ""
    return replace(outcome, rollback=found), "" if journal.outcome() is not None else go_on


def report_outcome(request: RolloutRequest, outcome: Outcome) -> int:
    """Print the outcome, and return the exit code."""
    texts = [outcome_text(outcome)]
    if outcome.rollback is not None:
        texts += [f"run {outcome.rollback.run} rolled it back:\n", outcome_text(outcome.rollback)]
    say(sys.stdout, "".join(texts) if request.output == "text" else deploy.model.write(outcome))
    return outcome.exit_code
