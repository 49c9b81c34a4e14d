"""The health gate between the two switches of a pair: no host may lose its last link.

A host with a LAG to both switches keeps one link while the other switch changes. So a switch that has changed must
carry every link that it carried before, and see its peer; and the other one carries the hosts while this one changes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.gate import ChainedAnswer, Gate, GateAnswer, GateQuestion, Moment, ask_first
from netkit.design.fabric import Access, Fabric, Switch
from netkit.errors import NetkitError
from netkit.facts import Absent, Facts
from netkit.observe.assemble import facts
from netkit.platforms.change import Risk
from netkit.platforms.view import View, Viewer

POLL_S = 0.5
MOST_NAMED = 5
NEEDED = frozenset({"interfaces", "lags", "mlag"})
PEER = "MLAG"
"""The key of the peer among links."""
GOES_ON = "--busy proceeds anyway"
Links = Mapping[str, str]
"""Port, or LAG and its number → the device at the other end."""


class PairGate:
    """Asks another gate first, then compares the links of a switch beside the rails with those from before."""

    def __init__(
        self,
        fabric: Fabric,
        others: Gate,
        views: Callable[[str], Sequence[View]],
        connect: Callable[[str], Viewer],
        *,
        clock: DeployClock = CLOCK,
    ) -> None:
        self._fabric, self._others, self._views, self._connect = fabric, others, views, connect
        self._clock = clock
        self._before: dict[str, Links] = {}
        """What switches carried before they changed in this run."""

    def __call__(self, question: GateQuestion) -> GateAnswer:
        first = ask_first(self._others, question, self._clock)
        switch = self._fabric.device(question.device)
        access = switch.access if isinstance(switch, Switch) else None
        is_felt = question.risk is not Risk.NONE and question.moment is not Moment.DRAINED
        if not first.others.is_healthy or access is None or not is_felt:
            return first.without_more()
        viewer = cast("Viewer", question.reader)
        if question.moment is Moment.BEFORE:
            return self._ask_before(question, first, access, self._links(question.device, viewer))
        return self._await_links(question, first, access, viewer)

    def _ask_before(
        self, question: GateQuestion, first: ChainedAnswer, access: Access, now: Links | None
    ) -> GateAnswer:
        if now is None:
            reason = f"{question.device}: it does not report which links are active"
            return GateAnswer("inconclusive", (reason,), first.sample(links={}))
        self._before[question.device] = now
        sample, is_blank = first.sample(links=dict(now)), first.others.is_blank and not now
        lost = () if access.pair is None else tuple(self._lost_at(access.pair.partner, now, question))
        return GateAnswer("worse" if lost else "healthy", _few(lost), sample, is_blank)

    def _lost_at(self, partner: str, now: Links, question: GateQuestion) -> Iterator[str]:
        """Yield what the other switch does not carry, so that the change would cut it off."""
        earlier = self._before.get(partner, {})
        is_guarded = question.risk >= Risk.PORT and not question.may_cut_off
        if not (earlier or is_guarded):
            return
        there = self._links_of(partner)
        if there is None:
            if any(key != PEER for key in now):
                what = f"{partner} cannot be read: devices without a link to it would be cut off"
                yield f"{question.device}: {what}; {GOES_ON}"
            return
        for key, who in now.items():
            if key == PEER or key in there or not key.startswith("LAG"):
                continue
            if key in earlier:
                yield f"{partner}: {who} has lost its link since {partner} changed: {question.device} would cut it off"
            elif is_guarded:
                yield f"{question.device}: {who} has no link to {partner}: the change would cut it off; {GOES_ON}"

    def _await_links(self, question: GateQuestion, first: ChainedAnswer, access: Access, viewer: Viewer) -> GateAnswer:
        """Poll until everything is back that is still designed, or the time limit is reached."""
        designed = _designed(access)
        kept: Links = first.kept.get("links", {})
        wanted = {key: who for key, who in kept.items() if key == PEER or designed.get(key) == who}
        deadline_s = self._clock.steady_s() + first.left_s
        while True:
            now = self._links(question.device, viewer)
            lost = tuple(key for key in wanted if now is not None and key not in now)
            if now is not None and not lost:
                return first.others
            if self._clock.steady_s() >= deadline_s:
                break
            self._clock.sleep_s(POLL_S)
        if now is None:
            return GateAnswer("inconclusive", (f"{question.device}: it no longer reports which links are active",))
        firsts = {wanted[key]: key for key in reversed(lost)}  # a port rather than its LAG
        named = [f"{question.device}: {_not_back(key, wanted[key])}" for key in lost if key in firsts.values()]
        return GateAnswer("worse", _few(named))

    def _links_of(self, name: str) -> Links | None:
        try:
            viewer = self._connect(name)
            try:
                viewer.open()
                return self._links(name, viewer)
            finally:
                viewer.close()
        except NetkitError:
            return None

    def _links(self, name: str, viewer: Viewer) -> Links | None:
        """Read what a switch carries; None if it does not report it."""
        views = [view for view in self._views(name) if view.yields & NEEDED and not view.is_costly]
        commands = tuple(dict.fromkeys(command for view in views for command in view.commands))
        found = facts(views, dict(zip(commands, viewer.ask(commands), strict=True)))
        access = self._fabric.switch(name).access
        return None if access is None else _carrying(access, found)


def _designed(access: Access) -> Links:
    """Every link that hosts and servers depend on."""
    ports = {port.name: port.peer for port in access.ports if port.kind == "host"}
    return {**ports, **{f"LAG {lag.number}": lag.peer for lag in access.lags}}


def _carrying(access: Access, found: Facts) -> Links | None:
    if isinstance(found.interfaces, Absent) or (access.lags and isinstance(found.lags, Absent)):
        return None
    up = {name for name, one in found.interfaces.items() if one.is_up}
    up |= set() if isinstance(found.lags, Absent) else {f"LAG {name}" for name, one in found.lags.items() if one.is_up}
    links = {key: who for key, who in _designed(access).items() if key in up}
    is_paired = access.pair is not None and not isinstance(found.mlag, Absent) and found.mlag.is_peer_alive
    return {**links, PEER: access.pair.partner} if access.pair and is_paired else links


def _not_back(key: str, who: str) -> str:
    if key == PEER:
        return f"MLAG does not see {who} any more"
    return f"the link of {who} is not back ({key}): it would be cut off when the other switch changes"


def _few(reasons: Sequence[str]) -> tuple[str, ...]:
    more = len(reasons) - MOST_NAMED
    return (*reasons[:MOST_NAMED], f"and {more} more") if more > 0 else tuple(reasons)
