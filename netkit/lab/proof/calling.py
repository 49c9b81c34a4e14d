"""Hosts that call each other all the time while something changes: what was sent, and what got no answer, and when.

A call is a small ping, again and again, from one NIC to another. Nothing is judged here.
"""

import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import IO, Any

from netkit.errors import LabError, Problem
from netkit.lab.live import LiveNode
from netkit.lab.system.namespace_holder import ENVIRONMENT

ANSWER = re.compile(r"^\[(\d+\.\d+)\] \d+ bytes from .* icmp_seq=(\d+) .*time=([\d.]+) ms", re.MULTILINE)
SENT = re.compile(r"^(\d+) packets transmitted", re.MULTILINE)
NUMBERS = 1 << 16
"""How many packets a ping can tell apart."""
ENDING_S = 10.0
IN_FLIGHT = 1
"""The last packet of a call may have no answer yet when the call ends."""
Request = Mapping[str, Any]
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
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
        self._interval_s = 1.0

    def begin(self, request: Request) -> Answer:
        """Begin calls, which go on until they are ended."""
        if self._running:
            raise LabError(Problem("the hosts of this lab call each other already", "end that first"))
        self._interval_s = float(request["interval_s"])
        for call in (Call(**one) for one in request["calls"]):
            self._running[call.name] = self._begun(call)
        return {}

    def end(self, _request: Request) -> Answer:
        """End all calls, and return what came of them."""
        running, self._running = self._running, {}
        for one in running.values():
            one.process.send_signal(signal.SIGINT)
        heard = [heard_of(name, _told(one), one.began_s, self._interval_s) for name, one in running.items()]
        return {"heard": [asdict(one) for one in heard]}

    def _begun(self, call: Call) -> _Running:
        words = ["ping", "-n", "-D", "-i", f"{self._interval_s:g}", "-I", call.interface, "-I", call.source]
        told = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the call; a pipe would fill up and stop it)
        process = subprocess.Popen(  # noqa: S603
            [*self._nodes[call.host].holder.enter(), *words, call.destination],
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            env=ENVIRONMENT,
        )
        return _Running(process, told, time.time())


def heard_of(name: str, text: str, began_s: float, interval_s: float) -> Heard:
    """Return what a ping tells of a call."""
    found = SENT.search(text)
    answers = ANSWER.findall(text)
    numbers = _unwrapped(int(number) for _, number, _ in answers)
    sent_s = {
        number: float(at_s) - float(took_ms) / 1000 for number, (at_s, _, took_ms) in zip(numbers, answers, strict=True)
    }
    sent = int(found[1]) if found else max(sent_s, default=0)
    if not sent:
        return Heard(name, 0, (), (text.strip().splitlines() or ["it says nothing"])[-1])
    return Heard(name, sent, tuple(_gaps({0: began_s, **sent_s}, sent, interval_s)))


def _unwrapped(numbers: Iterable[int]) -> Iterator[int]:
    """Yield numbers that go on where a packet has no room for them and they begin anew."""
    last = 0
    for number in numbers:
        last += (number - last + NUMBERS // 2) % NUMBERS - NUMBERS // 2
        yield last


def _gaps(sent_s: Mapping[int, float], sent: int, interval_s: float) -> Iterator[Gap]:
    """Yield what lies between answered packets, by number; number 0 is the beginning."""
    for before, after in pairwise(sorted(sent_s)):
        if after - before > 1:
            yield Gap(sent_s[before], sent_s[after], after - before - 1)
    last = max(sent_s)
    if sent - last > IN_FLIGHT:
        yield Gap(sent_s[last], sent_s[last] + (sent - last) * interval_s, sent - last)


def _told(one: _Running) -> str:
    try:
        one.process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        one.process.kill()
        one.process.wait()
    with one.told as file:
        file.seek(0)
        return file.read().decode(errors="replace")
