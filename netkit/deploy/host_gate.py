"""The health gate of GPU hosts: they have no BGP sessions, so each rail is read, and far rails are pinged."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.gate import Gate, GateAnswer, GateQuestion
from netkit.design.fabric import Fabric, Host, Nic
from netkit.platforms.driver import RailReader, RailState

POLL_S = 0.5
MOST_FAR = 2
"""Hosts that are pinged over each rail, and as many across rails: one may be down for other reasons."""
Before = Mapping[str, Mapping[str, Any]]
Called = Mapping[str, tuple[str, ...]]
"""Finding if no address of a group answers → the addresses."""


class HostGate:
    """Judges hosts by their rails, and leaves all other devices to another gate.

    A rail that is configured after the change must be as its files say, unless it had no carrier before. Where the
    leaf, a far host on the rail, or one across rails answered before, at least one address of that group must answer
    after: hosts change together, and any may fail for its own reasons. A rail without answers before may stay so.
    """

    def __init__(self, fabric: Fabric, others: Gate, *, clock: DeployClock = CLOCK) -> None:
        self._fabric, self._others, self._clock = fabric, others, clock

    def __call__(self, question: GateQuestion) -> GateAnswer:
        host = self._fabric.device(question.device)
        if not isinstance(host, Host) or not isinstance(question.reader, RailReader):
            return self._others(question)
        far = {nic.interface: called(self._fabric, host, nic) for nic in host.nics}
        if not question.moment.is_after:
            found = {one.interface: asdict(one) for one in question.reader.rail_states(_addresses(far))}
            return GateAnswer("healthy", sample=json.dumps(found))
        return self._await_rails(question, question.reader, far)

    def _await_rails(self, question: GateQuestion, reader: RailReader, far: Mapping[str, Called]) -> GateAnswer:
        """Poll until all is well or the time limit is reached."""
        before: Before = json.loads(question.sample or "{}")
        wanted = {
            name: [one for one in to if one in before.get(name, {}).get("answers", ())]
            for name, to in _addresses(far).items()
        }
        deadline_s = self._clock.steady_s() + question.time_limit_s
        while True:
            found = reader.rail_states(wanted)
            worse = tuple(f"{question.device}: {one}" for state in found for one in _worse(state, before, far))
            left_s = deadline_s - self._clock.steady_s()
            if not worse or left_s <= 0:
                return GateAnswer("worse", worse) if worse else GateAnswer("healthy")
            self._clock.sleep_s(min(POLL_S, left_s))


def _addresses(far: Mapping[str, Called]) -> dict[str, tuple[str, ...]]:
    return {interface: tuple(to for group in groups.values() for to in group) for interface, groups in far.items()}


def _worse(state: RailState, before: Before, far: Mapping[str, Called]) -> Iterator[str]:
    """Yield what is worse on a rail than before the change."""
    known = before.get(state.interface, {})
    if not state.is_configured or (state.is_dark and known.get("is_dark", False)):
        return
    if state.is_dark:
        yield f"{state.interface} has no carrier"
        return
    yield from (f"{state.interface}: {one}" for one in state.problems)
    lost = mute(far.get(state.interface, {}), known.get("answers", ()), state.answers)
    yield from (f"{state.interface}: {one}" for one in lost)


def called(fabric: Fabric, host: Host, nic: Nic) -> Called:
    """Return what a rail probes: its leaf, and hosts on this and other rails, those behind other leaves first."""
    others = [(other, one) for other in fabric.hosts if other != host for one in other.nics]
    others.sort(key=lambda pair: (pair[1].leaf == nic.leaf, abs(pair[0].number - host.number)))
    along = [one.address for _, one in others if one.rail == nic.rail]
    across = [one.address for _, one in others if one.rail != nic.rail and one.leaf != nic.leaf]
    is_routed = fabric.cross_rail == "routed"
    return {
        "its leaf does not answer": (nic.gateway,),
        "no far rail answers": tuple(along[:MOST_FAR]),
        "no NIC on another rail answers": tuple(across[: MOST_FAR * is_routed]),
    }


def mute(groups: Called, before: Iterable[str], now: Iterable[str]) -> Iterator[str]:
    """Yield the groups in which an address answered before and none does now."""
    answered, answering = set(before), set(now)
    for what, group in groups.items():
        if answered & {*group} and not {*group} & answering:
            yield f"{what} any more; before, {', '.join(sorted(answered & {*group}))} did"
