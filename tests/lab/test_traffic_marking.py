"""The marking ruleset as text, and as the kernel accepts it."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from netkit.lab import netlink
from netkit.lab.state import EcnState, PortState, QosState, SwitchState
from netkit.lab.traffic import marking
from netkit.lab.traffic.marking import PortMarks, Sent
from tests.lab.traffic_scene import QOS, inside, namespace, needs_root

NAMES = {"Ethernet1/1": "et1_1", "swp1s0": "swp1s0", "Ethernet-9": "Ethernet-9"}
TWO_CLASSES = replace(QOS, pfc_priorities=frozenset({3, 6}), ecn={3: EcnState(1, 2, 5), 6: EcnState(1, 2, 5)})


def switch(qos: QosState = QOS, speed_gbps: int = 400) -> SwitchState:
    return SwitchState("leaf01", tuple(PortState(name, qos=qos, speed_gbps=speed_gbps) for name in NAMES))


def limits(text: str) -> set[str]:
    return set(re.findall(r"limit rate over (\d+)/second", text))


@pytest.mark.parametrize(("speed_gbps", "pps"), [(400, 200), (800, 400), (100, 50), (0, 200)])
def test_a_port_marks_above_the_rate_for_its_speed(speed_gbps: int, pps: int) -> None:
    assert limits(marking.ruleset(switch(speed_gbps=speed_gbps), NAMES)) == {str(pps)}


def test_unconfigured_ports_have_no_rules() -> None:
    state = SwitchState("leaf01", (PortState("swp1s0", qos=QOS),))
    assert set(re.findall(r'device "([^"]+)"', marking.ruleset(state, NAMES))) == {"swp1s0"}


@pytest.mark.parametrize(
    ("qos", "members"),
    [
        (QOS, {"4"}),
        (replace(QOS, class_of_priority=(3, 0, 0, 3, 0, 0, 0, 0)), {"4"}),
        (replace(QOS, class_of_priority=(3, 0, 0, 3, 0, 0, 0, 0), pfc_priorities=frozenset({0, 3})), {"1, 4"}),
        (replace(QOS, pfc_priorities=frozenset()), set()),
        (replace(QOS, class_of_priority=(0,) * 8), set()),
        (replace(QOS, ecn={}), set()),
        (replace(QOS, ecn={3: EcnState(1, 2, 0)}), set()),
        (replace(QOS, ecn={3: EcnState(1, 2, 5), 6: EcnState(1, 2, 5)}), {"4"}),
        (TWO_CLASSES, {"4", "7"}),
    ],
    ids=[
        "usual",
        "lossy priority in the class",
        "two priorities in the class",
        "nothing lossless",
        "class unused",
        "no ECN",
        "never marked",
        "lossy class",
        "two classes",
    ],
)
def test_only_priorities_in_a_class_with_ecn_are_marked(qos: QosState, members: set[str]) -> None:
    text = marking.ruleset(switch(qos), NAMES)
    assert set(re.findall(r"meta mark \{ ([\d, ]+) \} limit [^\n]* ip ecn", text)) == members


def test_sent_packets_are_counted_by_the_class_of_their_priority() -> None:
    qos = replace(QOS, class_of_priority=(0, 0, 0, 3, 0, 0, 6, 0))
    text = marking.ruleset(switch(qos), {"swp1s0": "swp1s0"})
    counted = re.search(r"counter name meta mark map \{ (.*) \}", text)
    assert counted is not None
    classes = {"3": "swp1s0.class3", "6": "swp1s0.class6"}
    wanted = {str(mark): classes.get(str(mark - 1), "swp1s0.class0") for mark in range(9)}
    unheeded = {str(int(mark) + 16): name for mark, name in wanted.items()}
    assert dict(re.findall(r'(\d+) : "([^"]+)"', counted[1])) == wanted | unheeded


def test_class_counters_are_read_by_port() -> None:
    rows = {"swp1s0.class3": (5, 700), "swp1s0.class6": (2, 120), "swp1s0.marked": (3, 1), "swp1s0.unmarked": (4, 1)}
    found = marking.sent(rows, NAMES)
    assert found["swp1s0"] == Sent((0, 0, 0, 5, 0, 0, 2, 0), (0, 0, 0, 700, 0, 0, 120, 0), 7)
    assert found["Ethernet-9"] == Sent()


def test_a_port_that_lost_pfc_still_marks() -> None:
    without = PortState("swp1s0", qos=replace(QOS, pfc_priorities=frozenset()))
    state = SwitchState("leaf01", (without, PortState("Ethernet1/1", qos=QOS)))
    assert marking.ruleset(state, NAMES).count("limit rate over") == 4


@pytest.mark.parametrize(("min_bytes", "burst"), [(0, 5), (150_000, 5), (1_500_000, 22), (50_000_000, 64)])
def test_a_deeper_threshold_allows_a_longer_burst(min_bytes: int, burst: int) -> None:
    qos = replace(QOS, ecn={3: EcnState(min_bytes, min_bytes + 1, 100)})
    assert set(re.findall(r"burst (\d+) packets", marking.ruleset(switch(qos), NAMES))) == {str(burst)}


RULESETS: Mapping[str, str] = {
    "usual": marking.ruleset(switch(), NAMES),
    "no ports": marking.ruleset(SwitchState("leaf01"), NAMES),
    "no ECN": marking.ruleset(switch(QosState()), NAMES),
    "two classes": marking.ruleset(switch(TWO_CLASSES), NAMES),
}


@needs_root
def test_the_kernel_accepts_any_ruleset_after_any_other_and_counts_continue() -> None:
    with namespace() as where:
        lines = [f"link add {interface} type veth peer name far{n}" for n, interface in enumerate(NAMES.values())]
        inside(where, "ip", "-batch", "-", text="\n".join(lines) + "\n")
        for text in RULESETS.values():
            for after in RULESETS.values():
                inside(where, "nft", "-f", "-", text=text)
                inside(where, "nft", "-f", "-", text=after)
        assert marking.marks(netlink.counters(where, marking.TABLE), NAMES) == dict.fromkeys(NAMES, PortMarks())
        inside(where, "nft", "-f", "-", text=RULESETS["no ports"])
        assert "hook" in inside(where, "nft", "list", "ruleset")
        assert "limit" not in inside(where, "nft", "list", "ruleset")


@needs_root
def test_64_ports_load_in_one_go() -> None:
    names = {f"swp{number}": f"swp{number}" for number in range(1, 65)}
    state = SwitchState("spine01", tuple(PortState(name, qos=QOS) for name in names))
    with namespace() as where:
        lines = [f"link add {name} type veth peer name far{name}" for name in names]
        inside(where, "ip", "-batch", "-", text="\n".join(lines) + "\n")
        inside(where, "nft", "-f", "-", text=marking.ruleset(state, names))
        counted = {counter.partition(".")[0] for counter in netlink.counters(where, marking.TABLE)}
        assert counted == set(names)
        assert inside(where, "nft", "list", "ruleset").count("hook egress") == 64


def test_counts_are_read_by_the_nos_name_of_a_port() -> None:
    counted = {"et1_1.marked": (3, 0), "et1_1.dropped": (4, 0), "gone.marked": (5, 0)}
    assert marking.marks(counted, NAMES) == {
        "Ethernet1/1": PortMarks(3, 4),
        "swp1s0": PortMarks(),
        "Ethernet-9": PortMarks(),
    }


def test_a_ruleset_touches_no_table_but_its_own() -> None:
    for text in RULESETS.values():
        assert set(re.findall(r"^(?:flush )?table (.+?)(?: \{.*)?$", text, re.MULTILINE)) == {f"netdev {marking.TABLE}"}
