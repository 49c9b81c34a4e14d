from dataclasses import replace

import pytest

from netkit.facts import Facts, Observation
from netkit.facts.device import Interface
from netkit.facts.qos import Buffer, PortQos
from netkit.judge import CheckContext, Finding, Verdict
from netkit.judge.cause import cause_groups
from tests.checks.judging import judge, results, said, shipped, skipped
from tests.judge.scenes import fabric, moved, observation, scene

BUILT = fabric()


def host(name: str, sent: int, handled: int, ignored: int = 0, marked: int = 0) -> Observation:
    """A host whose first NIC has these counters; those of its second one stay at zero."""
    counts = {"cnp_sent": sent, "cnp_handled": handled, "cnp_ignored": ignored, "ecn_received": marked}
    rows = {key: {"rail0": (7, 7 + count), "rail1": (0, 0)} for key, count in counts.items()}
    return observation(name, None, **rows)


def rails(*hosts: Observation) -> CheckContext:
    return scene(BUILT, *hosts)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((1000, 400), (600, 1200), []),
        (
            (100_000, 0),
            (0, 98_500),
            [("warn", "1.5 % of its CNPs never arrive: sent 100000, handled 98500, ignored 0, CE 0")],
        ),
        ((1000, 0), (0, 985), []),
        ((796, 0), (0, 126), [("fail", "84.2 % of its CNPs never arrive: sent 796, handled 126, ignored 0, CE 0")]),
        ((1000, 0), (0, 300), [("fail", "70.0 % of its CNPs never arrive: sent 1000, handled 300, ignored 0, CE 0")]),
        (
            (1000, 0),
            (0, 1200),
            [("fail", "20.0 % more CNPs arrive than are sent: sent 1000, handled 1200, ignored 0, CE 0")],
        ),
        ((0, 0), (0, 500), [("warn", "more CNPs are handled than sent: sent 0, handled 500, ignored 0, CE 0")]),
        ((2, 0), (0, 0), []),
    ],
)
def test_cnps_sent_by_a_rail_arrive_at_its_senders(
    first: tuple[int, int], second: tuple[int, int], expected: list[tuple[str, str]]
) -> None:
    found = said(rails(host("gpu01", *first), host("gpu02", *second)), "ecn-cnp.parity")
    assert [(verdict, text) for verdict, _, _, text in found] == expected


def test_an_incompletely_read_rail_is_not_judged() -> None:
    found = rails(host("gpu01", 1000, 0))
    assert said(found, "ecn-cnp.parity") == []
    assert skipped(found, "ecn-cnp.parity")[0] == ("", "rail 0", "not all of its NICs were read: gpu02")
    limited = scene(BUILT, host("gpu01", 1000, 0), names=frozenset({"gpu01"}))
    assert skipped(limited, "ecn-cnp.parity")[0][2].endswith("hosts that are not part of this run")


def test_a_rail_whose_senders_ignore_every_cnp_fails() -> None:
    found = rails(host("gpu01", 1000, 0), host("gpu02", 0, 0, ignored=1000))
    assert said(found, "ecn-cnp.parity") == [
        ("fail", "", "rail 0", "senders ignore CNPs: sent 1000, handled 0, ignored 1000, CE 0")
    ]


@pytest.mark.parametrize(
    ("marks", "marked", "unread", "is_told"),
    [(0, 0, "", True), (5000, 0, "", False), (0, 4000, "", False), (0, 0, "spine02", False)],
    ids=["no marks", "switches mark", "CE arrives", "a switch was not read"],
)
def test_cnps_without_marks_are_not_plausible(marks: int, marked: int, unread: str, *, is_told: bool) -> None:
    switches = [
        observation(one.name, ecn_marked={port.name: (0, marks) for port in one.ports})
        for one in BUILT.switches
        if one.name != unread
    ]
    found = rails(host("gpu01", 1000, 0, marked=marked), host("gpu02", 0, 1000), *switches)
    text = f"CNPs are sent though no switch marks a packet: sent 1000, handled 1000, ignored 0, CE {marked}"
    assert said(found, "ecn-cnp.parity") == ([("warn", "", "rail 0", text)] if is_told else [])


