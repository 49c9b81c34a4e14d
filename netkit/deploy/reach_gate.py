"""The health gate of the hosts below a switch: pairs that reached each other before have to do so after.

Hosts are asked over SSH and ping from the addresses of the rail, of IPv4 and of IPv6 where they have it. Pairs run
along the rail and across rails, to other leaves, so that they cross a changing spine as far as the hashing of its
neighbours allows. At a network beside the rails, hosts ping its gateway.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from typing import Protocol, TypeVar

from nornir.core.plugins.runners import RunnerPlugin
from pydantic import TypeAdapter

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.fan_out import each, threads
from netkit.deploy.gate import Address, ChainedAnswer, Gate, GateAnswer, GateQuestion, Moment, ask_first
from netkit.design.fabric import Fabric, Host, Nic, Switch
from netkit.errors import NetkitError
from netkit.platforms.change import Risk
from netkit.platforms.driver import RailReader, RailState

POLL_S = 0.5
MOST_HOSTS = 4
"""Probing hosts of a leaf: what a leaf does to all of them shows on a few."""
FEWEST_ABOVE, MOST_ABOVE = 8, 16
"""Probing hosts below a spine or core: one of each unit, more where there are few units."""
MOST_NICS = 32
"""Probing NICs of all hosts together; each rail is among them."""
MOST_NAMED = 5
LONGEST_S = 20.0
"""By then routes have arrived over established sessions; hosts are not left without a path for longer."""
DRAINED_S = 3.0
"""Traffic has had its time to move; what is lost now has no other path, although the sessions show one."""
LEAF, GATEWAY = "its leaf", "its gateway"
Item = TypeVar("Item")
Place = tuple[str, Nic]
"""A host's name and one of its NICs."""


class HostReader(RailReader, Protocol):
    """A connection to a host that reads only its rails."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Hang up."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a NIC saw before the change."""

    source: Address
    answers: Mapping[Address, str]
    """Who answered: address → the name of its owner."""
    source_v6: Address = ""
    whole: tuple[Address, ...] = ()
    """The hosts among those that answered packets of the whole MTU."""

    def source_to(self, target: Address) -> Address:
        return self.source_v6 if ":" in target else self.source


Before = Mapping[str, Mapping[str, Answered]]
"""Host → interface → what it saw."""
BEFORE = TypeAdapter(dict[str, dict[str, Answered]])


