"""A chain of changes deployed in one lab while all addresses of all hosts ping each other, compared with the model.

`tests.plan.replay` evaluates each state of a deploy from the plan and the waves of its journal: pairs
that the model loses in a state may lose packets from then on, all others lose none.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import combinations, permutations
from typing import Any

from netkit.deploy.journal import Journal, JournalEntry
from netkit.design import Fabric
from netkit.lab.folder import LabFolder, ask_keeper
from netkit.lab.proof import TrafficPair
from netkit.plan import Plan, Running
from netkit.plan.model import Step
from netkit.platforms.compare import apply
from tests import intents
from tests.cli.site import Site
from tests.lab.running import RunningLab, write_fabric
from tests.plan.replay import Address, Pair, Transition
from tests.platforms.samples import files_of

INTERVAL_S = 0.035
QUIET_S = 1.5
"""How long all pairs ping before the first wave and after the last."""
DEPLOY = ("deploy", "--yes", "--disruptive", "--busy", "--watch", "1")
PREFIX = {True: "named", False: "not named"}


@dataclass(frozen=True)
class Lost:
    """A gap of one pair, and whether the model loses the pair in the state in which the gap began."""

    pair: Pair
    packets: int
    lasted_s: float
    state: str
    is_named: bool

    def __str__(self) -> str:
        ends = " – ".join(sorted(f"{host}:{rail} {address}" for host, rail, address in self.pair))
        return f"{ends}: {self.packets} lost in {self.lasted_s:.2f} s, {PREFIX[self.is_named]}, {self.state}"


@dataclass(frozen=True)
class Rolled:
    """The result of one change."""

    plan: Plan
    sent: int
    pairs: int
    lost: tuple[Lost, ...]
    wrong: tuple[str, ...]
    """What the model predicts and the lab does not show, or the reverse."""
    took_s: float


@dataclass
class Rolling:
    """A lab in which one change follows the other."""

    site: Site
    world: Fabric
    """Every device and cable of the lab."""
    fabric: Fabric
    """The fabric that is deployed."""
    runs: dict[str, Running] = field(default_factory=dict)
    """The running configuration of every device of the lab."""

    def __post_init__(self) -> None:
        """Shut the interfaces that only later intents use."""
        self.runs = {name: Running(dict(files)) for name, files in files_of(self.world).items()}

    def roll(self, values: Mapping[str, Any], *command: str) -> Rolled:
        """Deploy a fabric while all pairs ping; a second plan has to be empty."""
        after = intents.fabric(values)
        if not command:
            write_fabric(self.site.lab.fabric, values)
        calls = {pair: pair_call(pair) for pair in addresses(self.fabric)}
        runs = len(self.site.runs())
        began_s = time.monotonic()
        self._ask("begin-calls", interval_s=INTERVAL_S, calls=[asdict(call) for call in calls.values()])
        time.sleep(QUIET_S)
        try:
            done = self.site.netkit(*(command or DEPLOY))
            ended_s = time.time()
            time.sleep(QUIET_S)
            until_s = time.time()
        finally:
            heard = {one["name"]: one for one in self._ask("end-calls")["heard"]}
        took_s = time.monotonic() - began_s
        assert done.returncode == 0, done.stdout + done.stderr
        assert self.site.runs()[runs:], "nothing was to change"
        journal = Journal(self.site.runs()[-1])
        intended = files_of(after)
        plan = journal.orders().plan
        found = Transition((self.world, self.fabric, after), dict(self.runs), intended, plan)
        timeline = list(states(found, journal.entries(), ended_s))
        at_first, at_last = timeline[0].reached, timeline[-1].reached
        answered = {(near, far[-1]) for pair in at_last for near, far in permutations(pair)}
        lost, wrong = [], []
        for pair, call in calls.items():
            one = heard[call.name]
            if one["problem"]:
                wrong.append(f"{call.name}: {one['problem']}")
                continue
            last = one["gaps"][-1] if one["gaps"] else {"ended_s": 0.0}
            is_silent = last["ended_s"] >= until_s
            near, far = sorted(pair)
            if is_silent == ((near, far[-1]) in answered):  # another NIC may have the address by then
                wrong.append(f"{call.name}: {'no' if is_silent else 'an'} answer in the end, unlike the model")
            for gap in one["gaps"] if pair in at_first else ():
                state = [one for one in timeline if one.began_s <= gap["began_s"] + INTERVAL_S][-1]
                is_gone = any(after.device(host) is None for host, _, _ in pair)
                is_named = is_gone or pair not in state.always or any(end in state.disrupted for end in ends(pair))
                lost.append(Lost(pair, gap["lost"], gap["ended_s"] - gap["began_s"], state.what, is_named))
        for name, files in intended.items():
            self.runs[name] = Running(dict(files))
        self.fabric = after
        sent = sum(one["sent"] for one in heard.values())
        return Rolled(plan, sent, len(calls), tuple(lost), tuple(wrong), took_s)

    def _ask(self, verb: str, **details: Any) -> Mapping[str, Any]:
        return ask_keeper(LabFolder(self.site.lab.home / self.site.lab.name), verb, **details)


@dataclass(frozen=True)
class Passed:
    """A wave, by the model: the pairs that are connected throughout it, and at its end."""

    began_s: float
    what: str
    always: frozenset[Pair]
    reached: frozenset[Pair]
    disrupted: frozenset[str] = frozenset()
    """NICs that, according to the plan, have no other path."""


def ends(pair: Pair) -> Iterator[str]:
    """The NICs of a pair, as a plan names them."""
    return (f"{host}:{rail}" for host, rail, _ in pair)


def states(found: Transition, entries: Iterable[JournalEntry], ended_s: float) -> Iterator[Passed]:
    """The states of each wave of a run, by the model: first the one before the run, last the one after it."""
    waves: dict[int, tuple[float, list[str]]] = {}
    for entry in entries:
        if entry.step == "wave":
            waves.setdefault(entry.wave, (entry.at_s, []))[1].append(entry.device)
    configs = found.configs()
    reached = frozenset(found.reached(configs))
    yield Passed(0.0, "before the first wave", reached, reached)
    steps = list(found.plan.steps)
    for number, (began_s, names) in sorted(waves.items()):
        step = next(step for step in steps if set(names) <= set(step.devices))
        always = set(reached)
        for order in (names, names[::-1]):
            before = dict(configs)
            for name in order:
                change = found.change(step, name)
                always -= found.closing(step, name, before)
                down = {(name, port) for port in change.blast.ports}
                always &= found.reached(before, down) if down else always
                before[name] = apply(before[name], change.changes)
                always &= found.reached(before)
        configs = before
        blasts = [found.change(step, name).blast for name in names]
        disrupted = frozenset(gpu for blast in blasts if blast.is_disruptive for gpu in blast.gpus)
        reached = frozenset(found.reached(configs))
        left = [name for name in step.devices if name not in names]
        place = steps.index(step)
        steps[place : place + 1] = [Step(step.number, tuple(left), step.stage)] if left else []
        yield Passed(began_s, f"wave {number}: {' '.join(names)} {step.stage}", frozenset(always), reached, disrupted)
    yield Passed(ended_s, "after the deploy", reached, reached)


def addresses(fabric: Fabric) -> list[Pair]:
    """All pairs of addresses of different hosts, within each family."""
    nics: list[Address] = [
        (host.name, nic.interface, one) for host in fabric.hosts for nic in host.nics for one in nic.addresses
    ]
    pairs = combinations(nics, 2)
    return [frozenset(pair) for pair in pairs if pair[0][0] != pair[1][0] and len({":" in one[2] for one in pair}) == 1]


def pair_call(pair: Pair) -> TrafficPair:
    """The ping between two addresses."""
    (host, rail, address), (to_host, to_rail, to_address) = sorted(pair)
    return TrafficPair(f"{host}:{rail} {address} – {to_host}:{to_rail} {to_address}", host, rail, address, to_address)


@contextmanager
def lossless_calls(lab: RunningLab, pairs: Iterable[Pair]) -> Iterator[None]:
    """Send between pairs of addresses during the block, and expect every answer."""
    calls = [pair_call(pair) for pair in pairs]
    keeper = LabFolder(lab.home / lab.name)
    ask_keeper(keeper, "begin-calls", interval_s=INTERVAL_S, calls=[asdict(call) for call in calls])
    try:
        time.sleep(1)
        yield
    finally:
        heard = ask_keeper(keeper, "end-calls")["heard"]
    assert len(heard) == len(calls) > 1
    assert [one for one in heard if one["problem"] or one["gaps"]] == []