def test_counters_that_a_nic_lacks_are_not_reported_as_zero() -> None:
    bare = observation("gpu02", cnp_sent={"rail0": (0, 0)}, cnp_handled={"rail0": (0, 500)})
    assert [text for *_, text in said(rails(host("gpu01", 1000, 0), bare), "ecn-cnp.parity")] == [
        "50.0 % of its CNPs never arrive: sent 1000, handled 500, ignored not reported by all, CE not reported by all"
    ]


@pytest.mark.parametrize(
    ("is_up", "packets", "is_judged"), [(False, 0, True), (True, 0, False), (False, 70, False), (None, 0, False)]
)
def test_a_host_that_is_switched_off_does_not_block_judging_a_rail(
    is_up: bool | None, packets: int, *, is_judged: bool
) -> None:
    three = fabric(units=[{"unit": 1, "hosts": 3}])
    off = three.hosts[2].nics[0]
    leaf = observation(
        "leaf01",
        Facts(interfaces={off.leaf_port: Interface(is_up=is_up)}),
        tx_packets={off.leaf_port: (9, 9 + packets)},
    )
    found = scene(three, host("gpu01", 1000, 0), host("gpu02", 0, 300), leaf)
    assert bool(said(found, "ecn-cnp.parity")) == is_judged
    if not is_judged:
        assert ("", "rail 0", "not all of its NICs were read: gpu03") in skipped(found, "ecn-cnp.parity")


def test_few_counts_are_not_judged_and_many_unanswered_marks_fail() -> None:
    found = rails(host("gpu01", 2, 0), host("gpu02", 0, 0))
    assert results(found, "ecn-cnp.parity")["fabric"].examined == 0
    mute = rails(host("gpu01", 0, 0, marked=5000), host("gpu02", 0, 0))
    assert [text for *_, text in said(mute, "ecn-cnp.parity")] == [
        "packets arrive with CE and no NIC sends CNPs: sent 0, handled 0, ignored 0, CE 5000"
    ]
    uncounted = rails(host("gpu01", 0, 0, marked=5000), host("gpu02", 0, 300))
    assert [text for *_, text in said(uncounted, "ecn-cnp.parity")] == [
        (
            "packets arrive with CE and CNPs are handled though no NIC counts one as sent: "
            "sent 0, handled 300, ignored 0, CE 5000"
        )
    ]


def test_a_nic_that_drops_cnps_is_identified_by_what_its_leaf_delivers() -> None:
    leaf = observation("leaf01", queue_tx_packets={"swp1s0/6": (0, 980), "swp1s1/6": (0, 20)})
    found = rails(host("gpu01", 0, 0), host("gpu02", 1000, 20), leaf)
    (one,) = [one for one in results(found, "ecn-cnp.parity")["fabric"].findings if one.text.startswith("98.0 %")]
    assert (one.device, one.place) == ("gpu01", "rail0")
    assert dict(one.evidence)["places"] == "gpu01:rail0 counts 0 of the 980 its leaf delivers"


def test_a_nic_that_drops_cnps_is_identified_although_another_of_its_rail_was_not_read() -> None:
    leaf = observation("leaf01", queue_tx_packets={"swp1s0/6": (0, 980), "swp1s1/6": (0, 20)})
    found = rails(host("gpu01", 0, 0), leaf)
    text = "CNPs are lost in it: gpu01:rail0 counts 0 of the 980 its leaf delivers"
    assert said(found, "ecn-cnp.parity") == [("fail", "gpu01", "rail0", text)]
    assert said(rails(host("gpu01", 0, 975), leaf), "ecn-cnp.parity") == []


