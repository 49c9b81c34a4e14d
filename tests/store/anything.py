"""Arbitrary runs to store."""

from dataclasses import replace

from hypothesis import strategies as st

from netkit.judge import Finding, Verdict
from netkit.judge.finding import Silenced
from netkit.judge.run import FABRIC, CheckResult, Judgement
from netkit.store import Counts
from tests.store.runs import run

WORD = st.text(max_size=12)
VERDICT = st.sampled_from(Verdict)
SILENCED = st.builds(
    Silenced,
    id=WORD,
    kind=st.sampled_from(["silence", "acknowledgement"]),
    by=WORD,
    why=WORD,
    until_s=st.none() | st.floats(1.0, 1e10),
    ticket=WORD,
)
FINDING = st.builds(
    Finding,
    verdict=VERDICT.filter(lambda verdict: verdict is not Verdict.PASS),
    place=WORD,
    text=st.text(max_size=40),
    remedy=WORD,
    evidence=st.lists(st.tuples(WORD, WORD), max_size=3).map(tuple),
    cause=WORD,
    device=st.sampled_from(["", "leaf01", "leaf02"]),
    check=st.sampled_from(["links.up", "optics.light"]),
    explains=st.lists(WORD, max_size=2).map(tuple),
    silenced=st.none() | SILENCED,
)
RESULT = st.builds(
    CheckResult,
    check=st.sampled_from(["links.up", "optics.light"]),
    device=st.sampled_from([FABRIC, "leaf01", "leaf02"]),
    verdict=VERDICT,
    examined=st.integers(0, 2**31 - 1),
    findings=st.lists(FINDING, max_size=4).map(tuple),
    left_out=st.integers(0, 9),
)
JUDGEMENT = st.builds(
    Judgement,
    results=st.lists(RESULT, max_size=5).map(tuple),
    unreached=st.lists(st.tuples(st.sampled_from(["leaf01", "leaf02"]), WORD), max_size=2).map(tuple),
)
COUNT = st.integers(0, 2**31 - 1)
RUN = st.builds(
    lambda one, layers, counts, verdict: replace(one, layers=layers, counts=counts, verdict=verdict),
    st.builds(run, st.floats(1.0, 1e10)),
    st.dictionaries(WORD, st.sampled_from(["link", "qos"])),
    st.builds(Counts, *(COUNT for _ in range(7))),
    VERDICT,
)
