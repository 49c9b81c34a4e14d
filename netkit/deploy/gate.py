"""The contract of a health gate: whether a device and its neighbors are as healthy after a change as before.

A deploy gets its gate as a function. Each answer carries a sample, an opaque text of the gate; the sample from before
the change is kept in the journal and returned with every later question about the device.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import islice
from threading import Lock
from typing import Any, Literal, Protocol

from nornir.core.plugins.runners import RunnerPlugin
from pydantic import TypeAdapter

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.fan_out import each, threads
from netkit.deploy.live_paths import Sessions, cut_off
from netkit.design.fabric import Fabric, Host, Nic, Switch
from netkit.errors import AccessError, NetkitError
from netkit.platforms.change import Risk
from netkit.platforms.driver import RailReader, RailState, Reader, SessionState


class Moment(StrEnum):
    """The moments at which a gate is asked."""

    BEFORE = "before"
    """Nothing has happened yet: take a sample."""
    DRAINED = "drained"
    """The device is drained: has traffic moved away?"""
    AFTER = "after"
    """The change runs and can still be reverted."""
    WATCHED = "with its traffic back after"
    """A drained device has its traffic back: asked repeatedly for the watch time."""

    @property
    def is_after(self) -> bool:
        """Whether the change is running, so that health is compared with before."""
        return self in {Moment.AFTER, Moment.WATCHED}


Address = str
"""Without a prefix length."""


class RunMemory:
    """What changes of a run have taken down until a later change brings it back. Gates write it.

    The journal keeps it, so that a resumed run knows what its first part has ended.
    """

    def __init__(self) -> None:
        self.ended: dict[tuple[str, str], int] = {}
        """Device and interface of BGP sessions → prefixes received before."""
        self.lost: set[tuple[Address, Address]] = set()
        """Pairs of hosts that reached each other before, and by the prediction not after it."""
        self._kept, self._keeping = self._text(), Lock()

    def keep(self, write: Callable[[str], None]) -> None:
        """Write the memory if it has changed since it was last written."""
        with self._keeping:  # or an older text could be written after a newer one
            if (text := self._text()) != self._kept:
                write(text)
                self._kept = text

    def restore(self, text: str) -> None:
        """Replace the memory by a written one; raise ValueError for any other text."""
        ended, lost = REMEMBERED.validate_json(text)
        self.ended, self.lost, self._kept = {(name, port): count for name, port, count in ended}, set(lost), text

    def _text(self) -> str:
        ended = sorted((*end, count) for end, count in tuple(self.ended.items()))
        return json.dumps((ended, sorted(self.lost)))


REMEMBERED = TypeAdapter(tuple[list[tuple[str, str, int]], list[tuple[Address, Address]]])


class Prediction(Protocol):
    """What the routing model predicts for the present state of a deploy."""

    def reaches(self, source: Address, target: Address) -> bool:
        """Whether two host addresses reach each other in both directions."""

    def may_stay_lost(self, source: Address, target: Address) -> bool:
        """Whether a host may have lost a pair by its own change: a later step brings it back, or a rollback ends so."""


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """What a gate is asked about one device."""

    device: str
    moment: Moment
    reader: Reader
    """An open connection to the device."""
    neighbors: tuple[str, ...]
    risk: Risk
    ending: frozenset[str] = frozenset()
    """Interfaces whose BGP session the change removes for good."""
    interrupted: frozenset[str] = frozenset()
    """Ports towards other switches over which the change interrupts sessions."""
    needs_idle: bool = False
    """Whether lossless traffic must be idle before the change: it is disruptive, and `--busy` was not given."""
    may_cut_off: bool = False
    """Whether hosts may be cut off that have no other link while this device changes: `--busy` was given."""
    may_lose_paths: bool = False
    """Whether the last path of a device may be interrupted: `--disruptive` was given."""
    is_back: bool = False
    """Whether a rollback asks: the fabric is that of the intent, not the one it leads to."""
    is_together: bool = False
    """Whether redundant devices may change at the same time: `--together` was given."""
    sample: str = ""
    """What the gate answered before the change."""
    time_limit_s: float = 0.0
    """How long the gate may wait for things to settle."""
    prediction: Prediction | None = None
    """Without one, what was reachable before has to be reachable after."""
    narrowed: Mapping[str, int] = field(default_factory=dict)
    """Leaves that the device reaches over fewer ports after its change, and how many, as predicted."""
    addresses: frozenset[Address] | None = None
    """Those of a switch after its change, if they are known. A renumbered leaf loses its gateways."""
    moved: frozenset[str] = frozenset()
    """Hosts that leave a network beside the rails until all of it has changed."""
    memory: RunMemory = field(default_factory=RunMemory)
    """Of the whole run."""


Verdict = Literal["healthy", "worse", "inconclusive"]


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """A gate's verdict; a deploy continues only if it is `healthy`."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    sample: str = ""
    is_blank: bool = False
    """Before the change: no session, route, answer or address was seen that could be missing after it."""

    @property
    def is_healthy(self) -> bool:
        return self.verdict == "healthy"


