"""Congestion signalling with real packets: marks, drops, CNPs and rates, between hosts at one switch."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from netkit.lab import netlink
from netkit.lab.state import QosState
from netkit.lab.traffic import marking
from netkit.lab.traffic.flow import NicConfig
from netkit.lab.traffic.marking import PortMarks
from tests.lab.traffic_scene import NIC, QOS, RAIL, Scene, counters, inside, needs_root, scene, until

pytestmark = needs_root

AMPLE_PPS = 1000
SCARCE_PPS = 10
SLOW_PPS = 20.0
FAST_PPS = 300.0
DEAF = replace(NIC, settings=replace(NIC.settings, rp_enabled=frozenset()))
"""Senders that never slow down, so that congestion lasts as long as a test needs it."""


@pytest.fixture
def routed() -> Iterator[Scene]:
    with scene() as made:
        yield made


@pytest.mark.parametrize("is_bridged", [False, True], ids=["routed", "bridged"])
def test_ect0_is_marked_above_the_rate_and_not_below(*, is_bridged: bool) -> None:
    with scene(is_bridged=is_bridged) as lab:
        lab.configure(DEAF)
        lab.mark(AMPLE_PPS)
        lab.traffic.start([lab.flow("h1", "h2", SLOW_PPS)])
        until("some packets", lambda: lab.count("h2", "rx_roce_packets") >= 30)
        lab.settle("h1", "p2", "h2")
        assert lab.count("h2", "ecn_marked_packets") == 0
        assert lab.marks("p2") == PortMarks()
        lab.mark(SCARCE_PPS)
        lab.traffic.start([lab.flow("h1", "h2", FAST_PPS)])
        until("marks", lambda: lab.count("h2", "ecn_marked_packets") >= 30)
        lab.settle("h1", "p2", "h2")
        assert lab.marks("p2") == PortMarks(lab.count("h2", "ecn_marked_packets"), 0)
        assert lab.marks("p2").marked_packets < lab.count("h2", "rx_roce_packets")


@pytest.mark.parametrize("tos", [NIC.data_tos, 26 << 2], ids=["ECT(0)", "Not-ECT"])
def test_a_burst_of_pings_is_no_congestion(routed: Scene, tos: int) -> None:
    routed.mark(SCARCE_PPS)
    burst = ("ping", "-q", "-Q", f"{tos}", "-c", "100", "-i", "0.002", "-W", "5", routed.addresses["h2"])
    assert " 0% packet loss" in inside(routed.hosts["h1"], *burst)
    assert marking.sent(netlink.counters(routed.switch, marking.TABLE), routed.names)["p2"].crowded_packets == 0


def test_marks_are_answered_by_cnps_and_the_sender_slows_down(routed: Scene) -> None:
    routed.mark(SCARCE_PPS)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("a slower sender", lambda: routed.traffic.flows()["h1-h2"].slowest_pps < FAST_PPS / 4)
    routed.settle("h1", "p2", "h2")
    until("every CNP", lambda: routed.count("h1", "cnp_handled") == routed.count("h2", "cnp_sent"))
    assert 0 < routed.count("h2", "cnp_sent") <= routed.count("h2", "ecn_marked_packets")
    assert routed.count("h1", "cnp_ignored") == 0
    assert routed.count("h1", "rx_cnp_packets") == routed.count("h1", "cnp_handled")


def test_a_sender_speeds_up_again_when_congestion_ends(routed: Scene) -> None:
    routed.mark(SCARCE_PPS)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("a slower sender", lambda: routed.traffic.flows()["h1-h2"].rate_pps < FAST_PPS / 4)
    routed.mark(100 * AMPLE_PPS)
    until("the full rate", lambda: routed.traffic.flows()["h1-h2"].rate_pps == FAST_PPS)


def test_cnps_are_paced(routed: Scene) -> None:
    routed.configure(replace(DEAF, cnp_interval_us=10_000_000))
    routed.mark(SCARCE_PPS)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("marks", lambda: routed.count("h2", "ecn_marked_packets") >= 100)
    marked, sent = routed.count("h2", "ecn_marked_packets"), routed.count("h2", "cnp_sent")
    assert 0 < sent < marked / 10


def test_a_cnp_that_a_switch_drops_is_sent_and_never_handled(routed: Scene) -> None:
    drop = """table inet acl {
        counter cnp { }
        chain f {
            type filter hook forward priority 0;
            ip dscp 48 counter name cnp drop
        }
    }"""
    inside(routed.switch, "nft", "-f", "-", text=drop)
    routed.mark(SCARCE_PPS)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("CNPs", lambda: routed.count("h2", "cnp_sent") >= 5)
    assert routed.traffic.flows()["h1-h2"].slowest_pps == FAST_PPS
    routed.settle("h1", "p2", "h2")
    until("every CNP dropped", lambda: counters(routed.switch)["cnp"] == routed.count("h2", "cnp_sent"))
    assert routed.count("h1", "rx_cnp_packets") == routed.count("h1", "cnp_handled") == 0


def test_not_ect_is_dropped_above_the_rate_and_the_gaps_are_reported(routed: Scene) -> None:
    routed.configure(replace(NIC, data_tos=26 << 2))
    routed.mark(SCARCE_PPS)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("gaps", lambda: routed.count("h2", "out_of_sequence") >= 5)
    routed.settle("h1", "p2", "h2")
    assert routed.marks("p2").marked_packets == routed.count("h2", "cnp_sent") == 0
    assert routed.marks("p2").dropped_packets >= routed.count("h2", "out_of_sequence")


def test_a_gap_is_answered_with_a_nak(routed: Scene) -> None:
    routed.mark(100 * AMPLE_PPS)
    lose = """table netdev lossy {
        chain o {
            type filter hook egress device p2 priority 10;
            udp dport 4791 numgen inc mod 5 == 4 drop
        }
    }"""
    inside(routed.switch, "nft", "-f", "-", text=lose)
    routed.traffic.start([routed.flow("h1", "h2", SLOW_PPS)])
    until("a gap", lambda: routed.count("h2", "out_of_sequence") >= 3)
    routed.traffic.stop_all()
    until("every NAK", lambda: routed.count("h1", "packet_seq_err") == routed.count("h2", "out_of_sequence"))
    assert routed.count("h2", "duplicate_requests") == 0


def test_cnps_are_well_formed_on_the_wire_and_never_marked(routed: Scene) -> None:
    watch = """table inet watch {
        counter right { }
        counter wrong { }
        chain judge {
            ip dscp 48 ip ecn not-ect @th,96,8 0x40 counter name right return
            counter name wrong
        }
        chain arrivals {
            type filter hook input priority 0;
            udp dport 4791 @th,64,8 0x81 jump judge
        }
    }"""
    inside(routed.hosts["h1"], "nft", "-f", "-", text=watch)
    routed.configure(replace(DEAF, cnp_interval_us=0))
    routed.mark(1)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("CNPs past the rate", lambda: routed.count("h1", "rx_cnp_packets") >= 50)
    routed.settle("h1", "p2", "h2")
    until("every CNP", lambda: routed.count("h1", "rx_cnp_packets") == routed.count("h2", "cnp_sent"))
    assert counters(routed.hosts["h1"]) == {"right": routed.count("h1", "rx_cnp_packets"), "wrong": 0}
    assert routed.marks("p1") == PortMarks()
    assert routed.traffic.traffic("h1")[RAIL].rx_priority_packets[6] == routed.count("h1", "rx_cnp_packets")


@pytest.mark.parametrize(
    "config",
    [DEAF, replace(NIC, settings=replace(NIC.settings, cnp_dscp=4))],
    ids=["reaction is off", "CNPs of another DSCP"],
)
def test_inapplicable_cnps_are_ignored(routed: Scene, config: NicConfig) -> None:
    routed.configure(config)
    routed.mark(SCARCE_PPS)
    assert_ignored(routed)


def test_cnps_that_a_switch_remarks_are_ignored(routed: Scene) -> None:
    routed.mark(SCARCE_PPS)
    rule = "udp dport 4791 ip dscp 48 ip dscp set 4"
    chains = [f"chain {port} {{ type filter hook egress device {port} priority 10; {rule}; }}" for port in routed.names]
    inside(routed.switch, "nft", "-f", "-", text="\n".join(["table netdev remark {", *chains, "}", ""]))
    try:
        assert_ignored(routed)
    finally:
        inside(routed.switch, "nft", "delete", "table", "netdev", "remark")


def assert_ignored(lab: Scene) -> None:
    lab.traffic.start([lab.flow("h1", "h2", FAST_PPS)])
    until("CNPs", lambda: lab.count("h1", "cnp_ignored") >= 5)
    assert lab.traffic.flows()["h1-h2"].slowest_pps == FAST_PPS
    lab.settle("h1", "p2", "h2")
    until("every CNP", lambda: lab.count("h1", "cnp_ignored") == lab.count("h2", "cnp_sent"))
    assert lab.count("h1", "cnp_handled") == 0


def test_a_receiver_without_notification_sends_no_cnp(routed: Scene) -> None:
    routed.configure(replace(NIC, settings=replace(NIC.settings, np_enabled=frozenset())))
    routed.mark(SCARCE_PPS)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("marks", lambda: routed.count("h2", "ecn_marked_packets") >= 30)
    assert routed.count("h2", "cnp_sent") == routed.count("h1", "rx_cnp_packets") == 0


@pytest.mark.parametrize("loss", ["sent", "received"])
def test_a_nic_that_loses_cnps_counts_fewer(routed: Scene, loss: str) -> None:
    routed.configure(replace(NIC, loses_cnps="sent" if loss == "sent" else "received"))
    routed.mark(SCARCE_PPS)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("CNPs", lambda: routed.count("h2", "cnp_sent") >= 5)
    assert routed.count("h1", "rx_cnp_packets") == routed.count("h1", "cnp_handled") == 0
    assert routed.traffic.flows()["h1-h2"].slowest_pps == FAST_PPS


@pytest.mark.parametrize(
    "qos",
    [replace(QOS, ecn={}), replace(QOS, priority_of_dscp=()), replace(QOS, priority_of_dscp=(0,) * 64)],
    ids=["no ECN", "no trust in the DSCP", "another map"],
)
def test_a_switch_that_does_not_recognise_roce_marks_nothing(routed: Scene, qos: QosState) -> None:
    routed.mark(1, qos)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("many packets", lambda: routed.count("h2", "rx_roce_packets") >= 100)
    assert routed.marks("p2") == PortMarks()
    assert routed.count("h2", "ecn_marked_packets") == 0


def test_a_host_with_another_dscp_is_not_marked(routed: Scene) -> None:
    routed.configure(replace(NIC, data_tos=2))
    routed.mark(1)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("many packets", lambda: routed.count("h2", "rx_roce_packets") >= 100)
    assert routed.marks("p2") == PortMarks()
    assert routed.traffic.traffic("h2")[RAIL].rx_priority_packets[0] >= 100


def test_incast_is_marked_where_each_sender_alone_is_not() -> None:
    with scene(hosts=4) as lab:
        lab.configure(DEAF)
        lab.mark(40)
        lab.traffic.start([lab.flow("h1", "h2", SLOW_PPS)])
        until("some packets", lambda: lab.count("h2", "rx_roce_packets") >= 30)
        assert lab.marks("p2").marked_packets == 0
        lab.traffic.start([lab.flow(sender, "h4", 100.0) for sender in ("h1", "h2", "h3")])
        until("marks", lambda: lab.marks("p4").marked_packets >= 30)
        until("CNPs to all", lambda: all(lab.count(host, "cnp_ignored") for host in ("h1", "h2", "h3")))


def test_loading_the_ruleset_again_keeps_the_counts(routed: Scene) -> None:
    routed.mark(SCARCE_PPS)
    routed.traffic.start([routed.flow("h1", "h2", FAST_PPS)])
    until("marks", lambda: routed.marks("p2").marked_packets >= 5)
    routed.settle("h1", "p2", "h2")
    before = routed.marks("p2")
    routed.mark(AMPLE_PPS)
    assert routed.marks("p2") == before
