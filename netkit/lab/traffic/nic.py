"""RoCEv2 packets: what follows the UDP header.

The base transport header is real. The invariant CRC is filler, because computing it would cost more than sending.
"""

import os
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from netkit.lab.model.inputs import NicTraffic
from netkit.lab.state import PRIORITIES
from netkit.lab.system import syscalls
from netkit.lab.traffic.flow import FlowEnd, NicConfig

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


# Constants of Linux that Python 3.11 does not name.
_IP_FREEBIND = 15
_IP_MTU_DISCOVER = 10
_IP_PMTUDISC_PROBE = 3
_IP_RECVTOS = 13
_LOWER_HEADERS_BYTES = 42
_LARGEST_DATAGRAM = 9216
_CNP = bytes([CNP])
_TOS = struct.Struct("i")


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Open sockets in another network namespace; only this thread goes there, and comes back."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            syscalls.setns(there, syscalls.CLONE_NEWNET)
        finally:
            os.close(there)
        try:
            yield
        finally:
            with suppress(PermissionError):  # without root there is no way back to the machine's, and no need for one
                syscalls.setns(home, syscalls.CLONE_NEWNET)
    finally:
        os.close(home)


def bound(address: str, port: int, interface: str) -> socket.socket:
    """Return a UDP socket that speaks from one NIC, as a queue pair does; call it inside the host's namespace."""
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        found.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)  # the address may come later, and go
        found.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE)  # RoCE never fragments
        found.bind((address, port))
    except OSError:
        found.close()
        raise
    return found


class RoceNic:
    """A NIC that sends and receives RoCEv2."""

    def __init__(self, end: FlowEnd, address: str) -> None:
        self.end = end
        self.address = address
        self.config = NicConfig()
        self.counts: Counter[str] = Counter()
        self.socket: socket.socket | None = None
        self._received = [0] * PRIORITIES
        self._sent = [0] * PRIORITIES

    def open(self) -> socket.socket:
        """Open the socket that everything arrives at; call it inside the host's namespace."""
        self.close()
        self.socket = bound(self.address, PORT, self.end.interface)
        self.socket.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
        return self.socket

    def close(self) -> None:
        """Close the socket."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def priority(self, tos: int) -> int:
        """Return the priority of a packet; without trust in the DSCP an untagged packet has none but 0."""
        priorities = self.config.settings.priority_of_dscp
        return priorities[tos >> 2] if priorities else 0

    def send(self, payload: bytes, tos: int, address: str, *, through: socket.socket | None = None) -> None:
        """Send a datagram, from the port everything arrives at unless a flow has its own; raises OSError."""
        outlet = through or self.socket
        if outlet is None:
            raise OSError(f"{self.end} is not attached")
        ancillary = [(socket.IPPROTO_IP, socket.IP_TOS, _TOS.pack(tos))]
        outlet.sendmsg([payload], ancillary, 0, (address, PORT))
        self._sent[self.priority(tos)] += 1
        self._count("tx", payload)

    def arrivals(self, at_most: int = 64) -> Iterator[tuple[bytes, int]]:
        """Yield the datagrams that have arrived, each with its TOS."""
        for _ in range(at_most):
            if self.socket is None:
                return
            try:
                payload, ancillary, _flags, _source = self.socket.recvmsg(_LARGEST_DATAGRAM, 64)
            except BlockingIOError:
                return
            except OSError:  # such as an ICMP answer to something sent before
                continue
            tos = ancillary[0][2][0] if ancillary else 0
            self._received[self.priority(tos)] += 1
            self._count("rx", payload)
            yield payload, tos

    def traffic(self) -> NicTraffic:
        """Return what the NIC counted."""
        return NicTraffic(
            **self.counts, rx_priority_packets=tuple(self._received), tx_priority_packets=tuple(self._sent)
        )

    def _count(self, direction: str, datagram: bytes) -> None:
        if datagram[:1] != _CNP:
            self.counts[f"{direction}_roce_packets"] += 1
            self.counts[f"{direction}_roce_bytes"] += len(datagram) + _LOWER_HEADERS_BYTES