Gate = Callable[[GateQuestion], GateAnswer]


def ask_gate(gate: Gate, question: GateQuestion) -> GateAnswer:
    """Ask a gate; a gate that fails is inconclusive, which is not healthy.

    AccessError is passed on: the caller handles a device that cannot be reached.
    """
    try:
        return gate(question)
    except AccessError:
        raise
    except Exception as error:
        return GateAnswer("inconclusive", (f"the health gate failed: {str(error) or type(error).__name__}",))


@dataclass(frozen=True, slots=True)
class ChainedAnswer:
    """The answer of the gate asked first, for a gate that adds to it."""

    others: GateAnswer
    kept: Mapping[str, Any]
    """This gate's own part of the sample from before the change."""
    left_s: float
    """The time left to wait for convergence."""

    def sample(self, **kept: Any) -> str:
        """The samples of both gates in one text."""
        return json.dumps({"others": self.others.sample, **kept})

    def without_more(self) -> GateAnswer:
        """The first gate's answer unchanged."""
        return replace(self.others, sample=self.sample())


def ask_first(others: Gate, question: GateQuestion, clock: DeployClock) -> ChainedAnswer:
    """Ask the other gate first, with its own part of the sample."""
    kept = json.loads(question.sample) if question.sample else {}
    began_s = clock.steady_s()
    answer = others(replace(question, sample=kept.get("others", "")))
    return ChainedAnswer(answer, kept, max(0.0, question.time_limit_s - (clock.steady_s() - began_s)))


POLL_S = 0.5
NEIGHBORS_AT_ONCE = 16


