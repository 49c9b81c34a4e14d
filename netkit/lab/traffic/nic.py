"""RoCEv2 packets, the NICs that send and receive them, and flows between NICs with DCQCN's congestion control.

Times and steps are scaled to the lab. A notification cuts the rate by half of the congestion estimate and raises the
estimate. Each quiet period lowers the estimate and raises the rate: five times halfway back to the rate before the cut,
then by a fixed step beyond it.
"""

import errno
import os
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from netkit.lab import namespace_holder
from netkit.lab.model.wiring import NicTraffic
from netkit.lab.state import PRIORITIES
from netkit.lab.traffic.flow import FlowEnd, FlowReport, NicConfig, TrafficFlow

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
    """A base transport header with its payload."""

    opcode: int
    queue_pair: int
    psn: int = 0
    payload: bytes = b""
    has_fecn: bool = False
    has_becn: bool = False
    wants_acknowledgement: bool = False

    def encode(self) -> bytes:
        """The UDP payload, padded to whole words as in the header."""
        pad = -len(self.payload) % 4
        flags = _FECN * self.has_fecn | _BECN * self.has_becn
        sequence = _ACK_REQUEST * self.wants_acknowledgement | self.psn
        header = _HEADER.pack(self.opcode, pad << 4, _DEFAULT_PKEY, flags | self.queue_pair, sequence)
        return header + self.payload + bytes(pad) + _ICRC_FILLER


def decode(datagram: bytes) -> Packet | None:
    """Parse a UDP payload; None if it is not RoCEv2."""
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
    """A data packet with that many bytes of payload."""
    return Packet(SEND_ONLY, queue_pair, psn, bytes(size_bytes)).encode()


def cnp(queue_pair: int) -> bytes:
    """A congestion notification packet for the sender of a queue pair."""
    return Packet(CNP, queue_pair, payload=_CNP_RESERVED, has_becn=True).encode()


def nak(queue_pair: int, expected_psn: int) -> bytes:
    """A negative acknowledgement that names the missing packet."""
    syndrome = struct.pack("!I", NAK_SEQUENCE_ERROR << 24)
    return Packet(ACKNOWLEDGE, queue_pair, expected_psn, syndrome).encode()


def is_nak(packet: Packet) -> bool:
    """Whether a packet reports a gap."""
    return packet.opcode == ACKNOWLEDGE and packet.payload[:1] == bytes([NAK_SEQUENCE_ERROR])


def source_port(queue_pair: int) -> int:
    """The UDP source port of a queue pair; adjacent numbers map to ports far apart."""
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
    """Enter another network namespace to open sockets; only this thread moves, and returns."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            namespace_holder.setns(there, namespace_holder.CLONE_NEWNET)
        finally:
            os.close(there)
        try:
            yield
        finally:
            with suppress(PermissionError):  # without root the thread cannot return, and need not
                namespace_holder.setns(home, namespace_holder.CLONE_NEWNET)
    finally:
        os.close(home)


def bound(address: str, port: int, interface: str) -> socket.socket:
    """A UDP socket bound to one NIC, as a queue pair is; call it inside the host's namespace."""
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        found.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)  # the address may appear later, and disappear
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
        """Open the receiving socket; call it inside the host's namespace."""
        self.close()
        self.socket = bound(self.address, PORT, self.end.interface)
        self.socket.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
        return self.socket

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def priority(self, tos: int) -> int:
        """The priority of a packet; an untagged packet has priority 0 unless the DSCP is trusted."""
        priorities = self.config.settings.priority_of_dscp
        return priorities[tos >> 2] if priorities else 0

    def send(self, payload: bytes, tos: int, address: str, *, through: socket.socket | None = None) -> None:
        """Send a datagram from the receiving port, or from a flow's own socket; raise OSError."""
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
            except OSError:  # such as an ICMP error for a packet sent before
                continue
            tos = ancillary[0][2][0] if ancillary else 0
            self._received[self.priority(tos)] += 1
            self._count("rx", payload)
            yield payload, tos

    def traffic(self) -> NicTraffic:
        """The NIC's counters."""
        return NicTraffic(
            **self.counts, rx_priority_packets=tuple(self._received), tx_priority_packets=tuple(self._sent)
        )

    def _count(self, direction: str, datagram: bytes) -> None:
        if datagram[:1] != _CNP:
            self.counts[f"{direction}_roce_packets"] += 1
            self.counts[f"{direction}_roce_bytes"] += len(datagram) + _LOWER_HEADERS_BYTES


GAIN = 1 / 16
FAST_RECOVERIES = 5
RECOVERY_S = 0.25
"""One quiet period. A real NIC's is about 300 µs; lab flows are scaled."""
STEP_SHARE = 1 / 20
LEAST_SHARE = 1 / 100


