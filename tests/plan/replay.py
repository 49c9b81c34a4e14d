"""A plan rolled without devices, step by step: configurations change by what the plan says, and are read again.

Nothing is taken from `netkit.plan.order` but the plan: each state is evaluated in a network of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from netkit import plan as planning
from netkit.design import Fabric, Switch
from netkit.plan import DevicePlan, Plan, Running
from netkit.plan.shape import Loss, Step
from netkit.platforms.compare import apply
from netkit.platforms.config import Config, Files
from netkit.platforms.models import MODELS
from netkit.platforms.routing import HostRoutes, Router
from netkit.routing import Cabling, Network, State
from tests.platforms.samples import files_of

Address = tuple[str, str, str]
"""Host, interface, address."""
Pair = frozenset[Address]
End = tuple[str, str]


@dataclass(frozen=True)
class Transition:
    """Two fabrics, what each device runs and is to run, and the plan between."""

    before: Fabric
    after: Fabric
    running: Mapping[str, Running]
    intended: Mapping[str, Files]
    plan: Plan

    @classmethod
    def of(cls, before: Fabric, after: Fabric) -> "Transition":
        """Return the transition between two fabrics; what is new is factory-fresh."""
        old, intended = files_of(before), files_of(after)
        running = {}
        for name, files in intended.items():
            is_there = name in old and platform(before, name) == platform(after, name)
            found = dict(old[name]) if is_there else dict.fromkeys(files)
            running[name] = Running(found, "")
        part = planning.make(after, running, intended, is_part=True)
        sides = planning.sides_of(running, intended)
        return cls(before, after, running, intended, planning.ordered(after, part, sides, before=(before,)))

    def backwards(self) -> "Transition":
        """Return the way back, from what is intended to what ran; of devices in both fabrics."""
        return Transition.of(self.after, self.before)

    def configs(self) -> dict[str, Config]:
        """Return what every device runs at first, those that go included."""
        found = {name: parsed(self.after, name, one.files) for name, one in self.running.items()}
        gone = {name: files for name, files in files_of(self.before).items() if name not in found}
        return found | {name: parsed(self.before, name, files) for name, files in gone.items()}

    def reached(self, configs: Mapping[str, Config], down: Iterable[End] = ()) -> set[Pair]:
        """Return the pairs of addresses that reach each other, both ways, with these configurations."""
        routers: dict[str, Sequence[Router]] = {}
        hosts: dict[str, Sequence[HostRoutes]] = {}
        for name, config in configs.items():
            model = MODELS[platform(self.after if self.after.device(name) else self.before, name)]
            if model.router is not None:
                routers[name] = (model.router(config),)
            elif model.host_routes is not None:
                hosts[name] = (model.host_routes(config),)
        network = Network(Cabling.of([self.before, self.after]), routers, hosts)
        return pairs_of(network, network.outlook(State(down=frozenset(down))).rows)

    def change(self, step: Step, name: str) -> DevicePlan:
        """Return what a step does to one of its devices."""
        bridge = next((one for one in self.plan.bridges if one.device == name), None)
        if bridge is not None and step.stage:
            return bridge.first if step.stage == "both" else bridge.then
        found = self.plan.device(name)
        assert found is not None
        return found

    def lost(self, steps: Sequence[Step] | None = None) -> Iterator[tuple[Step, str, set[Pair]]]:
        """Yield the pairs that every state on the way loses: those that reach each other at first and at last."""
        steps = self.plan.steps if steps is None else steps
        configs = self.configs()
        at_first = self.reached(configs)
        at_last = self.reached(self.done(configs, steps))
        wanted = at_first & at_last
        for step in steps:
            for name in step.devices:
                down = {(name, port) for port in self.change(step, name).blast.ports}
                if down:
                    yield step, f"while {name} changes", wanted - self.reached(configs, down)
                configs[name] = apply(configs[name], self.change(step, name).changes)
                yield step, f"after {name}", wanted - self.reached(configs)

    def done(self, configs: Mapping[str, Config], steps: Iterable[Step]) -> dict[str, Config]:
        """Return what every device runs after all steps."""
        found = dict(configs)
        for step in steps:
            for name in step.devices:
                found[name] = apply(found[name], self.change(step, name).changes)
        return found

    def reversed_steps(self) -> tuple[Step, ...]:
        """Return every device once, in the opposite order."""
        last = {name: step for step in self.plan.steps for name in step.devices}
        return tuple(replace(last[name], devices=(name,), stage="") for name in reversed(list(last)))

    def again(self) -> Plan:
        """Return the plan once everything is done."""
        configs = self.done(self.configs(), self.plan.steps)
        running = {}
        for name in self.running:
            texts: dict[str, str | None] = dict(MODELS[platform(self.after, name)].text(configs[name]))
            running[name] = Running(dict.fromkeys(self.intended[name]) | texts, "")
        return planning.make(self.after, running, self.intended)


def unnamed(lost: Iterable[Pair], *losses: Loss) -> set[Pair]:
    """Return lost pairs whose hosts and rails no loss names."""
    return {
        pair
        for pair in lost
        if not any(
            {host for host, _, _ in pair} <= set(loss.hosts) and {rail for _, rail, _ in pair} <= set(loss.rails)
            for loss in losses
        )
    }


def pairs_of(network: Network, rows: Sequence[int]) -> set[Pair]:
    """Return pairs of addresses that reach each other, both ways."""
    found: set[Pair] = set()
    for index, row in enumerate(rows):
        for other in range(index, len(rows)):
            if row >> other & 1 and rows[other] >> index & 1:
                found |= {
                    frozenset({(a.host, a.interface, a.address), (b.host, b.interface, b.address)})
                    for a in network.groups[index].nics
                    for b in network.groups[other].nics
                    if a.host != b.host
                }
    return found


def parsed(fabric: Fabric, name: str, files: Mapping[str, str | None]) -> Config:
    """Return files as the configuration of a device."""
    model = MODELS[platform(fabric, name)]
    return model.parse({file: text for file, text in files.items() if text is not None and model.reads(file)})


def platform(fabric: Fabric, name: str) -> str:
    """Return the platform of a device."""
    device = fabric.device(name)
    assert device is not None, name
    return device.platform if isinstance(device, Switch) else "linux"
