"""What a change of the repository would change, in the words it is told in, whatever the format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from netkit.design.moved import Moved
from netkit.plan.shift import Newcomer, Shift
from netkit.report.plan_view import counted, listed

PLURALS = {"leaf": "leaves", "spine": "spines", "core": "cores", "host": "hosts"}


@dataclass(frozen=True, slots=True)
class Aside:
    """What is told beside a change, because it was tried: in the words of each format."""

    text: str = ""
    verdict: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    doubt: str = ""
    """What whoever approves the change has to accept, because trying it did not show that all is well."""


NOTHING = Aside()


def headline(shift: Shift) -> str:
    """Return the change in one sentence."""
    changed, known = len(shift.plan.changed), shift.same + len(shift.plan.changed)
    parts = []
    if changed:
        verb = "changes" if changed == 1 else "change"
        parts.append(f"{changed} of {counted(known, 'device')} {verb}, highest risk {shift.plan.risk.word}")
    replaced = len([device for device in shift.added if device.was])
    if replaced:
        parts.append(f"{counted(replaced, 'device')} {'gets' if replaced == 1 else 'get'} another NOS")
    for count, word in ((len(shift.added) - replaced, "new"), (len(shift.removed), "gone")):
        if count:
            parts.append(f"{counted(count, 'device')} {'is' if count == 1 else 'are'} {word}")
    parts = parts or [f"nothing changes on {counted(known, 'device')}"]
    if shift.plan.unreachable:
        parts.append(f"{len(shift.plan.unreachable)} could not be read")
    text = "; ".join(parts)
    return f"{shift.plan.fabric} against {shift.base}: {text}"


def sorts(shift: Shift) -> Iterator[tuple[str, Sequence[Newcomer]]]:
    """Yield the devices that nothing is compared of, by why."""
    yield "new", [device for device in shift.added if not device.was]
    for was, runs in dict.fromkeys((device.was, device.platform) for device in shift.added if device.was):
        some = [device for device in shift.added if (device.was, device.platform) == (was, runs)]
        yield f"installed anew, {was} → {runs}, with all ports down and nothing compared", some
    yield "gone", shift.removed


def newcomers(devices: Sequence[Newcomer]) -> Iterator[str]:
    """Yield devices by role, counted."""
    for role in dict.fromkeys(device.role for device in devices):
        names = [device.name for device in devices if device.role == role]
        yield f"{len(names)} {role if len(names) == 1 else PLURALS[role]}: {listed(names)}"


def where(moved: Moved) -> str:
    """Return the places of a number, a long list by its ends; the numbers shown are those of the first."""
    return listed(moved.places)
