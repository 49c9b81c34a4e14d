"""The outcome of a deploy as plain text."""

from collections.abc import Iterator

from netkit.deploy.model import ConfigState, DeviceOutcome, DeviceResult, Outcome
from netkit.report.plan_view import counted, listed, shown

RUNS = {
    ConfigState.INTENDED: "runs the intended configuration",
    ConfigState.AS_BEFORE: "runs its earlier configuration",
    ConfigState.BOTH: "runs the intended configuration, and still accepts the earlier one",
    ConfigState.UNKNOWN: "its configuration is not known",
}
QUIET = frozenset({DeviceResult.DONE, DeviceResult.UNCHANGED, DeviceResult.READY, DeviceResult.EXCLUDED})


def outcome_text(outcome: Outcome) -> str:
    """Format an outcome: one line, and a line for each device that is not as intended."""
    return "\n".join(map(shown, _lines(outcome))) + "\n"


def device_text(device: DeviceOutcome) -> str:
    if device.result in QUIET:
        return f"{device.device}: {device.result}"
    prefix = f"{device.device}: "
    reasons = "; ".join(reason.removeprefix(prefix) for reason in device.reasons)
    return f"{prefix}{device.result}, {RUNS[device.state]}{': ' if reasons else ''}{reasons}"


def _lines(outcome: Outcome) -> Iterator[str]:
    counts = {result: sum(device.result is result for device in outcome.devices) for result in DeviceResult}
    parts = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
    head = f"dry run of {outcome.fabric}" if outcome.is_dry_run else outcome.fabric
    yield f"{head}: {counted(len(outcome.devices), 'device')}: {parts}"
    for device in outcome.devices:
        if device.result not in {*QUIET, DeviceResult.NOT_STARTED}:
            yield f"  {device_text(device)}"
    for note, names in _notes(outcome).items():
        yield f"  {listed(names)}: {note}"
    waiting = [device for device in outcome.devices if device.result is DeviceResult.NOT_STARTED]
    if both := [device.device for device in outcome.devices if device.state is ConfigState.BOTH]:
        yield f"  the earlier configuration is still accepted and announced, beside the intended one: {listed(both)}"
    if before := [device.device for device in waiting if device.state is not ConfigState.BOTH]:
        yield f"  not started, running their earlier configuration: {listed(before)}"
    if outcome.stopped:
        yield f"stopped: {outcome.stopped}"


def _notes(outcome: Outcome) -> dict[str, list[str]]:
    """Return notes on devices that are as intended, with their names."""
    found: dict[str, list[str]] = {}
    for device in outcome.devices:
        for note in device.reasons if device.result is DeviceResult.DONE else ():
            found.setdefault(note.removeprefix(f"{device.device}: "), []).append(device.device)
    return found