class SessionGate:
    """Compares the sessions of a device, and those of its neighbors with it, with what they were before.

    A session that the fabric no longer has may disappear. One that a change ended until its other end changes too has
    to be back after that. Where only descriptions change, neighbors are not asked. A switch that restarts sessions must
    not be the last one that a device below it has routes from, whatever the plan believes of the others.
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
            found = question.reader.sessions()
            # A device without any neighbour has no session, and its neighbours have none with it.
            others = self._read(question, question.neighbors) if found else {}
            here = self._established(question.device, found)
            sample = {question.device: here, **self._towards(question.device, others)}
            lost = tuple(self._await_paths(question, {question.device: here, **others}))
            verdict: Verdict = "worse" if lost else "healthy"
            return GateAnswer(verdict, lost, json.dumps(sample), is_blank=not any(sample.values()))
        before: dict[str, Sessions] = json.loads(question.sample)
        if question.moment is Moment.DRAINED:
            return self._check_drain(question, before[question.device])
        own = before[question.device]
        question.memory.ended |= {(question.device, port): own[port] for port in question.ending if port in own}
        due = self._due(question)
        answer = self._await_sessions(question, {**before, question.device: {**due, **own}})
        if answer.is_healthy:
            for port in due:
                del question.memory.ended[self._far_end(question.device, port)]
        return answer

    def _due(self, question: GateQuestion) -> Sessions:
        """The sessions of a device that a change of their other ends has ended, and that are due now."""
        found = self._fabric.device(question.device)
        ports = [port.name for port in found.fabric_ports] if isinstance(found, Switch) else []
        ended = {port: question.memory.ended.get(self._far_end(question.device, port)) for port in ports}
        return {port: count for port, count in ended.items() if count is not None and port not in question.ending}

    def _far_end(self, device: str, name: str) -> tuple[str, str]:
        return next((port.peer, port.peer_port) for port in self._fabric.switch(device).ports if port.name == name)

    def _check_drain(self, question: GateQuestion, before: Sessions) -> GateAnswer:
        """Answer for a drain: it moves routes, and must not end sessions."""
        self._clock.sleep_s(question.time_limit_s)
        kept = dict.fromkeys(before, 0)
        gone = tuple(
            self._missing(
                question,
                {question.device: kept},
                {question.device: self._established(question.device, question.reader.sessions())},
            )
        )
        return GateAnswer("worse", gone) if gone else GateAnswer("healthy")

    def _await_sessions(self, question: GateQuestion, before: Mapping[str, Sessions]) -> GateAnswer:
        """Poll until all is as it was, or the time limit is reached."""
        deadline_s = self._clock.steady_s() + question.time_limit_s
        seen: Sessions = before[question.device]
        while True:
            found = self._established(question.device, question.reader.sessions())
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
        unread = tuple(f"{name} no longer answers" for name in wanted if name not in now)
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
                    is_due = device == question.device and interface in self._due(question)
                    yield f"{device}: the session on {interface} is {'not back' if is_due else 'gone'}"
                elif prefixes and not sessions[interface]:
                    yield f"{device}: the session on {interface} carries no routes, {prefixes} before"

    def _is_kept(self, question: GateQuestion, device: str, interface: str) -> bool:
        """Whether a session has to be there after the change too, by the fabric and by the device's configuration."""
        found = self._fabric.device(device)
        ports = found.fabric_ports if isinstance(found, Switch) else ()
        port = next((port for port in ports if port.name == interface), None)
        return port is not None and (port.name if device == question.device else port.peer_port) not in question.ending

    def _neighbors(self, question: GateQuestion, names: Iterable[str]) -> dict[str, Sessions]:
        """The neighbors' sessions with the device, without the neighbors that cannot be asked."""
        return self._towards(question.device, self._read(question, names))

    def _read(self, question: GateQuestion, names: Iterable[str]) -> dict[str, Sessions]:
        """All sessions of neighbors, without the neighbors that cannot be asked."""
        found = each(self._runner, names, self._sessions_of) if question.risk is not Risk.NONE else {}
        return {name: sessions for name, sessions in found.items() if sessions is not None}

    def _towards(self, device: str, found: Mapping[str, Sessions]) -> dict[str, Sessions]:
        """Of the sessions of others, those with a device."""
        switch = self._fabric.device(device)
        ports = {(port.peer, port.peer_port) for port in (switch.fabric_ports if isinstance(switch, Switch) else ())}
        return {
            name: {port: prefixes for port, prefixes in sessions.items() if (name, port) in ports}
            for name, sessions in found.items()
        }

    def _await_paths(self, question: GateQuestion, seen: Mapping[str, Sessions]) -> Sequence[str]:
        """Poll while a leaf has no other path: sessions that an earlier change ended may be coming back."""
        deadline_s = self._clock.steady_s() + question.time_limit_s
        while cut_off := tuple(self._cut_off(question, seen)):
            if self._clock.steady_s() >= deadline_s:
                break
            self._clock.sleep_s(POLL_S)
            seen = {question.device: self._established(question.device, question.reader.sessions())}
        return cut_off

    def _cut_off(self, question: GateQuestion, seen: Mapping[str, Sessions]) -> Iterator[str]:
        """Yield what is wrong with the sessions that the change interrupts, by these sessions and others."""

        def read(names: Iterable[str]) -> Mapping[str, Sessions]:
            asked = set(names)
            known = {name: sessions for name, sessions in seen.items() if name in asked}
            return known | self._read(question, asked - known.keys())

        if seen[question.device] and not question.may_lose_paths:
            yield from cut_off(self._fabric, question.device, question.interrupted, read)

    def _sessions_of(self, name: str) -> Sessions | None:
        try:
            reader = self._connect(name)
            try:
                reader.open()
                return self._established(name, reader.sessions())
            finally:
                reader.close()
        except NetkitError:
            return None

    def _established(self, name: str, sessions: Iterable[SessionState]) -> dict[str, int]:
        found = self._fabric.device(name)
        ports = {port.neighbor: port.name for port in found.fabric_ports} if isinstance(found, Switch) else {}
        established = (one for one in sessions if one.is_established)
        return {ports.get(one.interface, one.interface): one.received_prefixes for one in established}


