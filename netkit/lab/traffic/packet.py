"""RoCEv2 packets: what follows the UDP header.

The base transport header is real. The invariant CRC is filler, because computing it would cost more than sending.
"""

import struct
from dataclasses import dataclass

PORT = 4791
SEND_ONLY = 0x04
"""Reliable connection, one message in one packet."""
ACKNOWLEDGE = 0x11
CNP = 0x81
NAK_SEQUENCE_ERROR = 0x60

NOT_ECT = 0
ECT0 = 2
CE = 3

PSN_MODULUS = 1 << 24
FIRST_SOURCE_PORT = 0xC000
SOURCE_PORTS = 0x4000
"""RoCEv2 senders take source ports from the dynamic range, so that the paths of flows differ."""

_HEADER = struct.Struct("!BBHII")
_ICRC_FILLER = b"\xff\xff\xff\xff"
_CNP_RESERVED = bytes(16)
_DEFAULT_PKEY = 0xFFFF
_BECN = 1 << 30
_FECN = 1 << 31
_ACK_REQUEST = 1 << 31
SMALLEST_BYTES = _HEADER.size + len(_ICRC_FILLER)


@dataclass(frozen=True, slots=True)
class Packet:
    """A base transport header and what it carries."""

    opcode: int
    queue_pair: int
    psn: int = 0
    payload: bytes = b""
    has_fecn: bool = False
    has_becn: bool = False
    wants_acknowledgement: bool = False

    def encode(self) -> bytes:
        """Return the UDP payload; its padding brings the payload to whole words, as the header says."""
        pad = -len(self.payload) % 4
        flags = _FECN * self.has_fecn | _BECN * self.has_becn
        sequence = _ACK_REQUEST * self.wants_acknowledgement | self.psn
        header = _HEADER.pack(self.opcode, pad << 4, _DEFAULT_PKEY, flags | self.queue_pair, sequence)
        return header + self.payload + bytes(pad) + _ICRC_FILLER


def decode(datagram: bytes) -> Packet | None:
    """Return the packet in a UDP payload, or None when it is not RoCEv2."""
    if len(datagram) < SMALLEST_BYTES:
        return None
    opcode, bits, _pkey, pair, sequence = _HEADER.unpack_from(datagram)
    end = len(datagram) - len(_ICRC_FILLER) - (bits >> 4 & 3)
    if bits & 0xF or end < _HEADER.size:  # the transport version is 0
        return None
    return Packet(
        opcode=opcode,
        queue_pair=pair % PSN_MODULUS,
        psn=sequence % PSN_MODULUS,
        payload=datagram[_HEADER.size : end],
        has_fecn=bool(pair & _FECN),
        has_becn=bool(pair & _BECN),
        wants_acknowledgement=bool(sequence & _ACK_REQUEST),
    )


def data(queue_pair: int, psn: int, size_bytes: int) -> bytes:
    """Return a data packet with that many bytes of payload."""
    return Packet(SEND_ONLY, queue_pair, psn, bytes(size_bytes)).encode()


def cnp(queue_pair: int) -> bytes:
    """Return a congestion notification for the sender of a queue pair."""
    return Packet(CNP, queue_pair, payload=_CNP_RESERVED, has_becn=True).encode()


def nak(queue_pair: int, expected_psn: int) -> bytes:
    """Return the answer to a gap: a negative acknowledgement that names the packet that is missing."""
    syndrome = struct.pack("!I", NAK_SEQUENCE_ERROR << 24)
    return Packet(ACKNOWLEDGE, queue_pair, expected_psn, syndrome).encode()


def is_nak(packet: Packet) -> bool:
    """Return whether a packet reports a gap."""
    return packet.opcode == ACKNOWLEDGE and packet.payload[:1] == bytes([NAK_SEQUENCE_ERROR])


def source_port(queue_pair: int) -> int:
    """Return the UDP source port of a queue pair; neighbours in number land far apart."""
    return FIRST_SOURCE_PORT + queue_pair * 0x9E37 % SOURCE_PORTS