def test_a_nic_that_sends_less_than_it_counts_is_named() -> None:
    sender = host("gpu01", 1000, 0)
    counters = {**sender.samples[1].counters, "priority_tx_packets": {"rail0/6": 30}}
    last = replace(sender.samples[1], counters=counters)
    first = replace(sender.samples[0], counters={**sender.samples[0].counters, "priority_tx_packets": {"rail0/6": 0}})
    found = rails(replace(sender, samples=(first, last)), host("gpu02", 0, 25))
    (one,) = [one for one in results(found, "ecn-cnp.parity")["fabric"].findings if one.verdict is Verdict.FAIL]
    assert (one.device, one.place) == ("gpu01", "rail0")
    assert dict(one.evidence)["places"] == "gpu01:rail0 counts 1000 as sent, and 30 packets leave it on priority 6"


@pytest.mark.parametrize(("cnp_priority", "causes"), [(6, 2), (3, 1)], ids=["set for CNPs", "not set for CNPs"])
def test_a_nic_that_loses_cnps_with_correct_settings_is_a_separate_cause(cnp_priority: int, causes: int) -> None:
    """Disabled PFC or constant pausing does not explain that a NIC loses CNPs."""
    dscp = {**dict.fromkeys(range(64), 0), 26: 3, 48: 6}
    shown = PortQos(
        pfc_rx=frozenset(), pfc_tx=frozenset(), dscp_to_priority=dscp, cnp_dscp=48, cnp_priority=cnp_priority
    )
    nic = observation("gpu01", Facts(qos={"rail0": shown}), cnp_sent={"rail0": (0, 0)}, cnp_handled={"rail0": (0, 0)})
    leaf = observation("leaf01", queue_tx_packets={"swp1s0/6": (0, 980)})
    found = scene(BUILT, nic, host("gpu02", 1000, 20), leaf)
    checks = [one for name, one in shipped().items() if name in {"qos.nic", "ecn-cnp.parity"}]
    groups = cause_groups(judge(found, checks).findings, {one.name: one.layer for one in checks})
    heads = {one.head.check for one in groups}
    assert heads == {"qos.nic", "ecn-cnp.parity"} if causes == 2 else {"qos.nic"}


def test_a_nic_whose_counters_were_read_at_different_times_is_not_blamed_for_it() -> None:
    sender = host("gpu01", 82, 0)
    left = [replace(one, counters={**one.counters, "priority_tx_packets": {"rail0/6": 0}}) for one in sender.samples]
    left[1] = replace(left[1], counters={**left[1].counters, "priority_tx_packets": {"rail0/6": 72}})
    found = rails(replace(sender, samples=tuple(left)), host("gpu02", 0, 0))
    (one,) = [one for one in results(found, "ecn-cnp.parity")["fabric"].findings if one.verdict is Verdict.FAIL]
    assert (one.device, one.place) == ("", "rail 0")


def test_a_cnp_loss_is_reported_with_its_pair_and_hops() -> None:
    odd = observation("leaf01", Facts(qos={"swp1s0": PortQos(dscp_to_priority={48: 0}), "swp1s1": MAPPED}))
    other = observation("leaf02", Facts(qos={"swp1s0": PortQos(dscp_to_priority={48: 0})}))
    (one,) = said_of(rails(host("gpu01", 1000, 0), host("gpu02", 0, 300), odd, other))
    assert dict(one.evidence)["between"] == "gpu01:rail0 to gpu02:rail0"
    assert dict(one.evidence)["hops"] == "leaf01:swp1s0 maps them to priority 0"
    (one,) = said_of(rails(host("gpu01", 1000, 0), host("gpu02", 0, 300)))
    assert dict(one.evidence)["hops"] == "all that report it map DSCP 48 to priority 6"


def said_of(found: CheckContext) -> list[Finding]:
    """Warnings and failures of CNP parity for the first rail."""
    return [one for one in results(found, "ecn-cnp.parity")["fabric"].findings if one.verdict is Verdict.FAIL]