@dataclass(frozen=True, slots=True)
class FlowRate:
    """The rate of one flow, as shares of its initial rate."""

    current: float = 1.0
    target: float = 1.0
    congestion: float = 1.0
    quiet_periods: int = 0

    def cut(self) -> "FlowRate":
        """The rate after a notification."""
        slower = max(LEAST_SHARE, self.current * (1 - self.congestion / 2))
        return FlowRate(slower, self.current, (1 - GAIN) * self.congestion + GAIN, 0)

    def recover(self) -> "FlowRate":
        """The rate after a period without notification."""
        quiet = self.quiet_periods + 1
        target = self.target if quiet <= FAST_RECOVERIES else min(1.0, self.target + STEP_SHARE)
        faster = (self.current + target) / 2
        # Halving a distance never closes it: within a hundredth, the rate is at its target.
        current = target if target - faster < LEAST_SHARE else faster
        return FlowRate(current, target, (1 - GAIN) * self.congestion, quiet)

    @property
    def is_full(self) -> bool:
        return self.current >= 1.0


_PORT_ATTEMPTS = 8
_MOST_LATE_S = 0.02
"""A sender that is later than this does not catch up, which would be an unwanted burst."""


class Connection:
    """Both ends of one flow."""

    def __init__(self, flow: TrafficFlow, number: int, source: RoceNic, destination: RoceNic, now_s: float) -> None:
        self.flow = flow
        self.receiver_pair = 2 * number % PSN_MODULUS
        self.sender_pair = self.receiver_pair + 1
        self.source = source
        self.destination = destination
        self.due_s = now_s
        self.ends_s = now_s + flow.duration_s
        self._socket: socket.socket | None = None
        self._rate = self._slowest = FlowRate()
        self._recovers_s = now_s
        self._psn = 0
        self._expected = 0
        self._next_cnp_s = now_s
        self._sent = self._received = 0
        self._failure = ""

    def open(self) -> None:
        """Open the sending socket; call it inside the source's namespace."""
        self.close()
        for attempt in range(_PORT_ATTEMPTS):
            port = source_port(self.sender_pair + 2 * attempt)
            try:
                self._socket = bound(self.source.address, port, self.source.end.interface)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or attempt == _PORT_ATTEMPTS - 1:
                    raise
            else:
                return

    def close(self) -> None:
        """Stop sending. Packets in flight are still answered."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def send(self, now_s: float) -> None:
        """Send the packet that is due, and schedule the next."""
        payload = data(self.receiver_pair, self._psn, self.flow.size_bytes)
        try:
            self.source.send(payload, self.source.config.data_tos, self.destination.address, through=self._socket)
        except OSError as error:
            self._failure = error.strerror or str(error)
        else:
            self._psn = (self._psn + 1) % PSN_MODULUS
            self._sent += 1
        while now_s >= self._recovers_s and not self._rate.is_full:
            self._rate = self._rate.recover()
            self._recovers_s += RECOVERY_S
        interval_s = 1 / (self.flow.rate_pps * self._rate.current)
        self.due_s = max(self.due_s + interval_s, now_s - _MOST_LATE_S)

    def take_data(self, arrived: Packet, tos: int, now_s: float) -> None:
        """Receive a data packet: answer a CE mark with a CNP, and a gap with a NAK."""
        nic = self.destination
        self._received += 1
        if tos & 3 == CE:
            nic.counts["ecn_marked_packets"] += 1
            if nic.priority(tos) in nic.config.settings.np_enabled and now_s >= self._next_cnp_s:
                self._next_cnp_s = now_s + nic.config.cnp_interval_us / 1e6
                nic.counts["cnp_sent"] += 1
                if nic.config.loses_cnps != "sent":
                    self._answer(cnp(self.sender_pair), nic.config.settings.cnp_dscp << 2 | NOT_ECT)
        ahead = (arrived.psn - self._expected) % PSN_MODULUS
        if ahead >= PSN_MODULUS // 2:
            nic.counts["duplicate_requests"] += 1
            return
        self._expected = (arrived.psn + 1) % PSN_MODULUS
        if ahead:
            nic.counts["out_of_sequence"] += 1
            self._answer(nak(self.sender_pair, (arrived.psn - ahead) % PSN_MODULUS), nic.config.data_tos)

    def take_cnp(self, tos: int, now_s: float) -> None:
        """Receive a CNP: slow down if the NIC reacts on the priority of its data and the CNP has the CNP priority."""
        nic, settings = self.source, self.source.config.settings
        if nic.config.loses_cnps == "received":
            return
        nic.counts["rx_cnp_packets"] += 1
        reacts = nic.priority(nic.config.data_tos) in settings.rp_enabled
        if not reacts or nic.priority(tos) != settings.cnp_priority:
            nic.counts["cnp_ignored"] += 1
            return
        nic.counts["cnp_handled"] += 1
        self._rate = self._rate.cut()
        self._slowest = min(self._slowest, self._rate, key=lambda rate: rate.current)
        self._recovers_s = now_s + RECOVERY_S

    def report(self) -> FlowReport:
        full = self.flow.rate_pps
        current, slowest = self._rate.current * full, self._slowest.current * full
        return FlowReport(self.flow.name, current, slowest, self._sent, self._received, self._failure)

    def _answer(self, payload: bytes, tos: int) -> None:
        try:
            self.destination.send(payload, tos, self.source.address)
        except OSError as error:
            self._failure = error.strerror or str(error)
