"""A plan executed without devices, step by step: configurations change as the plan says, and are parsed again.

Nothing of `netkit.plan.order` is used but the plan: each state is evaluated in its own network model, once for each
set of configurations that it may consist of.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from netkit import plan as planning
from netkit.design import Fabric, Switch
from netkit.plan import DevicePlan, Plan, Running
from netkit.plan.model import Step
from netkit.plan.order import Order, best_order
from netkit.platforms.compare import MODELS, apply
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.routing import HostRoutes, Router
from netkit.routing import Cabling, Network, NetworkState
from netkit.routing.address import AddressGroup
from tests.platforms.samples import files_of

Address = tuple[str, str, str]
"""Host, interface, address."""
Pair = frozenset[Address]
NicPair = frozenset[tuple[str, str, bool]]
"""Two NICs, as host, interface, and whether over IPv6, whatever their addresses of that family."""
End = tuple[str, str]


@dataclass(frozen=True)
class Transition:
    """The running and intended configuration of each device, and the plan between them."""

    fabrics: tuple[Fabric, ...]
    """The fabric before, and the one intended last."""
    running: Mapping[str, Running]
    """For every device, including those that are removed."""
    intended: Mapping[str, Files]
    plan: Plan
    order: Order | None = None
    """The step order of the plan."""
    _routing: dict[tuple[str, tuple[tuple[Path, str], ...]], Router | HostRoutes | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """By NOS and content of a configuration."""
    _reached: dict[tuple[tuple[tuple[str, int], ...], frozenset[End]], set[Pair]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """By the values of `_routing`, of which equal configurations share one, and the ports that are down."""

    @classmethod
    def of(cls, before: Fabric, after: Fabric) -> "Transition":
        """The transition between two fabrics; new devices start factory-fresh."""
        old, intended = files_of(before), files_of(after)
        running = {name: Running(dict(files), "") for name, files in old.items() if name not in intended}
        for name, files in intended.items():
            is_there = name in old and platform(name, before) == platform(name, after)
            running[name] = Running(dict(old[name]) if is_there else dict.fromkeys(files), "")
        there = {name: running[name] for name in intended}
        part = planning.make(after, there, intended, is_part=True)
        plan = planning.ordered(after, part, planning.sides_of(there, intended), before=(before,))
        return cls((before, after), running, intended, plan, order_of(after, there, intended, (before,)))

    def as_deployed(self) -> "Transition":
        """The same with the plan of a deploy, which does not know the fabric before."""
        there = {name: self.running[name] for name in self.intended}
        plan = planning.make(self.fabrics[-1], there, self.intended)
        return replace(self, plan=plan, order=order_of(self.fabrics[-1], there, self.intended))

    def rolled_back(self) -> "Transition":
        """The way back from the end; a switch outside the fabric stays as it is."""
        before = {name: self.running[name] for name in self.intended}
        plan = planning.rollback(self.fabrics[-1], before, self.intended)
        there = {name: Running({file: self.intended[name].get(file) for file in before[name].files}) for name in before}
        files = {name: {f: text for f, text in one.files.items() if text is not None} for name, one in before.items()}
        order = order_of(self.fabrics[-1], there, files, owner=self.intended)
        running = {**self.running, **{name: Running(files) for name, files in self.intended.items()}}
        return replace(self, running=running, plan=plan, order=order)

    def configs(self) -> dict[str, Config]:
        """The running configuration of every device before the plan."""
        return {name: parsed(platform(name, *self.fabrics), one.files) for name, one in self.running.items()}

    def reached(self, configs: Mapping[str, Config], down: Iterable[End] = ()) -> set[Pair]:
        """The pairs of addresses that reach each other, both ways, with these configurations."""
        state = tuple((name, id(self.routing(name, configs))) for name in configs), frozenset(down)
        if state not in self._reached:
            network = self.network(configs)
            self._reached[state] = pairs_of(network, network.outlook(NetworkState(down=state[1])).rows)
        return self._reached[state]

    def network(self, configs: Mapping[str, Config]) -> Network:
        found = {name: self.routing(name, configs) for name in configs}
        routers = {name: (one,) for name, one in found.items() if isinstance(one, Router)}
        hosts = {name: (one,) for name, one in found.items() if isinstance(one, HostRoutes)}
        return Network(Cabling.of(self.fabrics), routers, hosts)

    def change(self, step: Step, name: str) -> DevicePlan:
        """The change of one device in a step."""
        bridge = next((one for one in self.plan.bridges if one.device == name), None)
        if bridge is not None and step.stage:
            return bridge.first if step.stage == "both" else bridge.then
        found = self.plan.device(name)
        assert found is not None
        return found

    def lost(self, steps: Sequence[Step] | None = None) -> Iterator[tuple[Step, str, set[NicPair]]]:
        """The pairs that each state on the way loses: those that reach each other first and last.

        The devices of a step change together, so any of them may be the first: each is tried as the first
        and as the last.
        """
        steps = self.plan.steps if steps is None else steps
        configs = self.configs()
        wanted = self.wanted(steps)
        for step in steps:
            for names in dict.fromkeys((step.devices, step.devices[::-1])):
                between = dict(configs)
                for name in names:
                    ending = self.ports(step, [name])
                    yield step, f"while {name} changes", wanted - nics(self.reached(between, ending))
                    yield step, f"when {name} ends a session", wanted & nics(self.closing(step, name, between))
                    changes = self.change(step, name).changes
                    removed = [
                        one for one in changes if one.is_removal and any("aggregate" in part for part in one.path)
                    ]
                    halfway = {**between, name: apply(between[name], removed)}
                    yield step, f"while {name} has no summary", wanted - nics(self.reached(halfway, ending))
                    between[name] = apply(between[name], changes)
                    yield step, f"after {name}", wanted - nics(self.reached(between))
            configs = between

    def named(self) -> Iterator[tuple[Step, set[NicPair], set[NicPair]]]:
        """The pairs that each step of the plan names: those lost while it changes devices, and after it."""
        if self.order is None:
            return
        for step, order, phases, targets in self.order.rounds(self.plan.steps, self.plan.bridges):
            cost = order.cost(phases, step.devices, targets)
            yield step, nics(pairs_of(order.network, cost.during)), nics(pairs_of(order.network, cost.after))

    def wanted(self, steps: Iterable[Step]) -> set[NicPair]:
        """The pairs that reach each other at first, and after these steps."""
        configs = self.configs()
        return nics(self.reached(configs)) & nics(self.reached(self.done(configs, steps)))

    def closing(self, step: Step, name: str, configs: Mapping[str, Config]) -> set[Pair]:
        """The pairs of a leaf with others whose session its change ends and neither end drains."""
        device = next(device for fabric in reversed(self.fabrics) if (device := fabric.device(name)) is not None)
        was = self.routing(name, configs)
        now = self.routing(name, self.done(configs, [replace(step, devices=(name,))]))
        if not isinstance(device, Switch) or device.role != "leaf":
            return set()
        assert isinstance(was, Router)
        assert isinstance(now, Router)
        kept = {side.interface for side in now.sessions}
        ending = {port for _, port in self.ports(step, [name])}
        ending |= {side.interface for side in was.sessions if side.interface not in kept}
        network = self.network(configs)
        if not ending & network.used(NetworkState(), name):
            return set()
        reached = self.reached(configs)
        own = {(nic.host, nic.interface) for group in network.groups if group.leaf == name for nic in group.nics}
        return {pair for pair in reached if sum((host, rail) in own for host, rail, _ in pair) == 1}

    def ports(self, step: Step, names: Iterable[str]) -> set[End]:
        """The ports towards switches whose sessions go down while devices change."""
        return {(name, port) for name in names for port in self.change(step, name).blast.ports}

    def routing(self, name: str, configs: Mapping[str, Config]) -> Router | HostRoutes | None:
        """The routing part of a device's configuration."""
        nos = platform(name, *self.fabrics)
        key = nos, tuple(configs[name].items())
        if key not in self._routing:
            read = MODELS[nos].router or MODELS[nos].host_routes
            self._routing[key] = read(configs[name]) if read else None
        return self._routing[key]

    def done(self, configs: Mapping[str, Config], steps: Iterable[Step]) -> dict[str, Config]:
        """The configuration of every device after all steps."""
        found = dict(configs)
        for step in steps:
            for name in step.devices:
                found[name] = apply(found[name], self.change(step, name).changes)
        return found

    def reversed_steps(self) -> tuple[Step, ...]:
        """Every device once, in the opposite order."""
        last = {name: step for step in self.plan.steps for name in step.devices}
        return tuple(replace(last[name], devices=(name,), stage="") for name in reversed(list(last)))

    def again(self) -> Plan:
        """A second plan after everything is done."""
        configs = self.done(self.configs(), self.plan.steps)
        running = {}
        for name, files in self.intended.items():
            texts: dict[str, str | None] = dict(MODELS[platform(name, *self.fabrics)].text(configs[name]))
            running[name] = Running(dict.fromkeys(files) | texts, "")
        return planning.make(self.fabrics[-1], running, self.intended)


