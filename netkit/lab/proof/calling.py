"""Hosts that call each other all the time while something changes: what was sent, and what got no answer, and when.

A call is a small ping, again and again, from one NIC to another. Nothing is judged here.
"""

import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import IO, Any

from netkit.errors import LabError, Problem
from netkit.lab.live import LiveNode
from netkit.lab.system.namespace_holder import ENVIRONMENT

ANSWER = re.compile(r"^\[(\d+\.\d+)\] \d+ bytes from .* icmp_seq=(\d+) .*time=([\d.]+) ms")
UNSENT = re.compile(r"^ping: send(?:msg|to): ")
"""A host that has no way for a packet; ping neither numbers nor counts those."""
SENT = re.compile(r"^(\d+) packets transmitted", re.MULTILINE)
NUMBERS = 1 << 16
"""How many packets a ping can tell apart."""
ENDING_S = 10.0
IN_FLIGHT = 1
"""The last packet of a call may have no answer yet when the call ends."""
Request = Mapping[str, Any]
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrafficPair:
    """Who calls whom."""

    name: str
    host: str
    interface: str
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Packets in a row without an answer: between the answered ones around them, in seconds since the epoch."""

    began_s: float
    ended_s: float
    lost: int


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a call; `problem` says why nothing was sent."""

    name: str
    sent: int
    gaps: tuple[Gap, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    told: IO[bytes]
    began_s: float


class Caller:
    """Begins and ends the calls of a lab."""

    def __init__(self, nodes: Mapping[str, LiveNode]) -> None:
        self._nodes = nodes
        self._running: dict[str, _Running] = {}

    def begin(self, request: Request) -> Answer:
        """Begin calls, which go on until they are ended."""
        if self._running:
            raise LabError(Problem("the hosts of this lab call each other already", "end that first"))
        interval_s = float(request["interval_s"])
        for call in (TrafficPair(**one) for one in request["calls"]):
            self._running[call.name] = self._begun(call, interval_s)
        return {}

    def end(self, _request: Request) -> Answer:
        """End all calls, and return what came of them."""
        running, self._running = self._running, {}
        ended_s = time.time()
        for one in running.values():
            one.process.send_signal(signal.SIGINT)
        heard = [heard_of(name, _told(one), one.began_s, ended_s) for name, one in running.items()]
        return {"heard": [asdict(one) for one in heard]}

    def _begun(self, call: TrafficPair, interval_s: float) -> _Running:
        words = ["ping", "-n", "-D", "-i", f"{interval_s:g}", "-I", call.interface, "-I", call.source]
        told = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the call; a pipe would fill up and stop it)
        process = subprocess.Popen(  # noqa: S603
            [*self._nodes[call.host].holder.enter(), *words, call.destination],
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            env=ENVIRONMENT,
        )
        return _Running(process, told, time.time())


def heard_of(name: str, text: str, began_s: float, ended_s: float) -> Heard:
    """Return what a ping tells of a call."""
    sent_s = {0: began_s}
    unsent: Counter[int] = Counter()
    last = 0
    for line in text.splitlines():
        if answer := ANSWER.match(line):
            at_s, number, took_ms = answer.groups()
            last = last + (int(number) - last + NUMBERS // 2) % NUMBERS - NUMBERS // 2
            sent_s[last] = float(at_s) - float(took_ms) / 1000
        elif UNSENT.match(line):
            unsent[max(sent_s)] += 1
    found = SENT.search(text)
    sent = int(found[1]) if found else max(sent_s)
    if not sent and not unsent:
        return Heard(name, 0, (), (text.strip().splitlines() or ["it says nothing"])[-1])
    return Heard(name, sent + unsent.total(), tuple(_gaps(sent_s, unsent, sent, ended_s)))


def _gaps(sent_s: Mapping[int, float], unsent: Mapping[int, int], sent: int, ended_s: float) -> Iterator[Gap]:
    """Yield what lies between answered packets, by number; number 0 is the beginning."""
    for before, after in pairwise(sorted(sent_s)):
        if lost := after - before - 1 + unsent.get(before, 0):
            yield Gap(sent_s[before], sent_s[after], lost)
    last = max(sent_s)
    if (lost := sent - last + unsent.get(last, 0)) > IN_FLIGHT:
        yield Gap(sent_s[last], ended_s, lost)


def _told(one: _Running) -> str:
    try:
        one.process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        one.process.kill()
        one.process.wait()
    with one.told as file:
        file.seek(0)
        return file.read().decode(errors="replace")
