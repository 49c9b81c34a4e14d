"""Drift: running configurations compared with the intent."""

from collections.abc import Iterator

from netkit.judge import PASSED, CheckContext, Finding, fabric_check, fail, skip

MOST_SHOWN = 3


@fabric_check(layer="qos", follows=[], reads=[])
def configuration(context: CheckContext) -> Iterator[Finding]:
    """Every device runs the configuration that the intent renders to.

    It was changed by hand, or a deploy is due. `netkit plan` shows the whole difference. `netkit deploy` restores the
    device; a change that is to stay belongs in the intent.
    """
    if context.plan is None:
        yield skip("", "running configurations were not read")
        return
    for device in context.plan.devices:
        if device.name not in context.devices:
            continue
        if device.changes:
            shown = ", ".join(" ".join(map(str, change.path)) for change in device.changes[:MOST_SHOWN])
            more = f" and {len(device.changes) - MOST_SHOWN} more" if len(device.changes) > MOST_SHOWN else ""
            yield fail("", f"does not run what is intended: {shown}{more}", "netkit plan", device=device.name)
        else:
            yield PASSED
    for missed in context.plan.unreachable:
        if missed.name in context.devices:
            yield skip("", f"its configuration was not read: {missed.reason}", device=missed.name)
