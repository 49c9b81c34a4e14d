"""One NIC of a host: its sockets in the host's network namespace, and what it counted."""

import os
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from netkit.lab.model.inputs import NicTraffic
from netkit.lab.state import PRIORITIES
from netkit.lab.system import syscalls
from netkit.lab.traffic.flow import End, NicConfig
from netkit.lab.traffic.packet import CNP, PORT

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


class Nic:
    """A NIC that sends and receives RoCEv2."""

    def __init__(self, end: End, address: str) -> None:
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