def order_of(
    fabric: Fabric,
    running: Mapping[str, Running],
    intended: Mapping[str, Files],
    before: Sequence[Fabric] = (),
    owner: Mapping[str, Files] | None = None,
) -> Order | None:
    """The order of a plan, which the plan itself does not keep."""
    part = planning.make(fabric, running, intended, owner=owner, is_part=True)
    may_take = planning.writable(fabric, planning.sides_of(running, intended, owner))
    return best_order(fabric, part.changed, before, may_take=may_take)[0] if part.changed else None


def nics(pairs: Iterable[Pair]) -> set[NicPair]:
    """The NICs of pairs of addresses."""
    return {frozenset((host, rail, ":" in address) for host, rail, address in pair) for pair in pairs}


def words(lost: Iterable[NicPair]) -> tuple[int, set[str], set[tuple[str, ...]]]:
    """How a plan names pairs: how many they are in any family, of which hosts, and their rails."""
    pairs = {frozenset((host, rail) for host, rail, _ in pair) for pair in lost}
    rails = {tuple(sorted(rail for _, rail in pair)) for pair in pairs}
    return len(pairs), {host for pair in pairs for host, _ in pair}, rails


def pairs_of(network: Network, rows: Sequence[int]) -> set[Pair]:
    """Pairs of addresses that reach each other, both ways."""
    return expanded(
        network.groups,
        (
            (index, other)
            for index, row in enumerate(rows)
            for other in range(index, len(rows))
            if row >> other & 1 and rows[other] >> index & 1
        ),
    )


def expanded(groups: Sequence[AddressGroup], pairs: Iterable[tuple[int, int]]) -> set[Pair]:
    """The pairs of addresses in pairs of groups."""
    return {
        frozenset({(a.host, a.interface, str(a.address)), (b.host, b.interface, str(b.address))})
        for one, other in pairs
        for a in groups[one].nics
        for b in groups[other].nics
        if a.host != b.host
    }


def parsed(platform: str, files: Mapping[str, str | None]) -> Config:
    """The files of a device as its parsed configuration."""
    model = MODELS[platform]
    return model.parse({file: text for file, text in files.items() if text is not None and model.reads(file)})


def platform(name: str, *fabrics: Fabric) -> str:
    """The platform of a device, in the last fabric that has it."""
    device = next(device for fabric in reversed(fabrics) if (device := fabric.device(name)) is not None)
    return device.platform if isinstance(device, Switch) else "linux"
