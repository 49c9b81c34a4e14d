"""The health gate of BGP sessions: what was established before has to be established after, with routes."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from nornir.core.plugins.runners import RunnerPlugin

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.fan_out import each, threads
from netkit.deploy.gate import GateAnswer, GateQuestion, Moment
from netkit.design.fabric import Fabric, Switch
from netkit.errors import NetkitError
from netkit.platforms.change import Risk
from netkit.platforms.driver import Reader

Sessions = Mapping[str, int]
"""Interface → prefixes received, of established sessions."""
POLL_S = 0.5
NEIGHBORS_AT_ONCE = 16


class SessionGate:
    """Compares the sessions of a device, and those of its neighbors with it, with what they were before.

    A session that the fabric no longer has may disappear. Where only descriptions change, neighbors are not asked.
    Sessions do not show how far traffic has moved away from a drained device: there the gate waits for its full time.
    """

    def __init__(
        self,
        fabric: Fabric,
        connect: Callable[[str], Reader],
        *,
        clock: DeployClock = CLOCK,
        runner: RunnerPlugin | None = None,
    ) -> None:
        self._fabric, self._connect, self._clock = fabric, connect, clock
        self._runner = runner or threads(NEIGHBORS_AT_ONCE)

    def __call__(self, question: GateQuestion) -> GateAnswer:
        if question.moment is Moment.BEFORE:
            sample = {
                question.device: self._established(question.device, question.reader),
                **self._neighbors(question, question.neighbors),
            }
            return GateAnswer("healthy", sample=json.dumps(sample), is_blank=not any(sample.values()))
        before: dict[str, Sessions] = json.loads(question.sample)
        if question.moment is Moment.DRAINED:
            return self._check_drain(question, before[question.device])
        return self._await_sessions(question, before)

    def _check_drain(self, question: GateQuestion, before: Sessions) -> GateAnswer:
        """Answer for a drain: it moves routes, and must not end sessions."""
        self._clock.sleep_s(question.time_limit_s)
        kept = dict.fromkeys(before, 0)
        gone = tuple(
            self._missing(
                question,
                {question.device: kept},
                {question.device: self._established(question.device, question.reader)},
            )
        )
        return GateAnswer("worse", gone) if gone else GateAnswer("healthy")

    def _await_sessions(self, question: GateQuestion, before: Mapping[str, Sessions]) -> GateAnswer:
        """Poll until all is as it was, or the time limit is reached."""
        deadline_s = self._clock.steady_s() + question.time_limit_s
        seen: Sessions = before[question.device]
        while True:
            found = self._established(question.device, question.reader)
            # Routes are still arriving: fewer than before, and more than a moment ago.
            is_filling = any(
                found[port] < before[question.device].get(port, 0) and found[port] != seen.get(port) for port in found
            )
            answer = self._answer(question, before, found)
            left_s = deadline_s - self._clock.steady_s()
            if left_s <= 0 or (answer.is_healthy and not is_filling):
                return answer
            seen = found
            self._clock.sleep_s(min(POLL_S, left_s))

    def _answer(self, question: GateQuestion, before: Mapping[str, Sessions], found: Sessions) -> GateAnswer:
        if missing := tuple(self._missing(question, before, {question.device: found})):
            return GateAnswer("worse", missing)  # the neighbors would report the same
        wanted = [name for name in question.neighbors if name in before]
        now = self._neighbors(question, wanted)
        if missing := tuple(self._missing(question, before, now)):
            return GateAnswer("worse", missing)
        unread = tuple(f"{name} cannot be asked any more" for name in wanted if name not in now)
        return GateAnswer("inconclusive", unread) if unread and question.risk else GateAnswer("healthy")

    def _missing(
        self, question: GateQuestion, before: Mapping[str, Sessions], now: Mapping[str, Sessions]
    ) -> Iterator[str]:
        """Yield what is worse than before."""
        for device, sessions in now.items():
            for interface, prefixes in before[device].items():
                if not self._is_kept(question, device, interface):
                    continue
                if interface not in sessions:
                    yield f"{device}: the session on {interface} is gone"
                elif prefixes and not sessions[interface]:
                    yield f"{device}: the session on {interface} brings no routes, {prefixes} before"

    def _is_kept(self, question: GateQuestion, device: str, interface: str) -> bool:
        """Whether a session has to be there after the change too, by the fabric and by the device's configuration."""
        found = self._fabric.device(device)
        ports = found.fabric_ports if isinstance(found, Switch) else ()
        port = next((port for port in ports if port.name == interface), None)
        return port is not None and (port.name if device == question.device else port.peer_port) not in question.ending

    def _neighbors(self, question: GateQuestion, names: Iterable[str]) -> dict[str, Sessions]:
        """Return the neighbors' sessions with the device, without the neighbors that cannot be asked."""
        if question.risk is Risk.NONE:
            return {}
        found = each(self._runner, names, lambda name: self._sessions_of(name, question.device))
        return {name: sessions for name, sessions in found.items() if sessions is not None}

    def _sessions_of(self, name: str, device: str) -> Sessions | None:
        switch = self._fabric.device(name)
        ports = {port.name for port in switch.ports if port.peer == device} if isinstance(switch, Switch) else set()
        try:
            reader = self._connect(name)
            try:
                reader.open()
                return {port: prefixes for port, prefixes in self._established(name, reader).items() if port in ports}
            finally:
                reader.close()
        except NetkitError:
            return None

    def _established(self, name: str, reader: Reader) -> dict[str, int]:
        found = self._fabric.device(name)
        ports = {port.neighbor: port.name for port in found.fabric_ports} if isinstance(found, Switch) else {}
        established = (one for one in reader.sessions() if one.is_established)
        return {ports.get(one.interface, one.interface): one.received_prefixes for one in established}
