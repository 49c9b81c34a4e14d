"""How a sender reacts to congestion notifications: DCQCN, with its times and steps scaled to the lab.

A notification cuts the rate by half of the congestion estimate and raises that estimate. Each quiet period lowers the
estimate and recovers the rate: first half-way back to where it was cut, five times, then by a fixed step beyond.
"""

import errno
import socket
from dataclasses import dataclass

from netkit.lab.traffic.flow import FlowReport, TrafficFlow
from netkit.lab.traffic.nic import CE, NOT_ECT, PSN_MODULUS, Packet, RoceNic, bound, cnp, data, nak, source_port

GAIN = 1 / 16
FAST_RECOVERIES = 5
RECOVERY_S = 0.25
"""One quiet period. A NIC's is about 300 µs; a lab flow sends that much less often."""
STEP_SHARE = 1 / 20
LEAST_SHARE = 1 / 100


@dataclass(frozen=True, slots=True)
class FlowRate:
    """The rate of one flow, as shares of the rate it was started with."""

    current: float = 1.0
    target: float = 1.0
    congestion: float = 1.0
    quiet_periods: int = 0

    def cut(self) -> "FlowRate":
        """Return the rate after a notification."""
        slower = max(LEAST_SHARE, self.current * (1 - self.congestion / 2))
        return FlowRate(slower, self.current, (1 - GAIN) * self.congestion + GAIN, 0)

    def recover(self) -> "FlowRate":
        """Return the rate after a period without one."""
        quiet = self.quiet_periods + 1
        target = self.target if quiet <= FAST_RECOVERIES else min(1.0, self.target + STEP_SHARE)
        faster = (self.current + target) / 2
        # Halving a distance never closes it: what is within a hundredth has arrived.
        current = target if target - faster < LEAST_SHARE else faster
        return FlowRate(current, target, (1 - GAIN) * self.congestion, quiet)

    @property
    def is_full(self) -> bool:
        """Return whether nothing is left to recover."""
        return self.current >= 1.0


_PORT_ATTEMPTS = 8
_MOST_LATE_S = 0.02
"""A sender that fell behind starts afresh: catching up would be a burst nobody asked for."""


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
        """Open the socket that sends; call it inside the source's namespace."""
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
        """Stop sending. What is still on its way is answered all the same."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @property
    def is_open(self) -> bool:
        """Return whether the flow still sends."""
        return self._socket is not None

    def send(self, now_s: float) -> None:
        """Send the packet that is due, and set when the next one is."""
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
        """Receive a data packet: answer a mark with a CNP, and a gap with a NAK."""
        nic = self.destination
        self._received += 1
        if tos & 3 == CE:
            nic.counts["ecn_marked_packets"] += 1
            if nic.priority(tos) in nic.config.settings.np_enabled and now_s >= self._next_cnp_s:
                self._next_cnp_s = now_s + nic.config.cnp_interval_us / 1e6
                self._notify()
        ahead = (arrived.psn - self._expected) % PSN_MODULUS
        if ahead >= PSN_MODULUS // 2:
            nic.counts["duplicate_requests"] += 1
            return
        self._expected = (arrived.psn + 1) % PSN_MODULUS
        if ahead:
            nic.counts["out_of_sequence"] += 1
            self._answer(nak(self.sender_pair, (arrived.psn - ahead) % PSN_MODULUS), nic.config.data_tos)

    def take_cnp(self, tos: int, now_s: float) -> None:
        """Receive a CNP: slow down when the NIC reacts on the priority of its data, and the CNP came on its own."""
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
        """Return how the flow is doing."""
        full = self.flow.rate_pps
        current, slowest = self._rate.current * full, self._slowest.current * full
        return FlowReport(self.flow.name, current, slowest, self._sent, self._received, self._failure)

    def _notify(self) -> None:
        nic = self.destination
        nic.counts["cnp_sent"] += 1
        if nic.config.loses_cnps != "sent":
            self._answer(cnp(self.sender_pair), nic.config.settings.cnp_dscp << 2 | NOT_ECT)

    def _answer(self, payload: bytes, tos: int) -> None:
        try:
            self.destination.send(payload, tos, self.source.address)
        except OSError as error:
            self._failure = error.strerror or str(error)
