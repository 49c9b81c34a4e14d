"""A health gate of what hangs on a leaf: its hosts must reach it, and far hosts over it, if they did before."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from nornir.core.plugins.runners import RunnerPlugin

from netkit.deploy.clock import CLOCK, Clock
from netkit.deploy.fan_out import each, threads
from netkit.deploy.gate import Gate, GateAnswer, GateQuestion, Moment, sequel
from netkit.deploy.host_gate import far_addresses, mute
from netkit.design.fabric import Fabric, Host, Nic, Switch
from netkit.errors import NetkitError
from netkit.platforms.change import Risk
from netkit.platforms.driver import RailReader

POLL_S = 0.5
MOST_HOSTS = 4
"""Hosts of a leaf that are asked: what a leaf does to all of them shows on a few."""
Answers = Mapping[str, Mapping[str, list[str]]]
"""Host → interface → who answers over it."""


class HostReader(RailReader, Protocol):
    """A connection to a host, of which only its rails are read."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Hang up."""


class ReachGate:
    """Asks another gate first, then some hosts of a leaf; hosts that could not be asked before are left alone."""

    def __init__(
        self,
        fabric: Fabric,
        others: Gate,
        connect: Callable[[str], HostReader],
        *,
        clock: Clock = CLOCK,
        runner: RunnerPlugin | None = None,
    ) -> None:
        self._fabric, self._others, self._connect, self._clock = fabric, others, connect, clock
        self._runner = runner or threads(MOST_HOSTS)
        self._silent: set[str] = set()
        """Hosts that could not be asked before some change: nobody waits for them again."""

    def __call__(self, question: GateQuestion) -> GateAnswer:
        """Answer one question."""
        first = sequel(self._others, question, self._clock)
        called = self._called(question)
        if not first.others.is_healthy or not called or question.moment is Moment.DRAINED:
            return first.without_more()
        if question.moment is Moment.BEFORE:
            names = called.keys() - self._silent
            found = self._answers(sorted(names), called)
            self._silent |= names - found.keys()
            return replace(first.others, sample=first.sample(answers=found))
        return self._settled(called, first.kept.get("answers", {}), first.others, first.left_s)

    def _called(self, question: GateQuestion) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Return the hosts to ask, and whom each calls over which of its NICs at this leaf."""
        found = self._fabric.device(question.device)
        if question.risk is Risk.NONE or not isinstance(found, Switch) or found.role != "leaf":
            return {}
        hosts = [host for host in self._fabric.hosts if any(nic.leaf == found.name for nic in host.nics)]
        return {
            host.name: {nic.interface: self._calls(host, nic) for nic in host.nics if nic.leaf == found.name}
            for host in hosts[:: max(1, -(-len(hosts) // MOST_HOSTS))]
        }

    def _calls(self, host: Host, nic: Nic) -> tuple[str, ...]:
        return (nic.gateway, *far_addresses(self._fabric, host, nic))

    def _settled(
        self, called: Mapping[str, Mapping[str, tuple[str, ...]]], before: Answers, answer: GateAnswer, left_s: float
    ) -> GateAnswer:
        """Return the answer once all is well, or when patience is over."""
        deadline_s = self._clock.steady_s() + left_s
        while True:
            now = self._answers(before, called)
            lost = tuple(self._lost(called, before, now))
            unasked = tuple(f"{name} cannot be asked any more" for name in before if name not in now)
            if not lost and not unasked:
                return answer
            if self._clock.steady_s() >= deadline_s:
                return GateAnswer("worse" if lost else "inconclusive", lost or unasked)
            self._clock.sleep_s(POLL_S)

    @staticmethod
    def _lost(called: Mapping[str, Mapping[str, tuple[str, ...]]], before: Answers, now: Answers) -> Iterator[str]:
        for name, interfaces in now.items():
            for interface, calls in called[name].items():
                was, seen = before[name].get(interface, []), interfaces.get(interface, [])
                yield from (f"{name}: {interface}: {one}" for one in mute(calls, was, seen))

    def _answers(self, names: Iterable[str], called: Mapping[str, Mapping[str, tuple[str, ...]]]) -> Answers:
        """Return who answers; hosts that cannot be asked are left out."""
        found = each(self._runner, names, lambda name: self._asked(name, called[name]))
        return {name: one for name, one in found.items() if one is not None}

    def _asked(self, name: str, calls: Mapping[str, tuple[str, ...]]) -> Mapping[str, list[str]] | None:
        try:
            reader = self._connect(name)
            try:
                reader.open()
                states = reader.rail_states(calls)
            finally:
                reader.close()
        except NetkitError:
            return None
        return {one.interface: sorted(one.answers) for one in states if one.interface in calls}
