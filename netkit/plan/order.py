"""The order and steps in which devices change, so that no two hosts lose each other meanwhile.

The order is computed, not assumed: each candidate is tried in the model of the fabric's routing (`netkit.routing`),
from the running to the intended configuration of every device. Where no order of single changes is safe, each device
first gets a configuration that still accepts and announces the old routes beside the intended ones; the old ones are
removed last. Losses that no order avoids are named in the step that causes them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import TypeVar, get_args

from netkit.design.fabric import SWITCH_ROLES, Fabric, Host, Switch
from netkit.design.hosts import RoutePlan
from netkit.plan.lost_pairs import Rows, at_any_address, either, lost_of, named_loss, renumbered
from netkit.plan.model import (
    Bridge,
    Detour,
    DetourKind,
    DevicePlan,
    NarrowedRoute,
    Partial,
    ReachabilityLoss,
    Stage,
    Step,
)
from netkit.plan.outside import outside
from netkit.plan.retain import to_keep, with_kept
from netkit.platforms.change import Risk
from netkit.platforms.compare import natural
from netkit.platforms.routing import Aggregate, HostRoutes, RetainedRouting, Router
from netkit.routing import Cabling, Network, NetworkState, Outlook
from netkit.routing.designed import host_of, prefixes_of, router_of
from netkit.routing.route_policy import network_address, number_of, prefix_of

ROLES = (*SWITCH_ROLES, "host")
"""The initial order. Hosts come last: a switch must know a traffic class before it is used."""
RUNNING, INTENDED, BOTH = range(3)
"""The configurations of a device, as `netkit.routing.Network` numbers them."""
SECONDS = {Risk.SESSION: 10, Risk.BUFFER: 2, Risk.PORT: 20, Risk.REBOOT: 300}
"""About how long traffic is lost if no other path carries it. Estimates, not measured on hardware."""
CLOSING_S = 1
"""About how long packets over an ending session are lost if other paths remain: 0.2 s in the lab."""
MOST_TRIED = 40
"""Devices left out by a limit that are each tested for whether they are needed."""
MOST_COMPARED = 64
"""Devices that change, up to which several orders are compared, and any two switches of a group."""
BOTH_FAMILIES = frozenset({4, 6})
NOTHING_LOST = ReachabilityLoss()
Named = TypeVar("Named", Switch, Host)


@dataclass(frozen=True, slots=True)
class Cost:
    """What changing some devices costs."""

    during: Rows
    """Those that are not lost after it as well."""
    after: Rows
    seconds: int
    """About how long the loss during the change lasts."""
    paths: int


class Order:
    """The states of one plan, and the search for the best order."""

    def __init__(
        self,
        fabric: Fabric,
        devices: Sequence[DevicePlan],
        before: Sequence[Fabric] = (),
        others: Sequence[DevicePlan] = (),
        through: DetourKind | None = None,
        may_take: Callable[[str, Detour], bool] = lambda _name, _detour: True,
        staying: Mapping[str, Router | HostRoutes] | None = None,
    ) -> None:
        self._fabric = fabric
        self._staying = staying or {}
        self.devices = {device.name: device for device in devices}
        every = (*devices, *others)
        self._routing = {device.name: device.routing for device in every if device.routing is not None}
        self._others = [name for name in self._routing if name not in self.devices]
        self._before = before
        self.kept: dict[str, RetainedRouting] = {}
        self._between: dict[str, Router] = {}
        self._replacing: dict[str, frozenset[int]] = {}
        """IP versions in which a device drops a summary before it announces another: FRR changes line by line."""
        for name, found in self._routing.items():
            was, now = found.running, found.intended
            if not isinstance(was, Router) or not isinstance(now, Router) or name not in self.devices or not now.asn:
                continue  # without an AS number it goes back to the factory configuration
            taken = (one for one in found.detours if one.kind == through and may_take(name, one))
            detour = next(taken, None)
            between = detour.router if detour else now
            kept = to_keep(was, between, self._ports(name))
            if kept := replace(kept, entries=detour.entries) if detour else kept:
                self.kept[name] = kept
                self._between[name] = with_kept(between, kept)
                adding = frozenset(one.prefix.version for one in _summaries(now) - _summaries(was))
                self._replacing[name] = adding & {one.prefix.version for one in kept.aggregates}
        fabrics, hosts = (*before, fabric), dict(self._hosts())
        left = outside(fabrics, every, hosts)
        cabling = Cabling.of(fabrics, left.cables)
        routers = {name: (one,) for name, one in left.routers.items()} | dict(self._routers())
        self._last = NetworkState(dict.fromkeys(self.devices, INTENDED))
        self.network = self._whole = whole = Network(cabling, routers, hosts)
        self._doubted = dict(self._doubtful(routers))
        if self._doubted:
            without = Network(cabling, routers | self._doubted, hosts)
            states = NetworkState(), self._last
            is_enough = all(whole.outlook(state).rows == without.outlook(state).rows for state in states)
            self.network = without if is_enough else whole
        self._served = self._served_by(fabric.tier("leaf"))
        self._base = self.network.outlook(NetworkState())
        self._goal = self.network.outlook(self._last)
        self._none = (0,) * len(self.network.groups)
        self._renumbered = renumbered(self.network.groups)
        self._wanted = tuple(map(int.__and__, self._rows(self._base), self._rows(self._goal)))
        self._counted: dict[str, int] = {}
        for group, has, will in zip(self.network.groups, self._base.rows, self._goal.rows, strict=True):
            self._counted[group.leaf] = self._counted.get(group.leaf, 0) | (has & will)
        self._known: dict[object, tuple[Rows, int]] = {}
        """What `_lost_in` found: sequences, stages and parts of groups pass through the same states."""
        self._losses: dict[Rows, ReachabilityLoss] = {}
        self._paths = self._lost_in(NetworkState())[1]
        # The routing model does not cover networks beside the rails.
        beside = {switch.name for switch in fabric.switches if switch.access}
        self.carriers = whole.carriers(NetworkState()) | beside
        """What traffic depends on before this stage."""

    def steps(self) -> tuple[Step, ...]:
        """The best order: each device once if that is safe, else in two stages."""
        once = self.best_sequence(dict.fromkeys(self.devices, INTENDED))
        is_replacing = any(self._replacing.values())
        if not self.kept or not (is_replacing or any(step.after for step in once)):
            return _numbered(once)
        phases = {name: BOTH if name in self.kept else INTENDED for name in self.devices}
        second = self._second_stage(phases).best_sequence(dict.fromkeys(self.kept, INTENDED), phases)
        twice = [*self.best_sequence(phases), *second]
        return _numbered(twice if _weight(twice) < _weight(once) else once)

    def _second_stage(self, phases: Mapping[str, int]) -> "Order":
        """The same after the first of two stages: more devices may carry traffic by then."""
        found = copy(self)
        found.carriers = self.carriers | self.network.carriers(NetworkState(phases))
        return found

    def staged(self, steps: Iterable[Step], bridges: Iterable[Bridge]) -> Iterator[Step]:
        """Yield the steps that change something; for devices that change in two stages, with the cost of each stage."""
        for step, order, phases, targets in self.rounds(_numbered(_changing(steps, bridges)), bridges):
            costed = replace(order.step(phases, step.devices, targets), number=step.number) if step.stage else step
            yield replace(costed, narrowed=tuple(order.narrowed(phases, step.devices, targets)))

    def narrowed(
        self, phases: Mapping[str, int], names: tuple[str, ...], targets: Mapping[str, int]
    ) -> Iterator[NarrowedRoute]:
        """Yield what changing a group leaves its switches to reach over fewer ports."""
        found: dict[tuple[str, str], int] = {}
        carrying = [name for name in names if name in self.carriers]
        parts = [
            (NetworkState({**phases, **{name: targets[name] for name in some}}), some)
            for some in (self._parts(names) if self.network.may_narrow(phases, targets, carrying) else ())
        ]
        for name, leaf, ports in self.network.narrowed(NetworkState(phases), parts, self._served) if parts else ():
            found[name, leaf] = min(ports, found.get((name, leaf), ports))
        for (name, leaf), ports in found.items():
            yield NarrowedRoute(name, leaf, ports)

    def rounds(
        self, steps: Iterable[Step], bridges: Iterable[Bridge]
    ) -> Iterator[tuple[Step, "Order", Mapping[str, int], Mapping[str, int]]]:
        """Yield each step with the order for its stage, the configurations before it, and those after it."""
        first = copy(self)
        then = self._second_stage({name: BOTH if name in self.kept else INTENDED for name in self.devices})
        first.devices = self.devices | {bridge.device: bridge.first for bridge in bridges}
        then.devices = self.devices | {bridge.device: bridge.then for bridge in bridges}
        orders: Mapping[Stage, Order] = {"": self, "both": first, "finish": then}
        phases = {bridge.device: BOTH for bridge in bridges if not bridge.first.changes}
        for step in steps:
            to = {name: BOTH if step.stage == "both" and name in self.kept else INTENDED for name in step.devices}
            yield step, orders[step.stage], dict(phases), to
            phases |= to

    def partial(self) -> Partial | None:
        """What is worse while other devices stay as they are; None if nothing is, or there are none."""
        if not self._others:
            return None
        missing = sorted(self._others, key=lambda one: natural((one,)))
        whole = self._with(missing)
        wanted = tuple(map(int.__and__, self._rows(self._base), self._rows(self.network.outlook(whole))))

        switches = tuple(self.carriers)
        since, until = (self.network.paths(state, switches) for state in (NetworkState(), whole))

        def worse_with(others: Sequence[str]) -> tuple[ReachabilityLoss, set[str]]:
            """The pairs that are lost; if none are, the switches with fewer ports towards a leaf than in both."""
            state = self._with(others)
            loss = self._loss(self._lost(wanted, self.network.outlook(state)))
            if loss:
                return loss, set()
            now = self.network.paths(state, switches)
            less, less_in_the_end = (
                {(name, leaf) for name, leaf, _ in self.network.narrower(paths, now, self._served)}
                for paths in (since, until)
            )
            return loss, {name for name, _ in less & less_in_the_end}

        loss, narrowed = worse_with(())
        if not loss and not narrowed:
            return None
        for name in missing[:MOST_TRIED]:
            rest = [one for one in missing if one != name]
            if not any(worse_with(rest)):
                missing = rest
        return Partial(loss, tuple(missing), tuple(sorted(narrowed, key=lambda one: natural((one,)))))

    def _with(self, others: Iterable[str]) -> NetworkState:
        """The state in which other devices have changed as well."""
        return NetworkState(dict.fromkeys([*self.devices, *others], INTENDED))

    @property
    def carries(self) -> bool:
        """Whether any hosts reach each other before the change."""
        return any(self._base.rows)

    def gone(self) -> ReachabilityLoss:
        """What the intended fabric no longer connects, and these devices take away."""
        stays = self._rows(self._goal)
        if self._others:
            stays = tuple(map(int.__or__, stays, self._rows(self.network.outlook(self._with(self._others)))))
        return named_loss(self.network.groups, lost_of(self._rows(self._base), stays))

    def _rows(self, outlook: Outlook) -> Rows:
        return at_any_address(outlook.rows, self._renumbered)

    def _served_by(self, leaves: Iterable[Switch]) -> Mapping[str, int]:
        """The groups inside the prefix of each leaf, a bit for each: other leaves may have had them before."""
        served = (
            (leaf.name, ip_network(prefix))
            for leaf in leaves
            for prefix in (leaf.leaf_prefix, leaf.leaf_prefix_v6)
            if prefix
        )
        leaf_of = {(network.version, *prefix_of(network)): name for name, network in served}
        lengths = {length for _, _, length in leaf_of}
        found: dict[str, int] = {}
        for index, group in enumerate(self.network.groups):
            address = group.nics[0].address
            for prefix in ((address.version, network_address(number_of(address), one), one) for one in lengths):
                if prefix in leaf_of:
                    found[leaf_of[prefix]] = found.get(leaf_of[prefix], 0) | 1 << index
        return found

    # Configurations

    def _ports(self, name: str) -> frozenset[str]:
        """The ports of a switch towards others of the fabric, in any design."""
        found = (fabric.device(name) for fabric in (self._fabric, *self._before))
        return frozenset(port.name for one in found if isinstance(one, Switch) for port in one.fabric_ports)

    def _routers(self) -> Iterator[tuple[str, Sequence[Router]]]:
        for earlier in self._before:  # a departing switch carries traffic until its neighbours drop it
            for switch in earlier.switches:
                if self._fabric.device(switch.name) is None:
                    yield switch.name, (router_of(earlier, switch),)
        for switch in self._existing(self._fabric.switches):
            found = self._routing.get(switch.name)
            if found is None or not isinstance(found.running, Router) or not isinstance(found.intended, Router):
                stays = self._staying.get(switch.name)
                yield switch.name, (stays if isinstance(stays, Router) else router_of(self._fabric, switch),)
            elif switch.name in self.kept:
                yield switch.name, (found.running, found.intended, self._between[switch.name])
            else:
                yield switch.name, (found.running, found.intended)

    def _doubtful(self, routers: Mapping[str, Sequence[Router]]) -> Iterator[tuple[str, Sequence[Router]]]:
        """Yield spines with lines outside the model, as they are if those hold back every route."""
        prefixes = [one for fabric in (*self._before, self._fabric) for one in prefixes_of(fabric)]
        for switch in self._fabric.switches:
            if switch.role != "leaf" and switch.name in self._routing:
                found = routers[switch.name]
                cautious = [one.without_sessions() if any(one.doubtful_lines(prefixes)) else one for one in found]
                if cautious != list(found):
                    yield switch.name, cautious

    def _hosts(self) -> Iterator[tuple[str, Sequence[HostRoutes]]]:
        plan, plan_v6 = RoutePlan(self._fabric), RoutePlan(self._fabric, 6)
        for host in self._existing(self._fabric.hosts):
            found = self._routing.get(host.name)
            if found is None or not isinstance(found.running, HostRoutes) or not isinstance(found.intended, HostRoutes):
                stays = self._staying.get(host.name)
                yield host.name, (stays if isinstance(stays, HostRoutes) else host_of(plan, plan_v6, host),)
            else:
                yield host.name, (found.running, found.intended)

    def _existing(self, devices: Iterable[Named]) -> Iterator[Named]:
        """Yield devices that exist now: those in the plan, and with an earlier fabric those that it has."""
        for device in devices:
            is_known = any(one.device(device.name) is not None for one in self._before)
            if not self._before or device.name in self.devices or is_known:
                yield device

    # Sequences

    def best_sequence(self, targets: Mapping[str, int], phases: Mapping[str, int] | None = None) -> list[Step]:
        """Steps that lead all devices to their targets.

        The least loss at each step may cost more later: where one is lost, tier by tier is tried as well, from below
        and from above.
        """
        found = self.sequence(targets, phases)
        if len(targets) > MOST_COMPARED or not any(step.after or step.during for step in found):
            return found
        from_above = (*reversed(SWITCH_ROLES), "host")
        return min((found, *(self.sequence(targets, phases, roles) for roles in (ROLES, from_above))), key=_weight)

    def sequence(
        self, targets: Mapping[str, int], phases: Mapping[str, int] | None = None, tiers: Sequence[str] = ()
    ) -> list[Step]:
        """Steps that lead all devices to their targets: each time the first group that loses nothing.

        With `tiers`, each tier is finished before the next one.
        """
        state = dict(phases or {})
        steps: list[Step] = []
        canary = self._canary(state, targets)
        if canary is not None:
            steps.append(canary)
            state |= {name: targets[name] for name in canary.devices}
        todo = [name for name in targets if canary is None or name not in canary.devices]
        waiting: dict[str, list[tuple[str, ...]]] = {role: self._groups(role, todo) for role in ROLES}
        while roles := [role for role in tiers or ROLES if waiting[role]]:
            best: tuple[Step, str] | None = None
            for role in roles[:1] if tiers else roles:
                step = self.step(state, waiting[role][0], targets)
                if role in {"spine", "core"} and (step.after or step.during):
                    step = self._alone(state, waiting[role], targets) or step
                if best is None or _cost(step) < _cost(best[0]):
                    best = step, role
                if not step.after and not step.during:
                    break
            if best is None:
                break
            step, tier = best
            del waiting[tier][0]
            state |= {name: targets[name] for name in step.devices}
            steps.append(step)
        return steps

    def _alone(
        self, phases: Mapping[str, int], groups: list[tuple[str, ...]], targets: Mapping[str, int]
    ) -> Step | None:
        """The change of a single device that loses nothing, which becomes the first group.

        Spines of two planes serve no leaf in common, yet each may be the other way of its pod.
        """
        every = [(place, name) for place, group in enumerate(groups) for name in group]
        for place, name in every[: len(groups[0]) if len(targets) > MOST_COMPARED else None]:
            step = self.step(phases, (name,), targets) if len(every) > 1 else None
            if step and not step.after and not step.during:
                rest = tuple(other for other in groups[place] if other != name)
                groups[place : place + 1] = [rest] if rest else []
                groups.insert(0, (name,))
                return step
        return None

    def _canary(self, phases: Mapping[str, int], targets: Mapping[str, int]) -> Step | None:
        """The least harmful device as a separate step, if it may change first."""
        if phases or len(targets) == 1:
            return None
        first = min(targets, key=lambda name: weight(self.devices[name]))
        step = self.step(phases, (first,), targets)
        return None if step.after or step.during else step

    def _groups(self, role: str, names: Iterable[str]) -> list[tuple[str, ...]]:
        """The devices of a tier in groups that may change together; idle devices form one group."""
        idle: list[str] = []
        groups: list[tuple[list[str], set[str]]] = []
        of_role = [name for name in names if self.devices[name].role == role]
        for name in sorted(of_role, key=lambda one: (one not in self._doubted, natural((one,)))):
            if name not in self.carriers:
                idle.append(name)
                continue
            served = depends_on(self.devices[name], self._fabric)
            free = next((group for group in groups if not group[1] & served), None)
            if free is None:
                free = [], set()
                groups.append(free)
            free[0].append(name)
            free[1].update(served)
        found = [tuple(group) for group, _ in groups]
        return [tuple(idle), *found] if idle else found

    def step(self, phases: Mapping[str, int], names: tuple[str, ...], targets: Mapping[str, int]) -> Step:
        """What changing a group costs, during the change and after it."""
        cost = self.cost(phases, names, targets)
        during, after = self._loss(cost.during), self._loss(cost.after)
        during = replace(during, seconds=cost.seconds) if during else during
        done = NetworkState({**phases, **{name: targets[name] for name in names}})
        waiting = tuple(f"{name}:{port}" for name in names for port in self._waiting(phases, done, name))
        return Step(0, names, _stage(phases, names, targets), cost.paths, self._paths, during, after, waiting)

    def cost(self, phases: Mapping[str, int], names: tuple[str, ...], targets: Mapping[str, int]) -> Cost:
        """The pairs of groups that a change costs, and the number of paths it leaves."""
        during, seconds, paths = self._while_changing(phases, names, targets)
        lost: Rows = self._none
        for some in self._parts(names):
            found, left = self._lost_in(NetworkState({**phases, **{name: targets[name] for name in some}}))
            lost, paths = either(lost, found), min(paths, left)
        only = tuple(one & ~other for one, other in zip(during, lost, strict=True))
        return Cost(only, lost, seconds, paths)

    def _waiting(self, phases: Mapping[str, int], done: NetworkState, name: str) -> list[str]:
        """The ports whose session carries routes before the device's change and in the end, but not in between.

        It is down until the other end changes too, or the filters of both ends have no prefix in common until then.
        """
        ports = self.network.speaking(NetworkState(phases), name) if name in self._routing else frozenset()
        if ports:
            whole = self._with(self._others)
            ports &= self.network.speaking(self._last, name) | self.network.speaking(whole, name)
        return sorted(ports - self.network.speaking(done, name)) if ports else []

    def _while_changing(
        self, phases: Mapping[str, int], names: Iterable[str], targets: Mapping[str, int]
    ) -> tuple[Rows, int, int]:
        down: set[tuple[str, str]] = set()
        drained: set[str] = set()
        closing: Rows = self._none
        risk = Risk.NONE
        for name in names:
            planned = self.devices[name]
            if planned.blast.ports:
                ending = self._ending(NetworkState(phases), name, targets[name])
                down |= {(name, port) for port in ending.union(planned.blast.ports)}
                risk = max(risk, planned.risk)
                if is_drained_first(planned, self._fabric):
                    drained.add(name)
                elif planned.role in {"spine", "core"} and name in self.carriers:
                    for leaf in self._leaves_below(name):
                        closing = either(closing, self._pairs_of(NetworkState(phases), leaf))
            is_direct = (phases.get(name, RUNNING), targets[name]) == (RUNNING, INTENDED)
            replaced = self._replacing.get(name) if is_direct else None
            if planned.role == "leaf":
                state, target = NetworkState(phases), targets[name]
                families = frozenset(replaced or ())
                if name in self._routing:
                    families = families.union(self.network.announced_anew(state, name, target))
                if self._ends_used_session(state, name, target):
                    families = BOTH_FAMILIES
                if families:
                    closing = either(closing, self._pairs_of(state, name, families))
            elif replaced:
                down |= {(name, port) for port in self._ports(name)}
        if not down:
            return closing, CLOSING_S, self._paths
        lost, paths = self._lost_in(NetworkState(phases, frozenset(down), frozenset(drained)))
        seconds = SECONDS.get(risk, CLOSING_S) if any(lost) else CLOSING_S
        return either(lost, closing), seconds, paths

    def _leaves_below(self, name: str) -> set[str]:
        """The leaves that a switch serves, in any design."""
        fabrics = [fabric for fabric in (self._fabric, *self._before) if fabric.device(name) is not None]
        ports = [port for fabric in fabrics for port in fabric.switch(name).ports if port.role == "down"]
        leaves = {one.name for fabric in (self._fabric, *self._before) for one in fabric.tier("leaf")}
        below = {port.peer for port in ports}
        return (below & leaves).union(*(self._leaves_below(one) for one in below - leaves))

    def _ends_used_session(self, state: NetworkState, name: str, target: int) -> bool:
        """Whether a leaf ends a session in use: packets on that path are lost until all switches have reacted."""
        ending = self._ending(state, name, target)
        if any(not self.network.is_known(name, port) for port in ending):
            return True
        # A session with a switch of unknown lines may be in use, although nothing may depend on it.
        return bool(ending.union(self.devices[name].blast.ports) & self._whole.used(state, name))

    def _ending(self, state: NetworkState, name: str, target: int) -> set[str]:
        """The ports whose session a change ends for good."""
        if name not in self._routing:
            return set()
        now, then = self.network.router(state, name), self.network.router(NetworkState({name: target}), name)
        kept = {side.interface for side in then.sessions}
        return {side.interface for side in now.sessions if side.is_active and not side.is_drained} - kept

    def _pairs_of(self, state: NetworkState, leaf: str, families: Collection[int] = BOTH_FAMILIES) -> Rows:
        """The pairs of a leaf with others that reach each other both in this state and in the end."""
        here = self.network.at(leaf)
        lost, _ = self._lost_in(state)
        reached = (
            has & ~gone if group.nics[0].address.version in families else 0
            for group, has, gone in zip(self.network.groups, self._wanted, lost, strict=True)
        )
        return tuple(row & (~here if here >> index & 1 else here) for index, row in enumerate(reached))

    def _parts(self, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Yield which of a group may have changed before the others: each end of it, and all."""
        moving = [name for name in names if name in self._routing and (name in self.carriers or len(names) == 1)]
        if not any(name in self._routing for name in names):
            return
        is_each = len(self.devices) <= MOST_COMPARED or all(self.devices[name].role == "host" for name in moving)
        splits = max(0, len(moving) - 1).bit_length() if is_each else min(1, len(moving) - 1)
        # For any two of a group, one of these parts has the one without the other; of many switches, two stand for all.
        for bit in range(splits):
            first = {name for place, name in enumerate(moving) if (place >> bit & 1 if is_each else place == 0)}
            yield tuple(name for name in names if name in first)
            yield tuple(name for name in names if name not in first)
        yield names

    def _lost_in(self, state: NetworkState) -> tuple[Rows, int]:
        """The pairs of groups that a state loses, and the least number of paths it leaves."""
        key = frozenset(one for one in state.phases.items() if one[1] != RUNNING), state.down, state.drained
        if key not in self._known:
            outlook = self.network.outlook(state, self._counted)
            self._known[key] = self._lost(self._wanted, outlook), _fewest_paths(outlook)
        return self._known[key]

    def _lost(self, wanted: Rows, outlook: Outlook) -> Rows:
        """The pairs of groups that should reach each other and do not, in either direction."""
        if not self._renumbered and not any(want & ~has for want, has in zip(wanted, outlook.rows, strict=True)):
            return self._none
        return lost_of(wanted, self._rows(outlook))

    def _loss(self, lost: Rows) -> ReachabilityLoss:
        """The NICs behind pairs of groups."""
        if not any(lost):
            return NOTHING_LOST
        if lost not in self._losses:
            self._losses[lost] = named_loss(self.network.groups, lost)
        return self._losses[lost]


