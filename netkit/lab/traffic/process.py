"""The lab's handle on its traffic process. Every method may be called from any thread."""

import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from netkit.errors import LabError, Problem
from netkit.lab.model.wiring import NicTraffic
from netkit.lab.traffic.flow import (
    COMMANDS,
    REPLIES,
    Attach,
    Command,
    Configure,
    FlowEnd,
    FlowReport,
    NicAddress,
    NicConfig,
    Report,
    Start,
    Stop,
    TrafficFlow,
    TrafficReply,
)
from netkit.private import without_secrets

_DEADLINE_S = 60.0


class TrafficProcess:
    """A process that serves all NICs of a lab; it ends when this object is closed, or its parent process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "netkit.lab.traffic.engine"],
            env=without_secrets(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def attach(self, host: str, namespace: str, nics: Iterable[NicAddress]) -> None:
        """Open the NICs of a host in its network namespace, given by its file."""
        self._request(Attach(host, namespace, tuple(nics)))

    def configure(self, nic: FlowEnd, config: NicConfig) -> None:
        self._request(Configure(nic, config))

    def start(self, flows: Iterable[TrafficFlow]) -> None:
        """Start flows, all of them or none; one whose name is taken replaces the other."""
        self._request(Start(tuple(flows)))

    def stop(self, names: Iterable[str]) -> None:
        if stopped := tuple(names):
            self._request(Stop(stopped))

    def stop_all(self) -> None:
        self._request(Stop())

    def traffic(self, host: str) -> Mapping[str, NicTraffic]:
        """The counters of each NIC of a host, by interface."""
        return {report.interface: report.traffic for report in self._request(Report(host)).nics}

    def all_traffic(self) -> Mapping[FlowEnd, NicTraffic]:
        """The counters of every NIC of the lab."""
        return {FlowEnd(report.host, report.interface): report.traffic for report in self._request(Report()).nics}

    def flows(self) -> Mapping[str, FlowReport]:
        """The state of the running flows by name."""
        return {report.name: report for report in self._request(Report(has_flows=True)).flows}

    def close(self) -> None:
        """End the process, and wait for it."""
        with self._lock:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            try:
                self._process.wait(_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, command: Command) -> TrafficReply:
        with self._lock:
            reply = self._exchange(COMMANDS.dump_json(command) + b"\n")
        if reply.error:
            raise LabError(Problem(f"traffic: {reply.error}"))
        return reply

    def _exchange(self, line: bytes) -> TrafficReply:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None or stdin.closed:
            raise LabError(Problem("the traffic process has ended", "bring the lab down and up again"))
        try:
            while line:
                line = line[stdin.write(line) or 0 :]
            return REPLIES.validate_json(_line(stdout.fileno()))
        except OSError as error:
            raise LabError(Problem(f"the traffic process: {error}", "bring the lab down and up again")) from error


def _line(descriptor: int) -> bytes:
    """Read one line; raise OSError when none comes."""
    text, poll = b"", select.poll()
    poll.register(descriptor, select.POLLIN)
    while not text.endswith(b"\n"):
        if not poll.poll(_DEADLINE_S * 1000):
            raise TimeoutError(f"no answer in {_DEADLINE_S:.0f} s")
        chunk = os.read(descriptor, 1 << 20)
        if not chunk:
            raise BrokenPipeError("the process has ended")
        text += chunk
    return text
