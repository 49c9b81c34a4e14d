"""The health gate of a deploy: the vitals of a device before and after its change.

The gates in netkit.deploy cover sessions and the rails of hosts. This one adds what a lossless fabric needs: the
lossless class loses no more than before, no watchdog trips, pauses do not rise, leaves are reached over as many ports,
and optical power is as before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import cast

from pydantic import TypeAdapter

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.gate import ChainedAnswer, Gate, GateAnswer, GateQuestion, Moment, ask_first
from netkit.design import Fabric, Host, Switch
from netkit.design.expectation import LeafReach, without_drains
from netkit.gate.vitals import Vitals, busy, moving_bytes_per_s, unreported, vitals, worse
from netkit.observe.assemble import Replies, facts, sample
from netkit.platforms import PLATFORMS
from netkit.platforms.change import Risk
from netkit.platforms.view import View, Viewer

WINDOW_S, POLL_S = 1.0, 0.5
COMPARED = frozenset({"counters", "routes"})
"""Facts that are compared after every change except changes of descriptions."""
LIGHT = frozenset({"modules"})
"""Also compared after a change that takes links down; reading modules is slow."""
MOST_NAMED = 3
WAIT, GOES_ON = "deploy again when it is idle;", "--disruptive --busy goes on"
MOVED_SHARE = 0.05
"""A drained device may still send this part of what it sent before."""
ADAPTER = TypeAdapter(Vitals)
ViewsOf = Callable[[str], Sequence[View]]


class HealthGate:
    """Asks another gate first, then compares the vitals of the device with those from before."""

    def __init__(
        self, fabric: Fabric, others: Gate, views: ViewsOf, *, trend_db: float = 2.0, clock: DeployClock = CLOCK
    ) -> None:
        self._fabric, self._others, self._views, self._trend_db, self._clock = fabric, others, views, trend_db, clock
        self._lossless = fabric.lossless.lossless_priorities
        self._prefixes = frozenset(leaf.leaf_prefix for leaf in fabric.tier("leaf") if leaf.leaf_prefix)
        self._left = without_drains(fabric)

    def __call__(self, question: GateQuestion) -> GateAnswer:
        first = ask_first(self._others, question, self._clock)
        if not first.others.is_healthy or question.risk is Risk.NONE:
            return first.without_more()
        if question.moment is Moment.BEFORE:
            return self._before(question, first)
        if "vitals" not in first.kept:
            return GateAnswer("inconclusive", (f"{question.device}: it was not read before the change",))
        before = ADAPTER.validate_python(first.kept["vitals"])
        if question.moment is Moment.DRAINED:
            return self._drained(question, before, first.left_s)
        return self._after(question, before, first.left_s)

    def _before(self, question: GateQuestion, first: ChainedAnswer) -> GateAnswer:
        now = self._look(question)
        kept = first.sample(vitals=asdict(now))
        if not question.needs_idle:
            return GateAnswer(
                "healthy", sample=kept, is_blank=first.others.is_blank and not any((now.widths or {}).values())
            )
        moving = busy(now)
        if moving is None:
            reason = f"does not report whether lossless traffic flows; {GOES_ON} without knowing"
            return GateAnswer("inconclusive", (f"{question.device}: {reason}",), kept)
        named = "; ".join(moving[:MOST_NAMED])
        more = f" and {len(moving) - MOST_NAMED} more" if len(moving) > MOST_NAMED else ""
        reasons = (f"{question.device}: {named}{more}; {WAIT} {GOES_ON} anyway",) if moving else ()
        return GateAnswer("worse" if reasons else "healthy", reasons, kept)

    def _drained(self, question: GateQuestion, before: Vitals, left_s: float) -> GateAnswer:
        """Poll until traffic has moved, or the time limit is reached."""
        was = moving_bytes_per_s(before)
        deadline_s = self._clock.steady_s() + left_s
        while True:
            rate = moving_bytes_per_s(self._look(question)) if was else 0.0
            if rate <= MOVED_SHARE * was:
                return GateAnswer("healthy")
            if self._clock.steady_s() >= deadline_s:
                text = f"still sends {rate * 8 / 1e9:.1f} Gb/s of the lossless class though it is drained"
                return GateAnswer("worse", (f"{question.device}: {text}",))

    def _after(self, question: GateQuestion, before: Vitals, left_s: float) -> GateAnswer:
        """Poll until all is as it was, or the time limit is reached."""
        deadline_s = self._clock.steady_s() + left_s
        before = replace(before, widths=self._kept_widths(question.device, before.widths or {}))
        while True:
            now = self._look(question)
            found = tuple(worse(before, now, question.ending, self._trend_db))
            silent = tuple(unreported(before, now))
            if not found and not silent:
                return GateAnswer("healthy")
            if self._clock.steady_s() >= deadline_s:
                reasons = tuple(f"{question.device}: {one}" for one in found or silent)
                return GateAnswer("worse" if found else "inconclusive", reasons)
            self._clock.sleep_s(POLL_S)

    def _kept_widths(self, name: str, before: Mapping[str, int]) -> Mapping[str, int]:
        """Return the widths to expect: those from before, without what is drained now."""
        if self._left is self._fabric or not isinstance(self._fabric.device(name), Switch):
            return before
        wanted = LeafReach(self._left).widths(self._left.switch(name))
        return {prefix: min(width, wanted.get(prefix, width)) for prefix, width in before.items()}

    def _look(self, question: GateQuestion) -> Vitals:
        """Read the device: its counters over a moment, its routes, and its light where links went down."""
        viewer = cast("Viewer", question.reader)
        wanted = COMPARED | LIGHT if question.risk >= Risk.PORT else COMPARED
        views = [view for view in self._views(question.device) if view.yields & wanted]
        counting = [view for view in views if view.counts]
        first, ahead_s = sample(counting, _replies(viewer, counting)), self._clock.ahead_s()
        self._clock.sleep_s(WINDOW_S)
        replies = _replies(viewer, views)
        last, moved_s = sample(counting, replies), self._clock.ahead_s() - ahead_s
        # Samples carry wall-clock times, and the clock may have been set in between.
        samples = [replace(first, at_s=first.at_s + moved_s)] if first is not None else []
        samples += [last] if last is not None else []
        return vitals(facts(views, replies), samples, self._prefixes, self._lossless_on(question.device))

    def _lossless_on(self, name: str) -> tuple[int, ...]:
        """Return the lossless priorities of a device; none if its switches have no PFC and may drop."""
        device = self._fabric.device(name)
        leaves = {nic.leaf for nic in device.nics} if isinstance(device, Host) else {name}
        found = (self._fabric.device(leaf) for leaf in leaves)
        has_pfc = all(not PLATFORMS[one.platform].lacks("pfc") for one in found if isinstance(one, Switch))
        return self._lossless if has_pfc else ()


def _replies(viewer: Viewer, views: Sequence[View]) -> Replies:
    commands = tuple(dict.fromkeys(command for view in views for command in view.commands))
    return dict(zip(commands, viewer.ask(commands), strict=True))