def test_a_queue_that_drops_cnps_is_named() -> None:
    leaf = observation("leaf01", queue_drops={"swp1s1/6": (2, 702), "swp1s1/0": (0, 9)})
    found = rails(host("gpu01", 1000, 0), host("gpu02", 0, 300), leaf)
    (one,) = [one for one in results(found, "ecn-cnp.parity")["fabric"].findings if one.verdict is Verdict.FAIL]
    assert (one.device, one.place) == ("leaf01", "swp1s1")
    assert dict(one.evidence)["places"] == "leaf01:swp1s1 drops 700 in their queue"


def test_a_leaf_of_another_rail_and_a_hop_that_loses_few_are_not_blamed() -> None:
    other = observation("leaf02", queue_drops={"swp1s0/6": (0, 5000)})
    near = observation("leaf01", queue_drops={"swp1s0/6": (0, 30)})
    found = rails(host("gpu01", 1000, 0), host("gpu02", 0, 300), other, near)
    (one,) = [one for one in results(found, "ecn-cnp.parity")["fabric"].findings if one.verdict is Verdict.FAIL]
    assert (one.device, one.place) == ("", "rail 0")
    assert dict(one.evidence)["places"].startswith("not located")


def test_few_cnps_for_many_marks_are_an_answer() -> None:
    found = rails(host("gpu01", 6428, 0, marked=900_000), host("gpu02", 0, 6428))
    assert said(found, "ecn-cnp.parity") == []
    assert results(found, "ecn-cnp.parity")["fabric"].examined == 1


def test_a_loss_that_few_counts_can_neither_show_nor_exclude_is_skipped() -> None:
    found = rails(host("gpu01", 1000, 0), host("gpu02", 0, 985))
    text = "too few CNPs to judge, up to 4 % may be lost: sent 1000, handled 985, ignored 0, CE 0"
    assert skipped(found, "ecn-cnp.parity")[0] == ("", "rail 0", text)


@pytest.mark.parametrize(
    ("on_priority", "remedy"),
    [
        (590, "see the reaction point of the NICs: netkit check qos"),
        (0, "they arrive on another priority than theirs: netkit check ecn-cnp.queue qos names the hop"),
    ],
)
def test_ignored_cnps_are_reported_with_what_to_inspect(on_priority: int, remedy: str) -> None:
    near, far = host("gpu01", 1000, 500), host("gpu02", 0, 440, ignored=60)
    seen = [with_counter(near, "priority_rx_packets", "rail0/6", on_priority and 500), far]
    seen[1] = with_counter(far, "priority_rx_packets", "rail0/6", on_priority and 500)
    (one,) = results(rails(*seen), "ecn-cnp.parity")["fabric"].findings[:1]
    assert one.text == "senders ignore CNPs: sent 1000, handled 940, ignored 60, CE 0"
    assert one.remedy == remedy


def with_counter(seen: Observation, name: str, place: str, count: int) -> Observation:
    """Counters with one more, which starts at zero."""
    ends = zip(seen.samples, (0, count), strict=True)
    return replace(seen, samples=tuple(replace(one, counters={**one.counters, name: {place: at}}) for one, at in ends))


@pytest.mark.parametrize(
    ("received", "sent", "text"),
    [
        (0, 0, "marks do not arrive: switches mark 5000, NICs receive 0 with CE and send 0 CNPs"),
        (90, 0, "marks are not answered: switches mark 5000, NICs receive 90 with CE and send 0 CNPs"),
        (90, 50, ""),
    ],
)
def test_marks_arrive_and_are_answered(received: int, sent: int, text: str) -> None:
    up = next(port.name for port in BUILT.switch("leaf01").ports if port.role == "up")
    leaf = observation("leaf01", queue_ecn_marked={f"{up}/3": (5, 5005), f"{up}/0": (0, 77)})
    found = rails(host("gpu01", sent, 0, marked=received), host("gpu02", 0, 0), leaf)
    assert [output for *_, output in said(found, "ecn-cnp.marks")] == ([text] if text else [])


