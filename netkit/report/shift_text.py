"""What a change of the repository would change, for a terminal."""

from collections.abc import Iterator

from netkit.plan.shift import Shift, approval
from netkit.report.plan_text import text as plan_text
from netkit.report.plan_view import shown
from netkit.report.shift_view import NOTHING, Aside, headline, newcomers, sorts, where


def text(shift: Shift, aside: Aside = NOTHING) -> str:
    """Return the change as text: the sentence, what moved, what was tried, then the plan."""
    head = "".join(f"{shown(line)}\n" for line in _lines(shift, aside)) + aside.text
    _, _, plan = plan_text(shift.plan).partition("\n")  # its headline counts the devices that are in it only
    return head + plan


def _lines(shift: Shift, aside: Aside) -> Iterator[str]:
    yield headline(shift)
    for what, devices in sorts(shift):
        yield from (f"  {what}: {line}" for line in newcomers(devices))
    for one in shift.moved:
        yield f"  {one.quantity}: {one.running or 'none'} → {one.intended or 'none'}  ({where(one)})"
    yield from (f"  warning: {warning}" for warning in shift.warnings)
    if shift.plan.changed and not shift.added:
        how = f"{aside.doubt}; accept that and approve it" if aside.doubt else "approve it"
        yield f"  {how} with: netkit deploy --approved {approval(shift.plan)}"