class ReachGate:
    """Asks another gate first, then some hosts below a switch; hosts that could not be asked before are left alone.

    A drained switch leaves all pairs another path, so they have to answer before it is changed.
    Pairs that are predicted to be unreachable in the present state need not answer, but after a later change that
    brings them back they have to. Without a prediction, neither need addresses that the changed leaf no longer serves.
    """

    def __init__(
        self,
        fabric: Fabric,
        others: Gate,
        connect: Callable[[str], HostReader],
        *,
        clock: DeployClock = CLOCK,
        runner: RunnerPlugin | None = None,
    ) -> None:
        self._fabric, self._others, self._connect, self._clock = fabric, others, connect, clock
        self._runner = runner or threads(MOST_ABOVE)
        self._silent: set[str] = set()
        """Hosts that could not be asked before some change, and are not tried again."""
        self._bare: set[str] = set()
        """Hosts whose rails had no address: nobody reaches them before they change themselves."""
        self._addresses = frozenset(one for host in fabric.hosts for nic in host.nics for one in nic.addresses)

    def __call__(self, question: GateQuestion) -> GateAnswer:
        first = ask_first(self._others, question, self._clock)
        found = self._fabric.device(question.device)
        is_felt = question.risk is not Risk.NONE and not (question.moment is Moment.DRAINED and question.is_together)
        if not isinstance(found, Switch):
            self._bare.discard(question.device)
        if not first.others.is_healthy or not is_felt or not isinstance(found, Switch):
            return first.without_more()
        if question.moment is Moment.BEFORE and found.role in {"spine", "core"} and first.others.is_blank:
            return first.without_more()  # without a session it carries nothing
        if question.moment is Moment.BEFORE:
            answers = self._before(found, question.memory.lost)
            is_blank = first.others.is_blank and not any(
                one.answers for rails in answers.values() for one in rails.values()
            )
            return replace(first.others, sample=first.sample(answers=BEFORE.dump_python(answers)), is_blank=is_blank)
        kept = BEFORE.validate_python(first.kept.get("answers", {}))
        limit_s = DRAINED_S if question.moment is Moment.DRAINED else min(LONGEST_S, first.left_s)
        return self._await_answers(self._expected(question, kept), first, limit_s)

    def _before(self, switch: Switch, lost: Container[tuple[Address, Address]]) -> dict[str, dict[str, Answered]]:
        """Which addresses of hosts answer which: those they have, or the designed ones of hosts that were not asked.

        At the address that a NIC will have, another one may answer until then, as that of a removed rail.
        Pairs that an earlier change of the run has lost count as answering: they may be due after this one.
        """
        called = calls(self._fabric, switch)
        involved = {name for name, _ in called} | {name for far in called.values() for name, _ in far}
        hosts = (host for host in self._fabric.hosts if host.name in involved - self._silent - self._bare)
        nics = {host.name: {nic.interface: () for nic in host.nics} for host in hosts}
        states = self._states(nics)
        self._silent |= nics.keys() - states.keys()
        have = {
            (name, one.interface): tuple(filter(None, (one.address, one.address_v6)))
            for name, rails in states.items()
            for one in rails
            if one.address
        }
        self._bare |= states.keys() - {name for name, _ in have}
        names: dict[tuple[str, str], dict[Address, str]] = {}
        for (name, nic), far in called.items():
            if (name, nic.interface) not in have:
                continue
            own = have[name, nic.interface]  # a family that it has not got yet is not asked
            found = dict.fromkeys(filter(None, (nic.gateway, nic.gateway_v6)[: len(own)]), LEAF)
            found = names[name, nic.interface] = found if switch.name == nic.leaf else {}
            for place, (other, one) in product(range(len(own)), far):
                addresses = have.get((other, one.interface), one.addresses)[place:][:1]
                found.update(dict.fromkeys(addresses, f"{other} {one.interface}"))
        for name, interface, gateway in gateways_beside(self._fabric, switch):
            if name not in self._silent:
                names[name, interface] = {gateway: GATEWAY}
        wanted: dict[str, dict[str, Sequence[str]]] = {}
        for (name, interface), far_names in names.items():
            wanted.setdefault(name, {})[interface] = tuple(far_names)
        return {
            name: {
                one.interface: Answered(
                    one.address,
                    {
                        to: word
                        for to, word in names[name, one.interface].items()
                        if to in one.answers or (one.address_v6 if ":" in to else one.address, to) in lost
                    },
                    one.address_v6,
                    tuple(to for to in one.whole if names[name, one.interface][to] not in {LEAF, GATEWAY}),
                )
                for one in rails
                if one.interface in wanted[name]
            }
            for name, rails in self._states(wanted).items()
        }

    def _expected(self, question: GateQuestion, before: Before) -> Before:
        """The answers to expect: those from before, less what is known to be unreachable for now."""
        is_losing = self._losing(question.device)

        def is_expected(host: str, source: Address, target: Address, word: str) -> bool:
            if word == GATEWAY:
                return host not in question.moved
            if question.moment is Moment.DRAINED and (source, target) in question.memory.lost:
                return False
            if question.prediction is not None and word != LEAF:
                is_reached = question.prediction.reaches(source, target)
                if not is_reached and question.moment.is_after and {source, target} <= self._addresses:
                    # Other devices ask from the other end.
                    question.memory.lost.update({(source, target), (target, source)})
                return is_reached
            has_gateway = word != LEAF or question.addresses is None or target in question.addresses
            return has_gateway and not is_losing(source, target, word)

        return {
            name: {
                interface: replace(
                    one,
                    answers={
                        to: word for to, word in one.answers.items() if is_expected(name, one.source_to(to), to, word)
                    },
                    # A rollback may lead back to a smaller MTU, leaves before their hosts.
                    whole=() if question.is_back else one.whole,
                )
                for interface, one in rails.items()
            }
            for name, rails in before.items()
        }

    def _losing(self, device: str) -> Callable[[Address, Address, str], bool]:
        """A test for pairs with an address that the changed leaf stops serving, on a host not yet renumbered."""
        nics = {f"{host.name} {nic.interface}": nic for host in self._fabric.hosts for nic in host.nics}
        served = {address for nic in nics.values() if nic.leaf == device for address in nic.addresses}
        is_leaf = bool(served)

        def is_losing(source: Address, target: Address, word: str) -> bool:
            far = nics.get(word)
            is_far_gone = far is not None and far.leaf == device and target not in served
            return is_leaf and (source not in served or is_far_gone)

        return is_losing

    def _await_answers(self, expected: Before, first: ChainedAnswer, limit_s: float) -> GateAnswer:
        """Poll until all expected peers answer or the time limit is reached."""
        calls = {
            name: {interface: tuple(one.answers) for interface, one in rails.items() if one.answers}
            for name, rails in expected.items()
        }
        calls = {name: rails for name, rails in calls.items() if rails}
        deadline_s = self._clock.steady_s() + limit_s
        while True:
            now = self._states(calls)
            lost = tuple(_lost(expected, calls, now))
            unasked = tuple(f"{name} no longer answers" for name in calls if name not in now)
            if not lost and not unasked:
                return first.others
            if self._clock.steady_s() >= deadline_s:
                rest = len(lost) - MOST_NAMED
                named = (*lost[:MOST_NAMED], f"and {rest} more pairs") if rest > 0 else lost
                return GateAnswer("worse" if lost else "inconclusive", named or unasked)
            self._clock.sleep_s(POLL_S)

    def _states(self, called: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, tuple[RailState, ...]]:
        """The state of rails and which peers answer on them; hosts that cannot be asked are left out."""
        found = each(self._runner, sorted(called), lambda name: self._rail_states(name, called[name]))
        return {name: one for name, one in found.items() if one is not None}

    def _rail_states(self, name: str, calls: Mapping[str, Sequence[str]]) -> tuple[RailState, ...] | None:
        try:
            reader = self._connect(name)
            try:
                reader.open()
                host = self._fabric.device(name)
                return reader.rail_states(calls, host.mtu_bytes if isinstance(host, Host) else 0)
            finally:
                reader.close()
        except NetkitError:
            return None


