"""The health gate for CNPs: a change of a switch must not lose the CNPs of its rails.

A CNP in a lossy or unserved queue slows no sender down. Sums over a whole rail show that: its NICs must receive what
its NICs send. With too few CNPs, or a NIC that cannot be read, nothing is compared, and the gate reports that.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import le

from nornir.core.plugins.runners import RunnerPlugin

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.fan_out import each, threads
from netkit.deploy.gate import ChainedAnswer, Gate, GateAnswer, GateQuestion, Moment, ask_first
from netkit.design import Fabric, Switch
from netkit.errors import NetkitError
from netkit.facts import Sample
from netkit.intent.model import Thresholds
from netkit.judge.bound import surely_more
from netkit.judge.delta import MISSING, Delta, deltas
from netkit.judge.parity import RailSum, is_read, rail_sum
from netkit.observe.assemble import sample
from netkit.platforms import PLATFORMS
from netkit.platforms.change import Risk
from netkit.platforms.view import View, Viewer

WINDOW_S, LONGEST_WINDOW_S = 3.0, 20.0
SPREADS = 20
"""The window is this many times longer than the time to take its samples, up to the longest."""
MOST_HOSTS = 64
"""More hosts cannot be read at the same time."""
MOST_NAMED = 4
Samples = Mapping[str, Sample]
Connect = Callable[[str], Viewer]
ViewsOf = Callable[[str], Sequence[View]]


@dataclass(frozen=True, slots=True)
class RailReading:
    """The CNPs of one rail, or why they are unknown."""

    sums: RailSum | None = None
    why_not: str = ""
    doubt_percent: float = 0.0
    """The difference that NICs read at different moments may cause."""


class CnpWatch:
    """Reads hosts. Callers share a reading that began late enough for all of them."""

    def __init__(
        self,
        fabric: Fabric,
        connect: Connect,
        views: ViewsOf,
        *,
        clock: DeployClock = CLOCK,
        runner: RunnerPlugin | None = None,
    ) -> None:
        self._fabric, self._connect, self._views, self._clock = fabric, connect, views, clock
        self._runner = runner or threads(MOST_HOSTS)
        self._hosts = {
            rail.number: {host.name for host in fabric.hosts if any(nic.rail == rail.number for nic in host.nics)}
            for rail in fabric.rails
        }
        self._lock = threading.Lock()
        self._began_s = 0.0
        self._found: Mapping[int, RailReading] = {}

    def rails(self, numbers: frozenset[int], is_good: Callable[[float], bool]) -> Mapping[int, RailReading]:
        """The CNPs of rails; an earlier reading is reused if `is_good` accepts the time it began."""
        with self._lock:
            if not (numbers <= self._found.keys() and is_good(self._began_s)):
                self._began_s = self._clock.steady_s()
                self._found = self._read(numbers)
            return {number: self._found[number] for number in numbers}

    def _read(self, numbers: frozenset[int]) -> Mapping[int, RailReading]:
        hosts = {name for number in numbers for name in self._hosts[number]}
        if len(hosts) > MOST_HOSTS:
            why = f"{len(hosts)} hosts are more than the {MOST_HOSTS} that can be read at the same time"
            return dict.fromkeys(numbers, RailReading(why_not=why))
        viewers = {name: one for name, one in each(self._runner, hosts, self._opened).items() if one is not None}
        try:
            first, ahead_s = self._samples(viewers), self._clock.ahead_s()
            window_s = min(LONGEST_WINDOW_S, max(WINDOW_S, SPREADS * _spread_s(first.values())))
            self._clock.sleep_s(window_s)
            whole = [number for number, names in self._hosts.items() if names <= hosts]
            last, moved_s = self._samples(viewers), self._clock.ahead_s() - ahead_s
            # Samples carry wall-clock times, and the clock may have been set in between.
            first = {name: replace(one, at_s=one.at_s + moved_s) for name, one in first.items()}
            return self._readings(whole, first, last)
        finally:
            for viewer in viewers.values():
                with suppress(Exception):
                    viewer.close()

    def _opened(self, name: str) -> Viewer | None:
        viewer = self._connect(name)
        try:
            viewer.open()
        except NetkitError:
            return None
        return viewer

    def _samples(self, viewers: Mapping[str, Viewer]) -> Samples:
        found = each(self._runner, viewers, lambda name: self._sample(name, viewers[name]))
        return {name: one for name, one in found.items() if one is not None}

    def _sample(self, name: str, viewer: Viewer) -> Sample | None:
        views = [view for view in self._views(name) if view.counts]
        commands = tuple(dict.fromkeys(command for view in views for command in view.commands))
        try:
            return sample(views, dict(zip(commands, viewer.ask(commands), strict=True)))
        except NetkitError:
            return None

    def _readings(self, numbers: Iterable[int], first: Samples, last: Samples) -> Mapping[int, RailReading]:
        both = {name: (first[name], last[name]) for name in first.keys() & last.keys()}
        windows = [end.at_s - begin.at_s for begin, end in both.values()]
        spread_s = _spread_s(begin for begin, _ in both.values()) + _spread_s(end for _, end in both.values())
        doubt_percent = 100 * spread_s / max(min(windows, default=WINDOW_S), WINDOW_S)
        return {number: self._reading(number, both, doubt_percent) for number in numbers}

    def _reading(self, rail: int, both: Mapping[str, tuple[Sample, Sample]], doubt_percent: float) -> RailReading:
        ends = [(host.name, nic.interface) for host in self._fabric.hosts for nic in host.nics if nic.rail == rail]
        nics = {(name, interface): partial(_delta_of, both.get(name, ()), interface) for name, interface in ends}
        unread = sorted({name for (name, _), nic in nics.items() if not is_read(nic)})
        if unread:
            more = f" and {len(unread) - MOST_NAMED} more" if len(unread) > MOST_NAMED else ""
            return RailReading(why_not=f"not all of its NICs were read: {', '.join(unread[:MOST_NAMED])}{more}")
        return RailReading(rail_sum(nics.values()), doubt_percent=doubt_percent)


def _delta_of(samples: tuple[Sample, ...], interface: str, counter: str) -> Delta:
    return deltas(counter, samples).get(interface, MISSING)


def _spread_s(samples: Iterable[Sample]) -> float:
    times = [one.at_s for one in samples]
    return max(times) - min(times) if times else 0.0


POLL_S = 0.5
FRESH_S = 30.0
"""The devices of a wave share a reading of this age before their changes."""
QUIET_S = 120.0
"""A rail is taken as quiet for this long, so that hosts are not read again before each of many devices."""
LOOK = "review the changes so far; netkit rollback reverts them"
Rails = Mapping[int, RailSum]


class CnpGate:
    """Asks another gate first; around changes that may rearrange queues it compares the CNPs of rails.

    A drained spine carries no CNPs when the gate is asked about it. The effect of its change shows before the next
    device changes: by then the rails must be as they were when the deploy began.
    """

    def __init__(
        self, fabric: Fabric, others: Gate, watch: CnpWatch, limits: Thresholds, *, clock: DeployClock = CLOCK
    ) -> None:
        self._fabric, self._others, self._watch, self._limits, self._clock = fabric, others, watch, limits, clock
        self._first: dict[int, RailSum] = {}
        """The first reading of each rail in this deploy."""

    def __call__(self, question: GateQuestion) -> GateAnswer:
        first = ask_first(self._others, question, self._clock)
        rails = self._rails(question)
        if not first.others.is_healthy or not rails or question.moment is Moment.DRAINED:
            return first.without_more()
        if question.moment is Moment.BEFORE and first.others.is_blank and not self._first:
            return first.without_more()
        if question.moment is Moment.BEFORE:
            return self._before(rails, first)
        before = {int(rail): RailSum(*row) for rail, row in first.kept.get("rails", {}).items()}
        return self._after(before, first.kept.get("notes", ()), first.others, first.left_s)

    def _rails(self, question: GateQuestion) -> frozenset[int]:
        """The rails whose CNPs pass a device, if its change may touch their queues."""
        found = self._fabric.device(question.device)
        if question.risk < Risk.BUFFER or not isinstance(found, Switch) or PLATFORMS[found.platform].lacks("pfc"):
            return frozenset()
        nics = (nic for host in self._fabric.hosts for nic in host.nics)
        return frozenset(nic.rail for nic in nics if found.role != "leaf" or nic.leaf == found.name)

    def _before(self, rails: frozenset[int], first: ChainedAnswer) -> GateAnswer:
        oldest_s = FRESH_S if self._first else QUIET_S
        found = self._watch.rails(rails, lambda began_s: self._clock.steady_s() - began_s <= oldest_s)
        known = self._known(found)
        lost = tuple(self._worse(self._first, found, "when the deploy began"))
        self._first = {**known, **self._first}
        notes = tuple(self._notes(found, "before the change"))
        sample = first.sample(rails=known, notes=notes)
        if lost:
            return GateAnswer("worse", (*lost, LOOK), sample)
        return replace(first.others, sample=sample, is_blank=first.others.is_blank and not known)

    def _after(self, before: Rails, notes: tuple[str, ...], answer: GateAnswer, left_s: float) -> GateAnswer:
        """Poll until CNPs arrive as before, or the time limit is reached."""
        deadline_s = self._clock.steady_s() + left_s
        while before:
            asked_s = self._clock.steady_s()
            found = self._watch.rails(frozenset(before), partial(le, asked_s))
            lost = tuple(self._worse(before, found, "before"))
            unread = tuple(f"rail {rail}: {one.why_not}" for rail, one in found.items() if one.sums is None)
            if not lost and not unread:
                return replace(answer, reasons=(*answer.reasons, *notes, *self._notes(found, "after it")))
            if self._clock.steady_s() >= deadline_s:
                return GateAnswer("worse" if lost else "inconclusive", lost or unread)
            self._clock.sleep_s(POLL_S)
        return replace(answer, reasons=(*answer.reasons, *notes))

    def _known(self, found: Mapping[int, RailReading]) -> dict[int, RailSum]:
        return {rail: one.sums for rail, one in found.items() if one.sums is not None and one.sums.is_enough}

    def _worse(self, before: Rails, found: Mapping[int, RailReading], when: str) -> Iterator[str]:
        """Yield the rails that lose more of their CNPs than before."""
        for rail, now in self._known(found).items():
            if rail not in before:
                continue
            was = before[rail]
            was_percent = max(0.0, was.loss_percent)
            most_percent = was_percent + self._limits.cnp_loss_fail_percent + found[rail].doubt_percent
            lost_then = max(0, was.sent - was.heard)
            if now.loss_percent >= most_percent and surely_more(now.sent - now.heard, now.sent, lost_then, was.sent):
                lost = f"{now.loss_percent:.1f} % of its CNPs never arrive, {was_percent:.1f} % {when}"
                yield f"rail {rail}: {lost}: {now}"

    def _notes(self, found: Mapping[int, RailReading], when: str) -> Iterator[str]:
        """Yield what is not compared, and why; rails with the same reason together."""
        known, causes = self._known(found), dict[str, list[str]]()
        for rail in sorted(found.keys() - known.keys()):
            few = f"too few {when}"
            causes.setdefault(found[rail].why_not or few, []).append(str(rail))
        for cause, rails in causes.items():
            some = f"CNPs of rail{'s' * (len(rails) > 1)} {', '.join(rails)}"
            what = "its CNPs" if len(rails) == len(found) else some
            yield f"{what} were not compared: {cause}"