def best_order(
    fabric: Fabric,
    devices: Sequence[DevicePlan],
    before: Sequence[Fabric] = (),
    others: Sequence[DevicePlan] = (),
    *,
    may_take: Callable[[str, Detour], bool],
    staying: Mapping[str, Router | HostRoutes] | None = None,
) -> tuple[Order, tuple[Step, ...]]:
    """The order that loses least, and its steps; sessions take detours only where pairs would be lost between steps.

    `staying` is routing that no device of the plan changes, where it is not the designed one.
    """
    order = Order(fabric, devices, before, others, staying=staying)
    steps = order.steps()
    kinds = {detour.kind for device in devices if device.routing for detour in device.routing.detours}
    for kind in get_args(DetourKind):  # the least disturbing first
        if kind not in kinds or not any(step.after for step in steps):
            continue
        other = Order(fabric, devices, before, others, kind, may_take, staying)
        found = other.steps()
        if _weight(found) < _weight(steps):
            order, steps = other, found
    return order, steps


def weight(device: DevicePlan) -> tuple[object, ...]:
    """A sort key: least harmful device first, a host never before its leaves."""
    blast = device.blast
    sizes = (len(blast.gpus), len(blast.hosts), len(blast.sessions), len(blast.links))
    place = ROLES.index(device.role), natural((device.name,))
    return (device.role == "host", blast.is_disruptive, *sizes, device.risk, *place)


