"""The protocol between snmpd and the lab, with well-formed and with broken messages."""

import math
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import given
from hypothesis import strategies as st

from netkit.lab.agents import snmp_agent
from netkit.lab.agents.snmp_agent import AgentxSession, Pdu, SearchRange, answer
from netkit.lab.agents.snmp_objects import Mib, MibRow, MibTree, Oid, SmiType, counter64, gauge, integer, string

ROWS = (integer((1, 1), -5), gauge((1, 2), 7), counter64((1, 3), 2**64 - 1), string((1, 5), "five"))
TREE = MibTree([Mib((1,), lambda: ROWS)], math.inf)
OIDS = st.lists(st.integers(0, 2**32 - 1), max_size=128).map(tuple)
PATIENCE_S = 120


def packed_oid(oid: Oid, *, is_included: bool = False) -> bytes:
    return struct.pack(f"!BBBx{len(oid)}I", len(oid), 0, is_included, *oid)


def packed(*ranges: SearchRange) -> bytes:
    return b"".join(packed_oid(one.start, is_included=one.is_included) + packed_oid(one.end) for one in ranges)


def head(pdu: Pdu, flags: int = snmp_agent.NETWORK_BYTE_ORDER) -> snmp_agent.Header:
    return snmp_agent.Header(pdu, flags, 1, 2, 3, 0)


@contextmanager
def session() -> Iterator[tuple[socket.socket, list[str]]]:
    lines: list[str] = []
    near, far = socket.socketpair()
    near.settimeout(PATIENCE_S)
    thread = threading.Thread(target=AgentxSession(far, TREE, lines.append).serve)
    thread.start()
    try:
        yield near, lines
    finally:
        near.close()
        thread.join(PATIENCE_S)
        far.close()
    assert not thread.is_alive()


def asked(line: socket.socket, pdu: int, payload: bytes) -> tuple[snmp_agent.Header, bytes]:
    line.sendall(snmp_agent.HEADER.pack(1, pdu, snmp_agent.NETWORK_BYTE_ORDER, 7, 8, 9, len(payload)) + payload)
    return received(line)


def received(line: socket.socket) -> tuple[snmp_agent.Header, bytes]:
    found = snmp_agent.header(line.recv(snmp_agent.HEADER.size, socket.MSG_WAITALL))
    return found, line.recv(found.length, socket.MSG_WAITALL)


@given(st.lists(st.tuples(OIDS, st.booleans(), OIDS), max_size=4))
def test_ranges_survive_a_round_trip(wanted: list[tuple[Oid, bool, Oid]]) -> None:
    ranges = [SearchRange(*one) for one in wanted]
    assert list(snmp_agent.ranges(packed(*ranges))) == ranges


def test_a_prefix_stands_for_the_internet_subtree() -> None:
    payload = struct.pack("!BBBx2I", 2, 4, 1, 1, 9) + packed_oid(())
    assert list(snmp_agent.ranges(payload)) == [SearchRange((1, 3, 6, 1, 4, 1, 9), True, ())]


def test_get_returns_existing_objects_and_marks_the_others() -> None:
    payload = packed(SearchRange((1, 2), False, ()), SearchRange((1, 4), False, ()))
    assert answer(TREE, head(Pdu.GET), payload) == snmp_agent.response([ROWS[1], snmp_agent.Missing((1, 4), 128)])


def test_a_context_before_the_ranges_is_skipped() -> None:
    payload = struct.pack("!I", 5) + b"other\0\0\0" + packed(SearchRange((1, 2), False, ()))
    flags = snmp_agent.NETWORK_BYTE_ORDER | snmp_agent.NON_DEFAULT_CONTEXT
    assert answer(TREE, head(Pdu.GET, flags), payload) == snmp_agent.response([ROWS[1]])


def test_bulk_repeats_getnext_until_the_end() -> None:
    payload = struct.pack("!HH", 1, 3) + packed(SearchRange((1, 4), False, ()), SearchRange((1, 2), False, ()))
    end = snmp_agent.Missing((1, 5), snmp_agent.END_OF_MIB_VIEW)
    assert answer(TREE, head(Pdu.GET_BULK), payload) == snmp_agent.response([ROWS[3], ROWS[2], ROWS[3], end])


def test_a_getnext_stops_before_its_end() -> None:
    payload = packed(SearchRange((1, 3), False, (1, 5)), SearchRange((1, 3), True, (1, 5)))
    wanted: list[snmp_agent.Varbind] = [snmp_agent.Missing((1, 3), snmp_agent.END_OF_MIB_VIEW), ROWS[2]]
    assert answer(TREE, head(Pdu.GET_NEXT), payload) == snmp_agent.response(wanted)


def test_values_have_the_width_of_their_type() -> None:
    row = MibRow((1,), SmiType.OBJECT, (1, 3))
    assert snmp_agent.response([row])[8:] == struct.pack("!Hxx", 6) + packed_oid((1,)) + packed_oid((1, 3))
    assert snmp_agent.response([ROWS[0]])[-4:] == struct.pack("!i", -5)
    assert snmp_agent.response([ROWS[2]])[-8:] == b"\xff" * 8
    assert snmp_agent.response([string((1,), "five!")])[-12:] == struct.pack("!I", 5) + b"five!\0\0\0"


def test_nothing_can_be_set_over_the_protocol() -> None:
    with session() as (line, _):
        _, payload = asked(line, Pdu.TEST_SET, b"")
        assert snmp_agent.response_error(payload) == snmp_agent.NOT_WRITABLE


@given(st.sampled_from([5, 6, 7, 8, 9, 10, 13, 200]), st.binary(max_size=64))
def test_a_malformed_request_is_answered_and_the_session_continues(pdu: int, payload: bytes) -> None:
    with session() as (line, _):
        found, _ = asked(line, pdu, payload)
        assert (found.pdu, found.session, found.transaction, found.packet) == (Pdu.RESPONSE, 7, 8, 9)
        _, good = asked(line, Pdu.GET, packed(SearchRange((1, 2), False, ())))
        assert good == snmp_agent.response([ROWS[1]])


def test_values_that_cannot_be_computed_fail_only_their_request() -> None:
    def broken() -> list[MibRow]:
        raise RuntimeError("no such port")

    lines: list[str] = []
    near, far = socket.socketpair()
    near.settimeout(PATIENCE_S)
    thread = threading.Thread(target=AgentxSession(far, MibTree([Mib((1,), broken)]), lines.append).serve)
    thread.start()
    _, payload = asked(near, Pdu.GET, packed(SearchRange((1, 2), False, ())))
    assert snmp_agent.response_error(payload) == snmp_agent.GENERAL_ERROR
    near.sendall(snmp_agent.message(Pdu.CLOSE, b""))
    thread.join(PATIENCE_S)
    near.close()
    far.close()
    assert not thread.is_alive()
    assert lines == ["snmp: RuntimeError: no such port"]
