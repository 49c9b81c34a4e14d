"""A proof as text: the verdict in one sentence, then what was booted, what traffic lost and what was found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from netkit.deploy import DeviceResult
from netkit.prove.proof import BEFORE, FAILED, Booted, Examined, Proof, WaveSeen
from netkit.report.intent_diff import PLURALS, ProofNotes
from netkit.report.plan_text import plain
from netkit.report.plan_view import counted, listed, shown

MOST_FAILURES = 10
MOST_WAVES = 12
LONGEST_FAILURE = 400
NOT_SHOWN = "A lab forwards in the kernel: losses of a chip while its buffers are reconfigured do not occur here."
NOTHING_TO_REACH = "no two NICs are designed to reach each other"


def aside(proof: Proof) -> ProofNotes:
    return ProofNotes(
        text=text(proof),
        verdict=(verdict(proof),),
        details=tuple(details(proof)),
        document=document(proof),
        exit_code=proof.exit_code,
        doubt=doubt(proof),
    )


def doubt(proof: Proof) -> str:
    """The doubt that an approver accepts; empty if the change is proven."""
    if proof.failures:
        return "the proof failed" if proof.exit_code == FAILED else "there is no proof of it"
    return "only part of it is proven" if _not_tried(proof) else ""


def headline(proof: Proof) -> str:
    """The verdict in one sentence."""
    if proof.failures:
        more = len(proof.failures) - 1
        return f"not proven: {_short(proof.failures[0])}{f' (and {more} more)' if more else ''}"
    if proof.booted is None:
        return "nothing to prove: the change does not affect any device"
    parts = (_rolled(proof), _whole(proof.examined), _not_tried(proof))
    return f"proven in {'part' if _not_tried(proof) else 'the lab'}: {'; '.join(part for part in parts if part)}"


def lines(proof: Proof) -> Iterator[str]:
    yield headline(proof)
    yield from (f"  {text}" for text in _failures(proof))
    yield from (f"  {text}" for text in _conditions(proof))
    for wave in () if proof.is_unmeasured else _shown(proof.waves):
        name = f"wave {_number(wave)}: {listed(wave.devices)}" if wave.devices else _number(wave)
        yield f"  {name}: {_loss(wave.lost, wave.longest_s)}"
    for one in proof.scopes:
        where = f", worst {one.worst}" if one.worst else ""
        yield f"  {one.scope}, {counted(one.flows, 'flow')}: {_loss(one.lost, one.longest_s, one.sent)}{where}"


def text(proof: Proof) -> str:
    return "".join(f"{shown(line)}\n" for line in lines(proof))


def verdict(proof: Proof) -> str:
    """The first line of a comment."""
    sentence = plain(headline(proof))
    return f"{'⚠' if proof.failures or _not_tried(proof) else '✓'} **{sentence[0].upper()}{sentence[1:]}.**"


def details(proof: Proof) -> Iterator[str]:
    """Yield the rest of a comment, folded; failures stay visible."""
    failures = list(_failures(proof))
    if failures:
        yield ""
        yield from (f"- {plain(text)}" for text in failures)
    if proof.booted is None:
        return
    yield ""
    yield "<details>"
    yield "<summary>how it was proven</summary>"
    yield ""
    yield from (f"- {plain(text)}" for text in _conditions(proof))
    yield from _tables(proof)
    yield "</details>"


def document(proof: Proof) -> Mapping[str, Any]:
    return {"is_proven": not proof.failures, "verdict": headline(proof), **asdict(proof)}


def _tables(proof: Proof) -> Iterator[str]:
    if proof.waves and not proof.is_unmeasured:
        yield from ("", "| wave | devices | packets lost | longest gap |", "|---|---|---|---|")
        for wave in _shown(proof.waves):
            yield _row(_number(wave), listed(wave.devices) or "–", f"{wave.lost:,}", _seconds(wave.longest_s))
    if proof.scopes:
        yield from ("", "| traffic | flows | sent | lost | longest gap | worst |", "|---|---|---|---|---|---|")
        for one in proof.scopes:
            cells = f"{one.flows}", f"{one.sent:,}", f"{one.lost:,}", _seconds(one.longest_s), one.worst or "–"
            yield _row(one.scope, *cells)


def _shown(waves: Sequence[WaveSeen]) -> Sequence[WaveSeen]:
    """All waves if they are few, else those with losses."""
    return waves if len(waves) <= MOST_WAVES else [wave for wave in waves if wave.lost][:MOST_WAVES]


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(plain, cells))} |"


def _failures(proof: Proof) -> Iterator[str]:
    yield from (_short(failure) for failure in proof.failures[:MOST_FAILURES])
    if len(proof.failures) > MOST_FAILURES:
        yield f"… and {len(proof.failures) - MOST_FAILURES} more"


def _conditions(proof: Proof) -> Iterator[str]:
    if proof.booted is not None:
        yield from _booted(proof.booted)
    if proof.obstacle:
        yield f"booted with the intended configuration, without a deploy: {proof.obstacle}"
    if proof.untried:
        yield f"not tested, because on ports to devices that are not booted: some changes of {listed(proof.untried)}"
    yield from proof.notes
    done = [one.device for one in proof.devices if one.result is DeviceResult.DONE]
    if done:
        yield f"changed by a deploy: {listed(done)}"
    if len(proof.waves) > MOST_WAVES:
        calm = len([wave for wave in proof.waves if not wave.lost])
        yield f"{calm} of {len(proof.waves)} waves without any loss; only others are shown"
    if proof.examined is not None:
        yield f"final state: {_end(proof.examined)}"
    if proof.booted is not None:
        yield f"{NOT_SHOWN} It took {proof.took_s:.0f} s."


def _booted(found: Booted) -> Iterator[str]:
    whole = "" if found.left_out else ", the whole fabric"
    yield f"booted: {_counted(found.roles)}{whole}"
    if found.left_out:
        yield f"left out, with all ports to them: {_counted(found.left_out)}"
    if found.added:
        yield f"new, booted with their intended configuration: {listed(found.added)}"
    if found.removed:
        yield f"not booted, because they are removed: {listed(found.removed)}"
    if found.witnesses:
        yield f"booted as reference from another unit: {listed(found.witnesses)}"
    if found.unseen:
        names = [name for group in found.unseen for name in group]
        yield f"{counted(len(found.unseen), 'group')} of devices that change alike did not fit: {listed(names)}"


def _counted(roles: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {role if count == 1 else PLURALS[role]}" for role, count in roles.items())


def _rolled(proof: Proof) -> str:
    if proof.obstacle:
        return "booted with the intended configuration, without a deploy"
    if not proof.sent:
        return ""
    waves = len([wave for wave in proof.waves if wave.number != BEFORE])
    return f"rolled in {counted(waves, 'wave')}, {_loss(proof.lost, proof.longest_s, proof.sent)}"


def _not_tried(proof: Proof) -> str:
    """Name what is open: traffic, and changing devices that had less to change or had no like of theirs booted."""
    unseen = proof.booted.unseen if proof.booted is not None else ()
    names = [*proof.untried, *(name for group in unseen for name in group)]
    parts = ["not measured: traffic during the change"] if proof.is_unmeasured else []
    parts += [f"not tested: the changes on {listed(names)}"] if names else []
    return "; ".join(parts)


def _loss(lost: int, longest_s: float, sent: int = 0) -> str:
    of_all = f" of {sent:,}" if sent else ""
    gap = f", longest gap {_seconds(longest_s)}" if lost else ""
    return f"{lost:,}{of_all} packets lost{gap}" if lost else f"none{of_all} packets lost" if of_all else "none lost"


def _seconds(longest_s: float) -> str:
    return f"{longest_s:.1f} s" if longest_s else "–"


def _whole(examined: Examined | None) -> str:
    if examined is not None and not examined.of_pairs:
        return NOTHING_TO_REACH
    return f"{examined.pairs} pairs of NICs reach each other afterwards" if examined else ""


def _end(found: Examined) -> str:
    if found.lacking:
        return f"{counted(found.lacking, 'thing')} missing from the design"
    reach = _reach(found)
    if found.blocked:
        reach = f"{reach}; none of {found.blocked:,} across rails, as designed"
    hops = f"up to {found.widest} next hops to a leaf as designed" if found.widest else "next hops not counted"
    ways = f"{found.sessions} sessions, {hops}"
    again = (
        f"a second plan changes {counted(found.unsettled, 'device')}" if found.unsettled else "a second plan is empty"
    )
    return f"{reach}; {ways}; {again}"


def _reach(found: Examined) -> str:
    if not found.of_pairs:
        return NOTHING_TO_REACH
    pairs = f"{found.pairs:,} of {found.of_pairs:,}" if found.pairs < found.of_pairs else f"all {found.pairs:,}"
    return (
        f"{pairs} pairs of NICs reach each other by packets of {found.packet_bytes} bytes that must not be fragmented"
    )


def _number(wave: WaveSeen) -> str:
    return "before the first" if wave.number == BEFORE else str(wave.number)


def _short(failure: str) -> str:
    return failure if len(failure) <= LONGEST_FAILURE else f"{failure[:LONGEST_FAILURE]}…"