def depends_on(device: DevicePlan, fabric: Fabric) -> frozenset[str]:
    """What a device serves: two devices that share any of it never change together.

    For a leaf these are its hosts, for a spine or core the devices below it and its plane, for a host itself, for a
    switch beside the rails its network.
    """
    found = fabric.device(device.name)
    if not isinstance(found, Switch):
        return frozenset({device.name})
    if found.access:
        return frozenset({f"network {found.access.network}"})
    below = {port.peer for port in found.ports if port.role != "up"}
    if found.role == "leaf":
        return frozenset(below.union(device.blast.hosts))
    return frozenset(below | {f"{found.role} plane {found.plane}"})


def is_drained_first(device: DevicePlan, fabric: Fabric) -> bool:
    """Whether a device is drained before its change: it takes down sessions, and all it serves have another path."""
    found = fabric.device(device.name)
    if not isinstance(found, Switch) or found.role not in {"spine", "core"}:
        return False
    is_felt = device.risk >= Risk.SESSION and bool(device.blast.sessions or device.blast.links)
    if not is_felt or device.blast.is_disruptive:
        return False
    gone, below = {device.name}, {port.peer for port in found.ports if port.role == "down"}
    is_needed = bool(below)
    while below:  # a spine below the only core of its plane gets no routes any more: its leaves need another spine
        switches = map(fabric.switch, below)
        cut_off = [one for one in switches if all(port.peer in gone for port in one.ports if port.role == "up")]
        if any(one.role == "leaf" for one in cut_off):
            return False
        gone |= {one.name for one in cut_off}
        below = {port.peer for one in cut_off for port in one.ports if port.role == "down"}
    return is_needed


