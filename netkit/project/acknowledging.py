"""From the findings of the last stored run to acknowledgements of them."""

from collections.abc import Iterator

from netkit.errors import Problem, UsageError
from netkit.intent.list_edit import Plain
from netkit.judge import Finding, Verdict
from netkit.judge.cause import Layers, heads
from netkit.judge.check import is_meant
from netkit.judge.run import FABRIC, Judgement
from netkit.judge.silence import REACHED, Subject, cause_of
from netkit.project.past import place_of
from netkit.store import Source
from netkit.store.store import open_store

MOST = 100
"""The limit of findings to acknowledge at once."""
Values = dict[str, Plain]


def stored_faults(name: str, subject: str, source: Source, store: str) -> list[Values]:
    """Return the findings of the last stored run, each as its own acknowledgement."""
    remedy = "store a run with netkit check --store, or set the worst accepted verdict with --verdict warn or fail"
    with open_store(place_of(store or "."), is_new_allowed=False) as opened:
        run = next(iter(opened.runs(source, 1)), None)
        if run is None:
            raise UsageError(Problem(f"no stored run of checks on {source.shown}", remedy))
        judgement = opened.judgement(run)
    found = list(faults(judgement, name, Subject.of(subject), run.layers))
    if not found:
        raise UsageError(Problem(f"the last run, {run.name}, has no warning or failure of {name} on {subject}", remedy))
    if len(found) > MOST:
        raise UsageError(Problem(f"{len(found)} findings are too many to acknowledge", "name a place, or silence them"))
    return found


def faults(judgement: Judgement, name: str, subject: Subject, layers: Layers) -> Iterator[Values]:
    """Yield the failures of checks at places, in the form of acknowledgements."""
    named = heads(judgement.findings, layers)
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in judgement.findings:
        is_bad = one.verdict in {Verdict.WARN, Verdict.FAIL}
        if is_bad and is_meant(one.check, name) and subject.has(one.device, one.place):
            where = f"{one.device or FABRIC}:{one.place}" if one.place else one.device or FABRIC
            groups.setdefault((one.check, where), []).append(one)
    for (checked, where), group in groups.items():
        worst = max(group, key=lambda one: one.verdict)
        texts = list(dict.fromkeys(one.text for one in group))
        cause = cause_of(worst, named)
        fault: Values = {"check": checked, "where": where, "verdict": worst.verdict.word}
        fault |= {"fault": texts[0] if len(texts) == 1 else texts}
        yield fault | ({"cause": cause} if cause else {})
    if name == REACHED:
        missed = (device for device, _ in judgement.unreached if subject.has(device, ""))
        for device in missed:
            yield {"check": REACHED, "where": device, "verdict": "fail"}