@pytest.mark.parametrize(("sent", "judged"), [(45, 1), (1, 0), (0, 0)])
def test_few_marks_that_are_surely_answered_pass(sent: int, judged: int) -> None:
    leaf = observation("leaf01", queue_ecn_marked={"swp1s0/3": (5, 52)})
    found = rails(host("gpu01", sent, 0, marked=47), host("gpu02", 0, sent), leaf)
    assert results(found, "ecn-cnp.marks")["fabric"].examined == judged


def test_a_loss_explained_by_different_windows_is_not_judged() -> None:
    near, far = host("gpu01", 1000, 0), host("gpu02", 0, 850)
    found = rails(near, moved(far, -1.0, -1.0))
    assert said(found, "ecn-cnp.parity") == []
    text = (
        "15.0 % of its CNPs never arrive: sent 1000, handled 850, ignored 0, CE 0; that may be since its NICs were not "
        "read at the same moment, 2.0 s apart in 10 s: give --window 200"
    )
    assert skipped(found, "ecn-cnp.parity")[0] == ("", "rail 0", text)
    assert skipped(rails(near, moved(far, -7000, 0)), "ecn-cnp.parity")[0][2].endswith(", 7000.0 s apart in 10 s")
    nothing = rails(near, moved(host("gpu02", 0, 0), -1.0, -1.0))
    assert [verdict for verdict, *_ in said(nothing, "ecn-cnp.parity")] == ["fail"]
    little = rails(near, moved(far, -0.1, 0))
    assert [verdict for verdict, *_ in said(little, "ecn-cnp.parity")] == ["fail"]


def test_marks_are_not_judged_if_counters_of_a_host_were_reset_or_hosts_excluded() -> None:
    leaf = observation("leaf01", queue_ecn_marked={"swp1s1/3": (0, 5000)})
    reset = observation("gpu02", cnp_sent={"rail0": (900, 3), "rail1": (0, 0)}, ecn_received={"rail0": (900, 3)})
    found = rails(host("gpu01", 0, 0), reset, leaf)
    assert said(found, "ecn-cnp.marks") == []
    assert skipped(found, "ecn-cnp.marks") == [("", "", "not all hosts were read: gpu02")]
    limited = scene(BUILT, host("gpu01", 0, 0), leaf, names=frozenset({"gpu01", "leaf01"}))
    assert skipped(limited, "ecn-cnp.marks") == [
        ("", "", "not all hosts were read: hosts that are not part of this run")
    ]


def test_one_nic_that_answers_no_marks_is_named_although_others_answer() -> None:
    leaf = observation("leaf01", queue_ecn_marked={"swp1s0/3": (0, 5000), "swp1s1/3": (0, 5000)})
    found = rails(host("gpu01", 900, 0), host("gpu02", 0, 900), leaf)
    assert said(found, "ecn-cnp.marks") == [
        ("fail", "gpu02", "rail0", "answers none of the 5000 packets that its leaf marks towards it")
    ]


def queues(name: str, **sent: int) -> Observation:
    """A switch with this number of packets in the CNP queue of each port; other ports sent none."""
    ports = [port.name for port in BUILT.switch(name).ports]
    return observation(name, queue_tx_packets={f"{port}/6": (3, 3 + sent.get(port, 0)) for port in ports})


def nic(name: str, handled: int, on_priority: int, qos: PortQos | None = None) -> Observation:
    """A host with these counts at its first NIC: packets taken for CNPs, and packets received on their priority."""
    facts = Facts(qos={"rail0": qos}) if qos else None
    return observation(
        name, facts, cnp_handled={"rail0": (0, handled)}, priority_rx_packets={"rail0/6": (0, on_priority)}
    )


MAPPED = PortQos(dscp_to_priority={48: 6})