def _summaries(router: Router) -> set[Aggregate]:
    """The summaries of both families."""
    return {*router.aggregates, *(router.v6.aggregates if router.v6 else ())}


def _stage(phases: Mapping[str, int], names: Iterable[str], targets: Mapping[str, int]) -> Stage:
    if any(targets[name] == BOTH for name in names):
        return "both"
    return "finish" if any(phases.get(name) == BOTH for name in names) else ""


def _fewest_paths(outlook: Outlook) -> int:
    return min((width for width in outlook.widths.values() if width), default=0)


def _cost(step: Step) -> tuple[int, int]:
    return step.after.pairs, step.during.pairs


def _weight(steps: Sequence[Step]) -> tuple[int, int]:
    """The cost of an order: pairs lost between steps, then pairs lost during changes."""
    return sum(step.after.pairs for step in steps), sum(step.during.pairs for step in steps)


def _changing(steps: Iterable[Step], bridges: Iterable[Bridge]) -> Iterator[Step]:
    """Yield steps without the devices that already run what a stage leads to, such as after a run that stopped."""
    first = {bridge.device: bridge.first.changes for bridge in bridges}
    for step in steps:
        if step.stage == "finish":
            names = [name for name in step.devices if name in first]
        else:
            names = [name for name in step.devices if not step.stage or first.get(name, True)]
        if names:
            yield replace(step, devices=tuple(names))


def _numbered(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(replace(step, number=number) for number, step in enumerate(steps, 1))