def calls(fabric: Fabric, switch: Switch) -> dict[Place, tuple[Place, ...]]:
    """The NICs that probe when a switch changes, each with the NICs it calls."""
    leaves = _leaves_below(fabric, switch)
    hosts = [host for host in fabric.hosts if any(nic.leaf in leaves for nic in host.nics)]
    if switch.role == "leaf":
        asking = spread(hosts, MOST_HOSTS)
        apart = [host for host in fabric.hosts if host not in hosts]
        pool = [*asking, *apart[:1], *apart[1:][-1:]]
    else:
        units: dict[tuple[int, int], list[Host]] = {}
        for host in hosts:
            units.setdefault((host.pod, host.unit), []).append(host)
        rows = list(units.values())
        rows = spread(rows, MOST_ABOVE)
        turns = (host for row in zip_longest(*rows) for host in row if host is not None)
        pool = asking = [host for host, _ in zip(turns, range(max(FEWEST_ABOVE, len(rows))), strict=False)]
    most = max(1, MOST_NICS // max(1, len(asking)))
    found: dict[Place, tuple[Place, ...]] = {}
    for number, host in enumerate(asking):
        nics = [nic for nic in host.nics if nic.leaf in leaves]
        for turn in range(min(most, len(nics))):
            nic = nics[(number * most + turn) % len(nics)]
            found[host.name, nic] = tuple(
                _far(fabric, pool, host, nic, leaves if switch.role != "leaf" else frozenset())
            )
    return found


def spread(every: list[Item], most: int) -> list[Item]:
    """At most so many of a list, evenly spread over it."""
    return every[:: max(1, -(-len(every) // most))]


def gateways_beside(fabric: Fabric, switch: Switch) -> Iterator[tuple[str, str, Address]]:
    """Yield some interfaces of hosts below a switch of a network beside the rails, each with its gateway."""
    if switch.access is None:
        return
    below = {port.peer for port in switch.access.ports if port.kind == "host"}
    hosts = [host for host in fabric.hosts if host.name in below]
    for host in spread(hosts, MOST_HOSTS):
        for one in host.attachments:
            if one.network == switch.access.network:
                yield host.name, one.interface, one.gateway


def _leaves_below(fabric: Fabric, switch: Switch) -> frozenset[str]:
    if switch.role == "leaf":
        return frozenset({switch.name})
    below = {port.peer for port in switch.ports if port.role == "down"}
    return frozenset(leaf for name in below for leaf in _leaves_below(fabric, fabric.switch(name)))


def _far(fabric: Fabric, pool: Iterable[Host], host: Host, nic: Nic, leaves: frozenset[str]) -> Iterator[Place]:
    """Yield the nearest and the farthest NIC on the same rail and on other rails, preferring other leaves."""
    near = sorted((other for other in pool if other.name != host.name), key=lambda one: abs(one.number - host.number))
    every = [(other.name, one) for other in near for one in other.nics if not leaves or one.leaf in leaves]
    along = [place for place in every if place[1].rail == nic.rail]
    elsewhere = [place for place in along if place[1].leaf != nic.leaf]
    across = [place for place in every if place[1].rail != nic.rail and place[1].leaf != nic.leaf]
    count = len(fabric.rails)
    across.sort(key=lambda place: (place[1].rail - nic.rail - host.number) % count)
    groups = [elsewhere or along, across if fabric.cross_rail == "routed" else []]
    for group in groups:
        yield from dict.fromkeys((*group[:1], *group[-1:]))


def _lost(
    expected: Before, called: Mapping[str, Mapping[str, Sequence[str]]], now: Mapping[str, Iterable[RailState]]
) -> Iterator[str]:
    for name, states in now.items():
        answering = {one.interface: set(one.answers) for one in states}
        whole = {one.interface: set(one.whole) for one in states}
        for interface, targets in called[name].items():
            for to in targets:
                who = expected[name][interface].answers[to]
                if to not in answering.get(interface, ()):
                    how = (
                        f"any more; before, {to} did"
                        if who in {LEAF, GATEWAY}
                        else f"any more at {to}, as it did before"
                    )
                    yield f"{name}: {interface}: {who} does not answer {how}"
                elif to in expected[name][interface].whole and to not in whole.get(interface, ()):
                    rest = f"answers at {to}, but no packets of the whole MTU, as it did before"
                    yield f"{name}: {interface}: {who} {rest}"
