"""The text of a proof in each format."""

import json
from dataclasses import replace

import pytest

from netkit.deploy import ConfigState, DeviceOutcome, DeviceResult
from netkit.prove import proof_text
from netkit.prove.proof import ACROSS, BEFORE, SAME_LEAF, Booted, Examined, Proof, ScopeSeen, WaveSeen
from tests.conftest import Golden

PROVEN = Proof(
    booted=Booted({"leaf": 2, "spine": 2, "host": 4}, {}),
    devices=(DeviceOutcome("spine01", DeviceResult.DONE, ConfigState.INTENDED),),
    waves=(WaveSeen(1, ("spine01",), 0, 0.0), WaveSeen(2, ("leaf01", "leaf02"), 31, 3.25)),
    scopes=(
        ScopeSeen(SAME_LEAF, 4, 2_400, 0, 0.0, ""),
        ScopeSeen(ACROSS, 4, 2_410, 31, 3.25, "gpu01:rail0 → gpu03:rail0"),
    ),
    examined=Examined(8, 2, 24, 24, 9000),
    took_s=61.4,
)
PART = Proof(
    failures=("leaf03: 1 of 2 next hops to 10.128.0.0/26", "leaf03 would change again: its second plan is not empty"),
    notes=("already missing before the change: leaf01:swp1: session to spine01 is Idle",),
    exit_code=1,
    booted=Booted(
        {"leaf": 3, "spine": 32, "host": 1},
        {"leaf": 117, "host": 479},
        (("leaf07", "leaf08"),),
        ("leaf09",),
        ("leaf03",),
        ("gpu77",),
    ),
    obstacle="earlier cables no longer exist: gpu01:rail0–leaf01:swp1s0",
    waves=(WaveSeen(BEFORE, (), 2, 0.3),),
    examined=Examined(96, 32, 200, 800, 9000, lacking=1, unsettled=1),
    took_s=300.0,
)
UNABLE = Proof(failures=("the lab needs packages that are not installed: frr; apt-get install frr",), exit_code=3)
PROOFS = {"proven": PROVEN, "part": PART, "unable": UNABLE, "nothing": Proof()}


@pytest.mark.parametrize("name", PROOFS)
def test_a_proof_equals_its_golden_file(golden: Golden, name: str) -> None:
    proof = PROOFS[name]
    golden(f"prove/{name}.txt", proof_text.text(proof))
    golden(f"prove/{name}.md", "\n".join([proof_text.verdict(proof), *proof_text.details(proof)]) + "\n")


def test_json_has_the_verdict() -> None:
    found = json.loads(json.dumps(proof_text.document(PART)))
    assert found["is_proven"] is False
    assert found["verdict"].startswith("not proven: leaf03")
    assert found["booted"]["left_out"] == {"leaf": 117, "host": 479}


def test_output_of_a_device_cannot_break_the_comment() -> None:
    evil = "leaf01: </details>\n# <script>|`x`\x1b[2J"
    lines = [
        proof_text.verdict(Proof(failures=(evil,))),
        *proof_text.details(Proof(failures=(evil,), booted=PART.booted)),
    ]
    assert not any(char in line for line in lines for char in ("\n", "\x1b", "<script>"))
    assert sum(line == "</details>" for line in lines) == 1


def test_many_failures_are_counted() -> None:
    found = proof_text.text(Proof(failures=tuple(f"leaf{number} is down" for number in range(50))))
    assert "not proven: leaf0 is down (and 49 more)" in found
    assert "… and 40 more" in found
    assert len(found.splitlines()) == 12


def test_of_many_waves_those_with_loss_are_shown() -> None:
    waves = tuple(WaveSeen(number, (f"spine{number:02}",), 5 * (number == 7), 0.5) for number in range(1, 33))
    found = proof_text.text(replace(PROVEN, waves=waves))
    assert "31 of 32 waves without any loss" in found
    assert [line for line in found.splitlines() if "  wave " in line] == [
        "  wave 7: spine07: 5 packets lost, longest gap 0.5 s"
    ]


def test_the_verdict_reports_a_change_that_could_not_be_rolled_out() -> None:
    found = proof_text.headline(replace(PROVEN, obstacle="a cable moved"))
    how = "booted with the intended configuration, without a deploy"
    assert found == f"proven in the lab: {how}; 24 pairs of NICs reach each other afterwards"


def test_the_verdict_lists_what_was_not_tested() -> None:
    unseen = replace(PROVEN, booted=Booted({"leaf": 2}, {"leaf": 4}, (("leaf07", "leaf08"),)))
    found = proof_text.headline(replace(unseen, untried=("leaf01",)))
    assert found.startswith("proven in part: rolled in 2 waves, ")
    assert found.endswith("; not tested: the changes on leaf01, leaf07, leaf08")
    assert proof_text.verdict(unseen).startswith("⚠ **Proven in part: ")
    assert proof_text.headline(unseen).endswith("; not tested: the changes on leaf07, leaf08")
    said = "not tested, because on ports to devices that are not booted: some changes of leaf01"
    assert f"  {said}" in proof_text.text(replace(PROVEN, untried=("leaf01",))).splitlines()


def test_without_traffic_nothing_is_said_to_be_lost_or_not() -> None:
    """All NICs get other addresses."""
    silent = replace(PROVEN, scopes=())
    assert proof_text.headline(silent) == (
        "proven in part: 24 pairs of NICs reach each other afterwards; not measured: traffic during the change"
    )
    assert "wave" not in proof_text.text(silent)
    assert "wave" not in "\n".join(proof_text.details(silent))
    alone = replace(silent, examined=Examined(8, 2, 0, 0, 9000))
    assert proof_text.aside(alone).doubt == ""


def test_pairs_that_the_design_isolates_are_listed_as_such() -> None:
    found = proof_text.text(replace(PROVEN, examined=Examined(8, 2, 24, 24, 9000, blocked=200)))
    assert "all 24 pairs of NICs reach each other by packets of 9000 bytes that must not be fragmented" in found
    assert "must not be fragmented; none of 200 across rails, as designed; 8 sessions" in found


def test_uncounted_next_hops_are_not_reported_as_designed() -> None:
    found = proof_text.text(replace(PROVEN, examined=Examined(8, 0, 24, 24, 9000)))
    assert "8 sessions, next hops not counted; a second plan is empty" in found


def test_a_lab_without_pairs_reports_that_nothing_was_to_be_reached() -> None:
    alone = replace(PROVEN, examined=Examined(8, 2, 0, 0, 9000))
    said = "no two NICs are designed to reach each other"
    assert proof_text.headline(alone).endswith(f"longest gap 3.2 s; {said}")
    assert f"  final state: {said}; 8 sessions, up to 2 next hops to a leaf as designed" in proof_text.text(alone)


@pytest.mark.parametrize(
    ("proof", "said"),
    [
        (PROVEN, ""),
        (Proof(), ""),
        (PART, "the proof failed"),
        (UNABLE, "there is no proof of it"),
        (replace(PROVEN, untried=("leaf01",)), "only part of it is proven"),
        (replace(PROVEN, scopes=()), "only part of it is proven"),
    ],
)
def test_open_points_of_a_proof_are_for_the_approver(proof: Proof, said: str) -> None:
    assert proof_text.aside(proof).doubt == said
