"""The health gate for CNPs: a change of a switch must not lose the CNPs of its rails.

A CNP in a lossy or unserved queue slows no sender down. Sums over a whole rail show that: its NICs must receive what
its NICs send. With too few CNPs, or a NIC that cannot be read, nothing is compared, and the gate reports that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import le

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.gate import ChainedAnswer, Gate, GateAnswer, GateQuestion, Moment, ask_first
from netkit.design import Fabric, Switch
from netkit.gate.cnp_watch import CnpWatch, RailReading
from netkit.intent.model import Thresholds
from netkit.judge.bound import surely_more
from netkit.judge.parity import RailSum
from netkit.platforms import PLATFORMS
from netkit.platforms.change import Risk

POLL_S = 0.5
FRESH_S = 30.0
"""The devices of a wave share a reading of this age before their changes."""
QUIET_S = 120.0
"""A rail is taken as quiet for this long, so that hosts are not read again before each of many devices."""
LOOK = "look at what was changed so far; netkit rollback undoes it"
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
        if question.moment is Moment.BEFORE:
            return self._before(rails, first)
        before = {int(rail): RailSum(*row) for rail, row in first.kept.get("rails", {}).items()}
        return self._after(before, first.kept.get("notes", ()), first.others, first.left_s)

    def _rails(self, question: GateQuestion) -> frozenset[int]:
        """Return the rails whose CNPs pass a device, if its change may touch their queues."""
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