NO_LEAF = "its leaf does not answer"
OVER_IPV6 = " over IPv6"
MOST_FAR = 2
"""Hosts that are pinged over each rail, and as many across rails: one may be down for other reasons."""
Before = Mapping[str, Mapping[str, Any]]
Called = Mapping[str, tuple[str, ...]]
"""Finding if no address of a group answers → the addresses."""


class HostGate:
    """Judges hosts by their rails, and leaves all other devices to another gate.

    A rail that is configured after the change must match its files, unless it had no carrier before. Where the
    leaf, a far host on the rail, or one across rails answered before, at least one address of that group must answer
    after: hosts change together, and any may fail for its own reasons. A rail without answers before may stay so, and
    what a later step of the deploy is predicted to bring back need not answer, nor what a rollback ends without.
    """

    def __init__(self, fabric: Fabric, others: Gate, *, clock: DeployClock = CLOCK) -> None:
        self._fabric, self._others, self._clock = fabric, others, clock

    def __call__(self, question: GateQuestion) -> GateAnswer:
        host = self._fabric.device(question.device)
        if not isinstance(host, Host) or not isinstance(question.reader, RailReader):
            return self._others(question)
        far = {nic.interface: dict(self._due(host, nic, question.prediction)) for nic in host.nics}
        if not question.moment.is_after:
            found = {one.interface: asdict(one) for one in question.reader.rail_states(_addresses(far))}
            is_blank = not any(one["address"] for one in found.values())
            return GateAnswer("healthy", sample=json.dumps(found), is_blank=is_blank)
        return self._await_rails(question, question.reader, far)

    def _due(self, host: Host, nic: Nic, prediction: Prediction | None) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield what has to answer on a rail now, in each family; not the leaf if all others are to come back later."""
        for family, source in (("", nic.address), (OVER_IPV6, nic.address_v6)):
            leaf, groups = f"{NO_LEAF}{family}", called(self._fabric, host, nic, family) if source else {}
            due = {
                what: tuple(to for to in group if not (prediction and prediction.may_stay_lost(source, to)))
                for what, group in groups.items()
                if what != leaf
            }
            if groups and (any(due.values()) or not any(groups[what] for what in due)):
                yield leaf, groups[leaf]
            yield from due.items()

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


def called(fabric: Fabric, host: Host, nic: Nic, family: str = "") -> Called:
    """What a rail probes: its leaf, and hosts on this and other rails, those behind other leaves first."""
    others = [(other, one) for other in fabric.hosts if other != host for one in other.nics]
    others.sort(key=lambda pair: (pair[1].leaf == nic.leaf, abs(pair[0].number - host.number)))
    along = [one for _, one in others if one.rail == nic.rail]
    across = [one for _, one in others if one.rail != nic.rail and one.leaf != nic.leaf]

    def first(nics: Iterable[Nic], most: int) -> tuple[str, ...]:
        found = (one.address_v6 if family else one.address for one in nics)
        return tuple(islice(filter(None, found), most))

    return {
        f"{NO_LEAF}{family}": (nic.gateway_v6 if family else nic.gateway,),
        f"no far rail answers{family}": first(along, MOST_FAR),
        f"no NIC on another rail answers{family}": first(across, MOST_FAR if fabric.cross_rail == "routed" else 0),
    }


def mute(groups: Called, before: Iterable[str], now: Iterable[str]) -> Iterator[str]:
    """Yield the groups in which an address answered before and none does now."""
    answered, answering = set(before), set(now)
    for what, group in groups.items():
        if answered & {*group} and not {*group} & answering:
            yield f"{what} any more; before, {', '.join(sorted(answered & {*group}))} did"
