"""A health gate of GPU hosts: they have no sessions, so they are asked for each rail, and far rails are called."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from netkit.deploy.clock import CLOCK, Clock
from netkit.deploy.gate import Gate, GateAnswer, GateQuestion, Moment
from netkit.design.fabric import Fabric, Host, Nic
from netkit.platforms.driver import RailReader, RailState

POLL_S = 0.5
MOST_FAR = 2
"""Hosts that are called over each rail: one may be down for reasons of its own."""
Before = Mapping[str, Mapping[str, Any]]


class HostGate:
    """Judges hosts by their rails, and leaves all other devices to another gate.

    A rail that is configured after the change must be as its files say, unless it had no carrier before. Where the leaf
    or a far rail answered before, they have to answer after; a rail that was mute before may stay so.
    """

    def __init__(self, fabric: Fabric, others: Gate, *, clock: Clock = CLOCK) -> None:
        self._fabric, self._others, self._clock = fabric, others, clock

    def __call__(self, question: GateQuestion) -> GateAnswer:
        """Answer one question."""
        host = self._fabric.device(question.device)
        if not isinstance(host, Host) or not isinstance(question.reader, RailReader):
            return self._others(question)
        far = {nic.interface: (nic.gateway, *far_addresses(self._fabric, host, nic)) for nic in host.nics}
        if question.moment is not Moment.AFTER:
            found = {one.interface: asdict(one) for one in question.reader.rail_states(far)}
            return GateAnswer("healthy", sample=json.dumps(found))
        return self._settled(question, question.reader, far)

    def _settled(self, question: GateQuestion, reader: RailReader, far: Mapping[str, tuple[str, ...]]) -> GateAnswer:
        """Return the answer once all is well, or when patience is over."""
        before: Before = json.loads(question.sample or "{}")
        called = {
            name: [one for one in to if one in before.get(name, {}).get("answers", ())] for name, to in far.items()
        }
        deadline_s = self._clock.steady_s() + question.patience_s
        while True:
            found = reader.rail_states(called)
            worse = tuple(f"{question.device}: {one}" for state in found for one in _worse(state, before, far))
            left_s = deadline_s - self._clock.steady_s()
            if not worse or left_s <= 0:
                return GateAnswer("worse", worse) if worse else GateAnswer("healthy")
            self._clock.sleep_s(min(POLL_S, left_s))


def _worse(state: RailState, before: Before, far: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield what is wrong with a rail that is not to be blamed on what was before."""
    known = before.get(state.interface, {})
    if not state.is_configured or (state.is_dark and known.get("is_dark", False)):
        return
    if state.is_dark:
        yield f"{state.interface} has no carrier"
        return
    yield from (f"{state.interface}: {one}" for one in state.problems)
    lost = mute(far.get(state.interface, ()), known.get("answers", ()), state.answers)
    yield from (f"{state.interface}: {one}" for one in lost)


def far_addresses(fabric: Fabric, host: Host, nic: Nic) -> tuple[str, ...]:
    """Return addresses on the same rail, behind another leaf where there is one."""
    same = [(other, one) for other in fabric.hosts if other != host for one in other.nics if one.rail == nic.rail]
    same.sort(key=lambda pair: (pair[1].leaf == nic.leaf, abs(pair[0].number - host.number)))
    return tuple(one.address for _, one in same[:MOST_FAR])


def mute(called: Sequence[str], before: Iterable[str], now: Iterable[str]) -> Iterator[str]:
    """Yield who of those that were called, the leaf first, answered before and answers no more."""
    answered, answering = set(before), set(now)
    for what, group in (("its leaf does not answer", set(called[:1])), ("no far rail answers", set(called[1:]))):
        if answered & group and not group & answering:
            yield f"{what} any more; before, {', '.join(sorted(answered & group))} did"
