"""CNPs of whole rails at one moment: every NIC of a rail is read at both ends of a window, else it is unknown."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from nornir.core.plugins.runners import RunnerPlugin

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.fan_out import each, threads
from netkit.design import Fabric
from netkit.errors import NetkitError
from netkit.facts import Sample
from netkit.judge.delta import MISSING, Delta, deltas
from netkit.judge.parity import RailSum, is_read, rail_sum
from netkit.observe.assemble import sample
from netkit.platforms.view import View, Viewer

WINDOW_S, LONGEST_WINDOW_S = 3.0, 20.0
SPREADS = 20
"""The window is this many times longer than the time to take its samples, up to the longest."""
MOST_HOSTS = 64
"""More hosts cannot be read at one moment."""
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
        """Return the CNPs of rails; an earlier reading is reused if `is_good` accepts the time it began."""
        with self._lock:
            if not (numbers <= self._found.keys() and is_good(self._began_s)):
                self._began_s = self._clock.steady_s()
                self._found = self._read(numbers)
            return {number: self._found[number] for number in numbers}

    def _read(self, numbers: frozenset[int]) -> Mapping[int, RailReading]:
        hosts = {name for number in numbers for name in self._hosts[number]}
        if len(hosts) > MOST_HOSTS:
            why = f"{len(hosts)} hosts are more than the {MOST_HOSTS} that can be read at one moment"
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