def test_cnps_in_their_own_queue_pass() -> None:
    found = rails(queues("leaf01", swp1s1=500), nic("gpu02", 500, 490))
    assert said(found, "ecn-cnp.queue") == []
    assert results(found, "ecn-cnp.queue")["fabric"].examined == 1
    few = rails(queues("leaf01", swp1s1=5), nic("gpu02", 5, 0))
    assert results(few, "ecn-cnp.queue")["fabric"].examined == 0


def test_cnps_on_another_priority_are_reported_at_the_port_that_remarked_them() -> None:
    found = rails(queues("leaf01", swp1s1=500), nic("gpu02", 500, 0, MAPPED))
    assert said(found, "ecn-cnp.queue") == [
        ("fail", "leaf01", "swp1s1", "gives CNPs another DSCP: 500 leave in their queue, 0 stay in it at gpu02:rail0")
    ]


def test_a_leaf_that_remarks_cnps_at_all_its_ports_is_one_cause() -> None:
    found = rails(queues("leaf01", swp1s0=400, swp1s1=500), nic("gpu01", 400, 0, MAPPED), nic("gpu02", 500, 0, MAPPED))
    output = judge(found, [shipped()["ecn-cnp.queue"]]).findings
    (one,) = cause_groups(output, {})
    assert [(each.device, each.place) for each in one.findings] == [("leaf01", "swp1s0"), ("leaf01", "swp1s1")]


def test_cnps_on_another_priority_are_reported_although_the_leaf_counts_nothing() -> None:
    found = rails(nic("gpu02", 500, 0, MAPPED))
    text = "gives CNPs another DSCP: 500 leave in their queue, 0 stay in it at gpu02:rail0"
    assert said(found, "ecn-cnp.queue") == [("fail", "leaf01", "swp1s1", text)]


@pytest.mark.parametrize(("on_priority", "strays"), [(500, 0), (0, 1)])
def test_a_nic_that_drops_cnps_still_counts_their_priority(on_priority: int, strays: int) -> None:
    counts = {"cnp_sent": {"rail0": (0, 500)}, "cnp_handled": {"rail0": (0, 0)}}
    sender = observation("gpu01", cnp_sent=counts["cnp_sent"], cnp_handled=counts["cnp_handled"])
    swallower = observation(
        "gpu02",
        Facts(qos={"rail0": MAPPED}),
        cnp_sent={"rail0": (0, 0)},
        cnp_handled={"rail0": (0, 0)},
        priority_rx_packets={"rail0/6": (0, on_priority)},
    )
    judged = judge(scene(BUILT, queues("leaf01", swp1s1=500), sender, swallower), tuple(shipped().values()))
    causes = [(one.head.check, one.head.device) for one in cause_groups(judged.findings, {})]
    assert sorted(causes) == [("ecn-cnp.parity", "gpu02"), ("ecn-cnp.queue", "leaf01")][: 1 + strays]


def test_a_device_not_known_to_map_cnps_correctly_is_blamed_itself() -> None:
    wrong = PortQos(dscp_to_priority={48: 0})
    found = rails(queues("leaf01", swp1s1=500), nic("gpu02", 500, 0, wrong))
    text = "takes CNPs out of their queue: leaf01:swp1s1 sends 500 in it, 0 stay in it"
    assert said(found, "ecn-cnp.queue") == [("fail", "gpu02", "rail0", text)]


def test_a_switch_that_forwards_cnps_in_another_queue_is_reported_with_their_ingress_cable() -> None:
    up = next(port for port in BUILT.switch("leaf01").ports if port.peer == "spine01")
    found = rails(queues("leaf01", **{up.name: 400}), queues("spine01"), queues("leaf02"))
    text = f"takes CNPs out of their queue: leaf01:{up.name} sends 400 in it, 0 stay in it"
    assert said(found, "ecn-cnp.queue") == [("fail", "spine01", up.peer_port, text)]


