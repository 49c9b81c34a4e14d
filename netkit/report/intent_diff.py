"""The effect of a change of the repository: as text, as a comment for its pull request, and as JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any

from netkit import plan as planning
from netkit.design.numbering import RenumberedValue
from netkit.plan.cluster_diff import ClusterDiff
from netkit.plan.intent_diff import IntentDiff, UnmatchedDevice
from netkit.plan.model import approval
from netkit.report.cluster_diff import cluster_lines, object_lines, summary, touched_lines
from netkit.report.plan_text import HEADS, plain, row, steps, unfolded
from netkit.report.plan_text import text as plan_text
from netkit.report.plan_view import GroupView, counted, groups, listed, shown, touched

PLURALS = {"leaf": "leaves", "spine": "spines", "core": "cores", "host": "hosts"}


@dataclass(frozen=True, slots=True)
class ProofNotes:
    """What a proof adds to the report of a change, for each format."""

    text: str = ""
    verdict: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    doubt: str = ""
    """What an approver has to accept, because the proof did not show it to be safe."""


NO_PROOF = ProofNotes()


def headline(diff: IntentDiff) -> str:
    """Summarise the change in one sentence."""
    changed, known = len(diff.plan.changed), diff.same + len(diff.plan.changed)
    parts = []
    if changed:
        verb = "changes" if changed == 1 else "change"
        parts.append(f"{changed} of {counted(known, 'device')} {verb}, highest risk {diff.plan.risk.word}")
    replaced = len([device for device in diff.added if device.was])
    if replaced:
        parts.append(f"{counted(replaced, 'device')} {'gets' if replaced == 1 else 'get'} another NOS")
    for count, word in ((len(diff.added) - replaced, "new"), (len(diff.removed), "gone")):
        if count:
            parts.append(f"{counted(count, 'device')} {'is' if count == 1 else 'are'} {word}")
    parts += [f"{cluster.kind}: {summary(cluster)}" for cluster in diff.clusters]
    parts = parts or [f"nothing changes on {counted(known, 'device')}"]
    if diff.plan.unreachable:
        parts.append(f"{len(diff.plan.unreachable)} could not be read")
    text = "; ".join(parts)
    return f"{diff.plan.fabric} against {diff.base}: {text}"


def sorts(diff: IntentDiff) -> Iterator[tuple[str, Sequence[UnmatchedDevice]]]:
    """Yield the devices without a comparison, by reason."""
    yield "new", [device for device in diff.added if not device.was]
    for was, runs in dict.fromkeys((device.was, device.platform) for device in diff.added if device.was):
        some = [device for device in diff.added if (device.was, device.platform) == (was, runs)]
        yield f"reinstalled, {was} → {runs}, with all ports down and nothing compared", some
    yield "gone", diff.removed


def newcomers(devices: Sequence[UnmatchedDevice]) -> Iterator[str]:
    """Count and list devices by role."""
    for role in dict.fromkeys(device.role for device in devices):
        names = [device.name for device in devices if device.role == role]
        yield f"{len(names)} {role if len(names) == 1 else PLURALS[role]}: {listed(names)}"


def where(moved: RenumberedValue) -> str:
    """List the places of a value; those shown are of the first."""
    return listed(moved.places)


def intent_diff_text(diff: IntentDiff, aside: ProofNotes = NO_PROOF) -> str:
    """Format the change as text: summary, moved numbers, proof, then the plan."""
    head = "".join(f"{shown(line)}\n" for line in _lines(diff, aside)) + aside.text
    _, _, plan = plan_text(diff.plan).partition("\n")  # its headline counts only the devices in the plan
    return head + plan


def _lines(diff: IntentDiff, aside: ProofNotes) -> Iterator[str]:
    yield headline(diff)
    for what, devices in sorts(diff):
        yield from (f"  {what}: {line}" for line in newcomers(devices))
    for one in diff.moved:
        yield f"  {one.quantity}: {one.running or 'none'} → {one.intended or 'none'}  ({where(one)})"
    for cluster in diff.clusters:
        yield from cluster_lines(cluster)
    yield from (f"  warning: {warning}" for warning in diff.warnings)
    if diff.plan.changed and not diff.added:
        how = f"{aside.doubt}; accept this and approve it" if aside.doubt else "approve it"
        yield f"  {how} with: netkit deploy --approved {approval(diff.plan)}"


LARGEST = 60_000
"""Characters; GitHub refuses comments of more than 65,536, and counts some characters more than once."""
MOST_ROWS = 20
MOST_CHARACTERS = 300
"""Of a line about a cluster."""
CUT = "… and {} more groups; `netkit plan` shows them all"


def intent_diff_markdown(diff: IntentDiff, aside: ProofNotes = NO_PROOF, *, largest: int = LARGEST) -> str:
    """Format the comment; what does not fit is counted."""
    found = list(groups(diff.plan))
    head = _text([*_head(diff, aside, found), *aside.details, *_numbers(diff)])
    beside, foot = _text(_beside(diff)), _text(["", *_foot(diff, aside)])
    room = largest - len(head) - len(beside) - len(foot)
    clusters = _clusters(diff, room if not found else room // 2)
    head = "".join((head, clusters, beside))
    room -= len(clusters)
    parts: list[str] = []
    for number, group in enumerate(found):
        part = _text(["", *unfolded(group)])
        rest = _text(["", CUT.format(len(found) - number)])
        if len(part) + len(rest) > room:
            parts.append(rest)
            break
        parts.append(part)
        room -= len(part)
    return "".join((head, *parts, foot))[:largest]


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{shown(line)}\n" for line in lines)


def _head(diff: IntentDiff, aside: ProofNotes, found: Sequence[GroupView]) -> Iterator[str]:
    yield f"### {plain(headline(diff))}"
    for line in aside.verdict:
        yield ""
        yield line
    touches = touched(diff.plan.blast)
    if touches:
        yield ""
        yield f"Touches {touches}."
    if found:
        yield ""
        yield from HEADS
        yield from (row(group) for group in found[:MOST_ROWS])
        if len(found) > MOST_ROWS:
            yield f"| … and {len(found) - MOST_ROWS} more groups | | | | |"
    yield from steps(diff.plan)
    for what, devices in sorts(diff):
        if devices:
            yield ""
            yield f"{what[0].upper()}{what[1:]}: {'; '.join(plain(text) for text in newcomers(devices))}."
    if diff.warnings:
        yield ""
        yield from (f"- ⚠ {plain(str(warning))}" for warning in diff.warnings[:MOST_ROWS])
        if len(diff.warnings) > MOST_ROWS:
            yield f"- … and {counted(len(diff.warnings) - MOST_ROWS, 'more warning')}"


def _numbers(diff: IntentDiff) -> Iterator[str]:
    if not diff.moved:
        return
    yield ""
    yield "<details>"
    yield f"<summary>{counted(len(diff.moved), 'number')} moved</summary>"
    yield ""
    yield "| what | was | is | where |"
    yield "|---|---|---|---|"
    for one in diff.moved[:MOST_ROWS]:
        cells = (one.quantity, one.running or "none", one.intended or "none", where(one))
        yield f"| {' | '.join(plain(cell) for cell in cells)} |"
    if len(diff.moved) > MOST_ROWS:
        yield f"| … and {len(diff.moved) - MOST_ROWS} more | | | |"
    yield "</details>"


def _clusters(diff: IntentDiff, room: int) -> str:
    parts: list[str] = []
    for number, cluster in enumerate(diff.clusters):
        part = _cluster(cluster, room // (len(diff.clusters) - number))
        parts.append(part)
        room -= len(part)
    return "".join(parts)


def _cluster(cluster: ClusterDiff, room: int) -> str:
    """Format a cluster; lines that do not fit are counted. Without room for one, the headline has its summary."""
    head = _text(["", "<details>", f"<summary>{cluster.kind}: {plain(summary(cluster))}</summary>", "", "```diff"])
    foot = _text([*map(_short, touched_lines(cluster)), "```", "</details>"])
    lines = [_text([_short(line)]) for line in object_lines(cluster)]
    rest = _text([f"  … and {counted(len(lines), 'more line')}: netkit plan --format text shows them"])
    room -= len(head) + len(foot)
    if room < len(rest):
        return ""
    if sum(map(len, lines)) > room:
        sizes = accumulate(map(len, lines), initial=len(rest))
        fitting = sum(size <= room for size in sizes) - 1
        left = counted(len(lines) - fitting, "more line")
        lines = [*lines[:fitting], _text([f"  … and {left}: netkit plan --format text shows them"])]
    return "".join((head, *lines, foot))


def _short(line: str) -> str:
    text = shown(line)
    left = len(text) - MOST_CHARACTERS
    return f"{text[:MOST_CHARACTERS]} … ({counted(left, 'more character')})" if left > 0 else text


def _beside(diff: IntentDiff) -> Iterator[str]:
    notes: list[str] = []
    for device in diff.plan.devices:
        if not device.changes:
            notes += [f"{device.name}: {warning}" for warning in device.warnings]
            if device.not_read:
                notes.append(f"{device.name}: not compared, because not read: {', '.join(device.not_read)}")
    if notes:
        yield ""
        yield from (f"- ⚠ {plain(note)}" for note in notes[:MOST_ROWS])
        if len(notes) > MOST_ROWS:
            yield f"- … and {len(notes) - MOST_ROWS} more"
    if diff.plan.unreachable:
        yield ""
        missed = [one.name for one in diff.plan.unreachable]
        yield f"⚠ Not in this plan, because they could not be read: {plain(listed(missed))}."


def _foot(diff: IntentDiff, aside: ProofNotes) -> Iterator[str]:
    if not diff.plan.changed:
        return
    if diff.added:
        yield "New devices have to be read once they exist: approve a plan of running devices."
        return
    how = f"`netkit deploy --approved {approval(diff.plan)}`. Any other plan is refused."
    if aside.doubt:
        doubt = f"{aside.doubt[0].upper()}{aside.doubt[1:]}"
        yield f"⚠ **{doubt}.** To accept this and approve this plan: {how}"
        return
    yield f"To approve this plan: {how}"


def intent_diff_json(diff: IntentDiff, aside: ProofNotes = NO_PROOF) -> str:
    """Format the change as JSON; its plan is the one `netkit plan -o` writes."""
    document = {
        "base": diff.base,
        "approval": approval(diff.plan),
        "same": diff.same,
        "added": [asdict(device) for device in diff.added],
        "removed": [asdict(device) for device in diff.removed],
        "moved": [asdict(one) for one in diff.moved],
        "warnings": [str(warning) for warning in diff.warnings],
        "clusters": [asdict(cluster) for cluster in diff.clusters],
        **({"proof": aside.document} if aside.document else {}),
        "plan": json.loads(planning.write(diff.plan)),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
