"""Parsing ping output: how many packets were sent, and when no replies came."""

from netkit.lab.proof import Gap, PingResult, parse_ping

BEGAN_S = 1000.0
INTERVAL_S = 0.5


def reported(*numbers: int, sent: int) -> str:
    """The output of ping when these packets were answered."""
    lines = [
        f"[{BEGAN_S + number * INTERVAL_S + 0.001:.6f}] 64 bytes from 127.0.0.1: icmp_seq={number} ttl=62 time=1.00 ms"
        for number in numbers
    ]
    tail = f"{sent} packets transmitted, {len(numbers)} received, 0% packet loss, time 1ms"
    return "\n".join(["PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.", *lines, "", tail])


def heard(*numbers: int, sent: int) -> PingResult:
    return parse_ping("a", reported(*numbers, sent=sent), BEGAN_S, BEGAN_S + sent * INTERVAL_S)


def test_an_answered_ping_has_no_gaps() -> None:
    assert heard(1, 2, 3, sent=3) == PingResult("a", 3, ())


def test_the_last_packet_may_still_be_in_flight() -> None:
    assert heard(1, 2, sent=3) == PingResult("a", 3, ())


def test_a_gap_lies_between_the_answered_packets_around_it() -> None:
    assert heard(1, 4, 5, sent=5) == PingResult("a", 5, (Gap(1000.5, 1002.0, 2),))


def test_answers_out_of_order_are_no_gap() -> None:
    assert heard(2, 1, 4, 3, sent=4) == PingResult("a", 4, ())


def test_gaps_at_the_beginning_and_at_the_end_count() -> None:
    assert heard(3, sent=6) == PingResult("a", 6, (Gap(1000.0, 1001.5, 2), Gap(1001.5, 1003.0, 3)))


def test_sequence_numbers_may_wrap() -> None:
    numbers = [*range(1, 65_530), 65_535, 0, 1, 4, 3, 2, 5]
    found = heard(*numbers, sent=65_541)
    assert (found.sent, [gap.lost for gap in found.gaps]) == (65_541, [5])


def test_a_ping_without_any_reply_is_one_gap() -> None:
    assert heard(sent=4) == PingResult("a", 4, (Gap(1000.0, 1002.0, 4),))


def test_packets_without_a_route_count_at_their_time() -> None:
    lines = reported(1, 2, 4, sent=4).splitlines()
    text = "\n".join([*lines[:3], *["ping: sendmsg: Network is unreachable"] * 3, *lines[3:]])
    assert parse_ping("a", text, BEGAN_S, BEGAN_S + 4) == PingResult("a", 7, (Gap(1001.0, 1002.0, 4),))
    text = "\n".join([*["ping: sendmsg: Network is unreachable"] * 2, "", "0 packets transmitted, 0 received"])
    assert parse_ping("a", text, BEGAN_S, BEGAN_S + 4) == PingResult("a", 2, (Gap(1000.0, 1004.0, 2),))


def test_a_ping_that_cannot_start_reports_why() -> None:
    found = parse_ping("a", "ping: connect: Network is unreachable\n", BEGAN_S, BEGAN_S)
    assert found == PingResult("a", 0, (), "ping: connect: Network is unreachable")
