"""RoCEv2 packets as bytes, checked against the layout of the InfiniBand specification and against themselves."""

from hypothesis import given
from hypothesis import strategies as st

from netkit.lab.traffic import nic
from netkit.lab.traffic.nic import PSN_MODULUS, Packet

pairs = st.integers(0, PSN_MODULUS - 1)
packets = st.builds(
    Packet,
    opcode=st.integers(0, 255),
    queue_pair=pairs,
    psn=pairs,
    payload=st.binary(max_size=64),
    has_fecn=st.booleans(),
    has_becn=st.booleans(),
    wants_acknowledgement=st.booleans(),
)


@given(packets)
def test_packets_survive_a_round_trip(sent: Packet) -> None:
    assert nic.decode(sent.encode()) == sent


@given(packets)
def test_a_packet_is_a_multiple_of_four_bytes(sent: Packet) -> None:
    assert len(sent.encode()) % 4 == 0


@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_refused(datagram: bytes) -> None:
    decoded = nic.decode(datagram)
    assert decoded is None or nic.decode(decoded.encode()) == decoded


def test_the_bytes_of_a_cnp() -> None:
    header = bytes.fromhex("81 00 ffff 40 012345 00 000000")
    assert nic.cnp(0x012345) == header + bytes(16) + b"\xff\xff\xff\xff"


def test_the_bytes_of_data() -> None:
    header = bytes.fromhex("04 10 ffff 00 000007 00 00abcd")
    assert nic.data(7, 0xABCD, 3) == header + bytes(4) + b"\xff\xff\xff\xff"


def test_a_nak_names_the_missing_packet() -> None:
    header = bytes.fromhex("11 00 ffff 00 000007 00 00abcd")
    raw = nic.nak(7, 0xABCD)
    assert raw == header + bytes.fromhex("60 000000") + b"\xff\xff\xff\xff"
    decoded = nic.decode(raw)
    assert decoded is not None
    assert nic.is_nak(decoded)


def test_short_packets_and_other_versions_are_refused() -> None:
    whole = nic.data(1, 1, 0)
    assert nic.decode(whole[:-1]) is None
    assert nic.decode(whole[:1] + b"\x01" + whole[2:]) is None


@given(pairs)
def test_source_ports_are_dynamic_ones(pair: int) -> None:
    assert 0xC000 <= nic.source_port(pair) <= 0xFFFF


def test_flows_that_start_together_take_different_source_ports() -> None:
    assert len({nic.source_port(2 * number + 1) for number in range(4096)}) == 4096
