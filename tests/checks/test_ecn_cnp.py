import pytest

from netkit.facts import Observation
from netkit.intent.model import Thresholds
from netkit.judge import Scene
from tests.checks.judging import results, said, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
FEW = Thresholds(cnp_minimum=100)


def host(name: str, sent: int, handled: int, ignored: int = 0, marked: int = 0) -> Observation:
    """Return a host whose first NIC counts so; its second one counts nothing."""
    counts = {"cnp_sent": sent, "cnp_handled": handled, "cnp_ignored": ignored, "ecn_received": marked}
    rows = {key: {"rail0": (7, 7 + count), "rail1": (0, 0)} for key, count in counts.items()}
    return observation(name, None, **rows)


def rails(*hosts: Observation) -> Scene:
    return scene(BUILT, *hosts, limits=FEW)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((1000, 400), (600, 1200), []),
        ((1000, 0), (0, 985), [("warn", "1.5 % of its CNPs never arrive: sent 1000, handled 985, ignored 0, CE 0")]),
        ((1000, 0), (0, 300), [("fail", "70.0 % of its CNPs never arrive: sent 1000, handled 300, ignored 0, CE 0")]),
        (
            (1000, 0),
            (0, 1200),
            [("fail", "20.0 % more CNPs arrive than are sent: sent 1000, handled 1200, ignored 0, CE 0")],
        ),
        ((0, 0), (0, 500), [("warn", "CNPs are handled that nobody sent: sent 0, handled 500, ignored 0, CE 0")]),
        ((50, 0), (0, 0), []),
    ],
)
def test_what_a_rail_sends_its_senders_hear(
    first: tuple[int, int], second: tuple[int, int], expected: list[tuple[str, str]]
) -> None:
    found = said(rails(host("gpu01", *first), host("gpu02", *second)), "ecn-cnp.parity")
    assert [(verdict, text) for verdict, _, _, text in found] == expected


def test_a_rail_that_was_not_read_whole_is_not_judged() -> None:
    found = rails(host("gpu01", 1000, 0))
    assert said(found, "ecn-cnp.parity") == []
    assert skipped(found, "ecn-cnp.parity")[0] == ("", "rail 0", "not all of its NICs were read: gpu02")
    limited = scene(BUILT, host("gpu01", 1000, 0), limits=FEW, names=frozenset({"gpu01"}))
    assert skipped(limited, "ecn-cnp.parity")[0][2].endswith("hosts that are not part of this run")


def test_too_few_say_nothing_and_marks_without_an_answer_say_much() -> None:
    found = rails(host("gpu01", 10, 0), host("gpu02", 0, 0))
    assert results(found, "ecn-cnp.parity")["fabric"].examined == 0
    mute = rails(host("gpu01", 0, 0, marked=5000), host("gpu02", 0, 0))
    assert [text for *_, text in said(mute, "ecn-cnp.parity")] == [
        "packets arrive with CE and nobody sends CNPs: sent 0, handled 0, ignored 0, CE 5000"
    ]


def test_a_nic_that_swallows_is_named_by_what_its_leaf_delivers() -> None:
    leaf = observation("leaf01", queue_tx_packets={"swp1s0/6": (0, 980), "swp1s1/6": (0, 20)})
    found = rails(host("gpu01", 0, 0), host("gpu02", 1000, 20), leaf)
    (one,) = [one for one in results(found, "ecn-cnp.parity")["fabric"].findings if one.text.startswith("98.0 %")]
    assert dict(one.evidence)["places"] == "gpu01:rail0 counts 0 of the 980 its leaf delivers"


def test_cnps_that_are_ignored_are_told() -> None:
    found = rails(host("gpu01", 1000, 500), host("gpu02", 0, 480, ignored=20))
    assert [text for *_, text in said(found, "ecn-cnp.parity")] == [
        "senders ignore CNPs: sent 1000, handled 980, ignored 20, CE 0"
    ]


@pytest.mark.parametrize(
    ("received", "sent", "text"),
    [
        (0, 0, "marks do not arrive: switches mark 5000, NICs receive 0 with CE and send 0 CNPs"),
        (90, 0, "marks are not answered: switches mark 5000, NICs receive 90 with CE and send 0 CNPs"),
        (90, 50, ""),
    ],
)
def test_marks_arrive_and_are_answered(received: int, sent: int, text: str) -> None:
    leaf = observation("leaf01", queue_ecn_marked={"swp1s0/3": (5, 5005), "swp1s0/0": (0, 77)})
    found = rails(host("gpu01", sent, 0, marked=received), host("gpu02", 0, 0), leaf)
    assert [told for *_, told in said(found, "ecn-cnp.marks")] == ([text] if text else [])
