"""The traffic process: attached NICs, running flows, the schedule of packets and their delivery; and its handle."""

import heapq
import math
import os
import resource
import select
import signal
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from netkit.errors import LabError, Problem
from netkit.lab import namespace_holder
from netkit.lab.model.wiring import NicTraffic
from netkit.lab.traffic.flow import (
    COMMANDS,
    MOST_FLOWS,
    MOST_TOTAL_PPS,
    REPLIES,
    Attach,
    Command,
    Configure,
    FlowEnd,
    FlowReport,
    NicAddress,
    NicConfig,
    NicReport,
    Report,
    Start,
    Stop,
    TrafficFlow,
    TrafficReply,
)
from netkit.lab.traffic.nic import CNP, SEND_ONLY, Connection, Packet, RoceNic, decode, inside, is_nak


class TrafficRefusedError(Exception):
    """A command exceeds a limit or names something that does not exist."""


class TrafficEngine:
    """The traffic of a lab. It has no clock and no loop: both come from its caller."""

    def __init__(self, poll: select.epoll) -> None:
        self._poll = poll
        self._namespaces: dict[str, str] = {}
        self._nics: dict[FlowEnd, RoceNic] = {}
        self._by_socket: dict[int, RoceNic] = {}
        self._flows: dict[str, Connection] = {}
        self._pairs: dict[int, Connection] = {}
        self._due: list[tuple[float, int]] = []
        self._started = 0

    def attach(self, host: str, namespace: str, addresses: Iterable[NicAddress]) -> None:
        """Open a host's NICs, or reopen them in a new namespace; counters and flows continue."""
        self._namespaces[host] = namespace
        with _refusing(f"{host}: cannot attach"), inside(namespace):
            for given in addresses:
                end = FlowEnd(host, given.interface)
                nic = self._nics.setdefault(end, RoceNic(end, given.address))
                nic.address = given.address
                self._poll.register(nic.open(), select.EPOLLIN)  # epoll drops a closed socket by itself
            for connection in self._flows.values():
                if connection.flow.source.host == host:
                    connection.open()
        self._by_socket = {nic.socket.fileno(): nic for nic in self._nics.values() if nic.socket is not None}

    def configure(self, end: FlowEnd, config: NicConfig) -> None:
        self._nic(end).config = config

    def start(self, flows: Iterable[TrafficFlow], now_s: float) -> None:
        """Start flows; one whose name is taken replaces the other."""
        new = {flow.name: flow for flow in flows}
        running = {name: connection.flow for name, connection in self._flows.items()} | new
        if len(running) > MOST_FLOWS:
            raise TrafficRefusedError(
                f"{len(running)} flows are more than the {MOST_FLOWS} a lab runs; stop some first"
            )
        total_pps = sum(flow.rate_pps for flow in running.values())
        if total_pps > MOST_TOTAL_PPS:
            raise TrafficRefusedError(
                f"flows of {total_pps:.0f} packets a second together are more than {MOST_TOTAL_PPS}; lower their rates"
            )
        ends = [(self._nic(flow.source), self._nic(flow.destination)) for flow in new.values()]
        self.stop(name for name in new if name in self._flows)
        if len(self._pairs) > 4 * MOST_FLOWS:  # until then, last CNPs of ended flows are still counted
            self._pairs = {pair: connection for pair, connection in self._pairs.items() if connection.is_open}
        by_host: dict[str, list[Connection]] = {}
        for position, (flow, (source, destination)) in enumerate(zip(new.values(), ends, strict=True)):
            self._started += 1
            connection = Connection(flow, self._started, source, destination, now_s)
            # Spread over the first interval, or all flows of a pattern would always send at the same moment.
            connection.due_s += position / len(new) / flow.rate_pps
            by_host.setdefault(flow.source.host, []).append(connection)
        try:
            for host, connections in by_host.items():
                self._open(host, connections)
        except TrafficRefusedError:
            self.stop(new)
            raise

    def stop(self, names: Iterable[str]) -> None:
        """Stop flows; unknown names are ignored."""
        for name in list(names):
            if (connection := self._flows.pop(name, None)) is not None:
                connection.close()

    def names(self) -> tuple[str, ...]:
        return tuple(self._flows)

    def nic_reports(self, host: str = "") -> tuple[NicReport, ...]:
        """The counters of the NICs of one host, or of all."""
        return tuple(
            NicReport(end.host, end.interface, nic.traffic())
            for end, nic in self._nics.items()
            if host in {"", end.host}
        )

    def flow_reports(self) -> tuple[FlowReport, ...]:
        return tuple(connection.report() for connection in self._flows.values())

    @property
    def due_s(self) -> float | None:
        """When the next packet is due."""
        return self._due[0][0] if self._due else None

    def send_due(self, now_s: float) -> None:
        """Send all packets that are due, and stop expired flows."""
        while self._due and self._due[0][0] <= now_s:
            _, pair = heapq.heappop(self._due)
            connection = self._pairs.get(pair)
            if connection is None or not connection.is_open:
                continue
            if connection.due_s >= connection.ends_s:
                self.stop([connection.flow.name])
                continue
            connection.send(now_s)
            heapq.heappush(self._due, (connection.due_s, pair))

    def receive(self, descriptor: int, now_s: float) -> None:
        """Process the datagrams of a descriptor."""
        nic = self._by_socket.get(descriptor)
        if nic is None:
            return
        for payload, tos in nic.arrivals():
            packet = decode(payload)
            if packet is not None:
                self._deliver(nic, packet, tos, now_s)

    def close(self) -> None:
        """Close every socket."""
        self.stop(self.names())
        for nic in self._nics.values():
            nic.close()

    def _deliver(self, nic: RoceNic, packet: Packet, tos: int, now_s: float) -> None:
        connection = self._pairs.get(packet.queue_pair)
        if connection is None:
            return
        if packet.queue_pair == connection.receiver_pair:
            if nic is connection.destination and packet.opcode == SEND_ONLY:
                connection.take_data(packet, tos, now_s)
        elif nic is connection.source and packet.opcode == CNP:
            connection.take_cnp(tos, now_s)
        elif nic is connection.source and is_nak(packet):
            nic.counts["packet_seq_err"] += 1

    def _open(self, host: str, connections: Iterable[Connection]) -> None:
        with _refusing(f"{host}: cannot start a flow"), inside(self._namespaces[host]):
            for connection in connections:
                connection.open()
                self._flows[connection.flow.name] = connection
                self._pairs[connection.sender_pair] = self._pairs[connection.receiver_pair] = connection
                heapq.heappush(self._due, (connection.due_s, connection.sender_pair))

    def _nic(self, end: FlowEnd) -> RoceNic:
        nic = self._nics.get(end)
        if nic is None:
            raise TrafficRefusedError(f"{end} is not attached; attach the host first")
        return nic


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Convert OSError to TrafficRefusedError."""
    try:
        yield
    except OSError as error:
        raise TrafficRefusedError(f"{what}: {error.strerror or error}") from error


_TICK_S = 0.01
"""Packets due within a tick are sent together: a wake-up for each would cost more than sending it."""


def serve(commands: int, replies: int) -> None:
    """Serve until the command stream ends."""
    poll, text = select.epoll(), b""
    engine = TrafficEngine(poll)
    poll.register(commands, select.EPOLLIN)
    try:
        while True:
            for descriptor, _ in poll.poll(_wait_s(engine.due_s)):
                if descriptor != commands:
                    engine.receive(descriptor, time.monotonic())
                    continue
                chunk = os.read(commands, 1 << 20)
                if not chunk:
                    return
                *lines, text = (text + chunk).split(b"\n")
                for line in lines:
                    unsent = REPLIES.dump_json(_reply(engine, line)) + b"\n"
                    while unsent:
                        unsent = unsent[os.write(replies, unsent) :]
            engine.send_due(time.monotonic())
    except BrokenPipeError:
        return
    finally:
        engine.close()
        poll.close()


def _wait_s(due_s: float | None) -> float | None:
    if due_s is None:
        return None
    tick_s = math.ceil(due_s / _TICK_S) * _TICK_S
    return max(0.0, tick_s - time.monotonic())


def _reply(engine: TrafficEngine, line: bytes) -> TrafficReply:
    try:
        return _execute(engine, line)
    except TrafficRefusedError as error:
        return TrafficReply(error=str(error))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return TrafficReply(error=f"{place}: {first['msg']}")


def _execute(engine: TrafficEngine, line: bytes) -> TrafficReply:
    match COMMANDS.validate_json(line):
        case Attach(host=host, namespace=namespace, nics=nics):
            engine.attach(host, namespace, nics)
        case Configure(nic=nic, config=config):
            engine.configure(nic, config)
        case Start(flows=flows):
            engine.start(flows, time.monotonic())
        case Stop(names=names):
            engine.stop(names or engine.names())
        case Report(host=host, has_flows=has_flows):
            return TrafficReply(nics=engine.nic_reports(host), flows=engine.flow_reports() if has_flows else ())
    return TrafficReply()


_DEADLINE_S = 60.0


class TrafficProcess:
    """A process that serves all NICs of a lab; it ends when this object is closed, or its parent process ends.

    It is a fork, made before the lab has threads: a new interpreter would take a second to import the same.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        commands, self._commands = os.pipe()
        self._replies, replies = os.pipe()
        self._is_open = True
        self.pid = os.fork()
        if self.pid == 0:
            _become_engine(commands, replies)
        os.close(commands)
        os.close(replies)

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
            self._is_open = False
            os.close(self._commands)
            os.close(self._replies)
            handle = os.pidfd_open(self.pid)
            is_ended, _, _ = select.select([handle], [], [], _DEADLINE_S)
            os.close(handle)
            if not is_ended:
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

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
        if not self._is_open:
            raise LabError(Problem("the traffic process has ended", "bring the lab down and up again"))
        try:
            while line:
                line = line[os.write(self._commands, line) :]
            return REPLIES.validate_json(_line(self._replies))
        except OSError as error:
            raise LabError(Problem(f"the traffic process: {error}", "bring the lab down and up again")) from error


def _become_engine(commands: int, replies: int) -> None:
    """Serve in the forked process; never returns."""
    try:
        namespace_holder.set_process_name("netkit-traffic")
        os.dup2(commands, 0)
        os.dup2(replies, 1)
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        os.closerange(3, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # every NIC and flow needs an open file
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the lab, and with it the pipe
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        serve(0, 1)
    except BaseException:  # a child must not continue in its parent's code
        traceback.print_exc()
    finally:
        os._exit(0)


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