def spine_of(first: int, second: int, passed_on: int) -> CheckContext:
    """Two leaves that send this many CNPs each to a spine, which forwards that many."""
    ups = {leaf: next(port for port in BUILT.switch(leaf).ports if port.peer == "spine01") for leaf in LEAVES}
    down = ups["leaf02"].peer_port
    sent = dict(zip(LEAVES, (first, second), strict=True))
    leaves = [queues(leaf, **{up.name: sent[leaf]}) for leaf, up in ups.items()]
    return rails(*leaves, queues("spine01", **{down: passed_on}))


LEAVES = ("leaf01", "leaf02")


@pytest.mark.parametrize(("first", "second"), [(900, 176), (176, 900)])
def test_a_spine_is_blamed_only_for_the_ingress_port_of_the_missing_cnps(first: int, second: int) -> None:
    remarking = "leaf01" if first == 900 else "leaf02"
    (one,) = said(spine_of(first, second, 176), "ecn-cnp.queue")
    up = next(port for port in BUILT.switch(remarking).ports if port.peer == "spine01")
    text = f"takes CNPs out of their queue: {remarking}:{up.name} sends 900 in it, 0 stay in it"
    assert one == ("fail", "spine01", up.peer_port, text)


def test_ports_that_counts_cannot_distinguish_are_all_named() -> None:
    ups = [next(port for port in BUILT.switch(leaf).ports if port.peer == "spine01") for leaf in LEAVES]
    text = f"of 352 CNPs sent to it in their queue, 176 stay in it; by leaf01:{ups[0].name} or leaf02:{ups[1].name}"
    assert said(spine_of(176, 176, 176), "ecn-cnp.queue") == [("fail", "spine01", "", text)]


def congested(marks: int, used_bytes: int, moved: int = 5000) -> Observation:
    """A leaf whose first port has this many marked packets and queued bytes."""
    facts = Facts(buffers={"swp1s0/3": Buffer(used_bytes=used_bytes)})
    return observation(
        "leaf01", facts, queue_ecn_marked={"swp1s0/3": (4, 4 + marks)}, queue_tx_packets={"swp1s0/3": (0, moved)}
    )


@pytest.mark.parametrize(
    ("leaf", "is_told"),
    [
        (congested(0, 3_000_000), True),
        (congested(3, 3_000_000), False),
        (congested(0, 900_000), False),
        (congested(0, 3_000_000, moved=7), False),
    ],
    ids=["full and unmarked", "full and marked", "not full", "full and still"],
)
def test_a_full_queue_without_marks_is_reported(leaf: Observation, is_told: bool) -> None:
    text = "its RoCE queue holds more than 1,500,000 bytes, and none of its packets is marked"
    assert said(rails(leaf), "ecn-cnp.unmarked") == ([("fail", "leaf01", "swp1s0", text)] if is_told else [])


@pytest.mark.parametrize(("marks", "arriving", "is_told"), [(0, 0, True), (2, 0, False), (0, 900_000, False)])
def test_a_switch_that_originates_pauses_without_marking_is_reported(marks: int, arriving: int, is_told: bool) -> None:
    ports = [port.name for port in BUILT.switch("leaf01").ports]
    seen = observation(
        "leaf01",
        ecn_marked=dict.fromkeys(ports, (0, marks)),
        tx_pause={f"{port}/3": (0, 900_000) for port in ports},
        rx_pause={f"{port}/3": (0, arriving) for port in ports},
    )
    text = "it pauses its neighbours without being paused, and none of its packets is marked"
    assert said(rails(seen), "ecn-cnp.unmarked") == ([("fail", "leaf01", "", text)] if is_told else [])


def test_a_switch_that_does_not_report_received_pauses_is_not_their_origin() -> None:
    ports = [port.name for port in BUILT.switch("leaf01").ports]
    seen = observation(
        "leaf01",
        ecn_marked=dict.fromkeys(ports, (0, 0)),
        tx_pause={f"{port}/3": (0, 900_000) for port in ports},
    )
    assert said(rails(seen), "ecn-cnp.unmarked") == []
