"""Judge a fabric in shards, with the same findings as in one piece.

A shard runs the local checks on its devices, and reduces their facts to those that the other checks read. It also tries
the other checks of single devices: if one does not read other devices after all, as on most healthy ones, its result is
final.

Whether the counters of a port are stuck shows only beside those of the other end of its cable. Where that end is in
another shard and the port may be stuck, the device is handed on with all of its facts, and judged again where both ends
are known.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

from netkit.design import Fabric
from netkit.facts import Absent, Counters, Facts, Observation, Sample
from netkit.facts.device import KINDS
from netkit.judge.check import Check
from netkit.judge.context import CROSSED, CheckContext, DeviceContext
from netkit.judge.delta import has_fallen, is_of_port
from netkit.judge.run import CheckDeadline, CheckResult, ShardResult, result_on, results_of, subjects

BYTES = frozenset(name for pair in CROSSED for name in pair)
ELSEWHERE = Absent("is judged where the device is read")


class ReadsOthersError(BaseException):
    """A local check looks at another device; not an Exception, so that no check catches it."""


class _Others(Mapping[str, Observation]):
    """What other devices have: not here."""

    def __getitem__(self, _name: str) -> NoReturn:
        raise ReadsOthersError

    def __iter__(self) -> NoReturn:
        raise ReadsOthersError

    def __len__(self) -> int:
        raise ReadsOthersError


class _OtherRuns:
    """What earlier runs have: not here."""

    def readings(self, device: str, place: str, quantity: str) -> NoReturn:
        del device, place, quantity
        raise ReadsOthersError


Numbers = Mapping[str, frozenset[str]]
"""Class of traffic → its priorities, as places have them."""


def numbers_of(fabric: Fabric) -> Numbers:
    lossless = fabric.lossless
    found = {"roce": [lossless.roce.priority], "cnp": [lossless.cnp.priority], "lossless": lossless.lossless_priorities}
    return {name: frozenset(map(str, numbers)) for name, numbers in found.items()}


@dataclass(frozen=True, slots=True)
class Reads:
    """The facts and counters that checks of several devices read."""

    kinds: frozenset[str] = frozenset(KINDS)
    counters: Mapping[str, frozenset[str]] | None = None
    """Name → the classes of traffic it is read of, or none for all places; None: all counters."""

    @classmethod
    def of(cls, checks: Iterable[Check], further: Iterable[str] = ()) -> Self:
        """What those of the checks read that are not local, and further facts."""
        shared = [check for check in checks if not check.is_local]
        if any(check.reads is None for check in shared):
            return cls()
        names = {*further, *(name for check in shared for name in check.reads or ())}
        counters: dict[str, set[str]] = {}
        for name in names - {*KINDS}:
            counter, _, traffic = name.partition("/")
            counters.setdefault(counter, set()).add(traffic)
        whole = {name for name, classes in counters.items() if "" in classes} | BYTES
        read = {name: frozenset[str]() if name in whole else frozenset(counters[name]) for name in {*counters, *BYTES}}
        return cls(frozenset(names & {*KINDS}), read)

    def reduced(self, one: Observation, numbers: Numbers) -> Observation:
        """An observation without what is not read; what is missing keeps its reason."""
        if self.counters is None:
            return one
        samples = (one.samples[0], one.samples[-1]) if len(one.samples) > 1 else one.samples
        kept = _Kept(
            {
                name: frozenset[str]().union(*(numbers[traffic] for traffic in classes))
                for name, classes in self.counters.items()
            },
            samples,
        )
        counted = tuple(replace(sample, counters=kept.of(sample.counters), buffers={}) for sample in samples)
        facts: dict[str, Any] = {kind: self._fact(kind, getattr(one.facts, kind)) for kind in KINDS}
        counters = one.facts.counters
        if "counters" not in self.kinds and not isinstance(counters, Absent):
            is_last = bool(samples) and counters == samples[-1].counters
            facts["counters"] = counted[-1].counters if is_last else kept.of(counters)
        return replace(one, facts=Facts(**facts), samples=counted)

    def _fact(self, kind: str, fact: Any) -> object:
        return fact if isinstance(fact, Absent) or kind in self.kinds else ELSEWHERE


class _Kept:
    """The counters to keep: the named ones, and all of a port where one fell, since those beside it explain why."""

    def __init__(self, names: Mapping[str, frozenset[str]], samples: Sequence[Sample]) -> None:
        self._names = names
        self._last: dict[str, tuple[Mapping[str, int], Mapping[str, int]]] = {}
        """Name → its last counts and what is kept of them: most count nothing between two samples."""
        self._fallen = set(_fallen(samples[0].counters, samples[-1].counters)) if len(samples) > 1 else set[str]()

    def of(self, counters: Counters) -> Counters:
        for name, counts in counters.items():
            if name not in self._last or self._last[name][0] is not counts:
                self._last[name] = counts, self._places(name, counts)
        return {name: kept for name in counters if (kept := self._last[name][1])}

    def _places(self, name: str, counts: Mapping[str, int]) -> Mapping[str, int]:
        numbers = self._names.get(name)
        if numbers is not None and not numbers:
            return counts
        if numbers is None and not self._fallen:
            return {}
        return {
            at: count
            for at, count in counts.items()
            if (numbers and at.rpartition("/")[2] in numbers) or (self._fallen and _port(name, at) in self._fallen)
        }


def _fallen(earlier: Counters, later: Counters) -> Iterator[str]:
    """Yield the ports with a counter that is lower than before."""
    for name, counts in later.items():
        before = earlier.get(name, {})
        if has_fallen(before, counts):
            yield from (_port(name, at) for at, count in counts.items() if count < before.get(at, 0))


def _port(name: str, at: str) -> str:
    return at if is_of_port(name) else at.rpartition("/")[0]


def judge_shard(
    context: CheckContext, checks: Iterable[Check], reads: Reads, deadline: CheckDeadline | None = None
) -> ShardResult:
    """Run the local checks on the devices of a shard."""
    alone = replace(context, snapshot=replace(context.snapshot, devices=_Others()), history=_OtherRuns())
    results: list[CheckResult] = []
    deferred = set()
    with deadline or CheckDeadline() as until:
        for check in checks:
            if check.is_local:
                try:
                    results += list(results_of(context, check, until, given=alone))  # all of them or none
                except ReadsOthersError:
                    deferred.add(check.name)
            elif check.of_device is not None:
                results += _tried(context, check, until, alone)
    numbers = numbers_of(context.fabric)
    observations = {name: _handed_on(context, device, reads, numbers) for name, device in context.devices.items()}
    still = {name: frozenset(device.still) for name, device in context.devices.items() if device.still}
    return ShardResult(observations, tuple(results), still, frozenset(deferred))


def _tried(context: CheckContext, check: Check, until: CheckDeadline, alone: CheckContext) -> Iterator[CheckResult]:
    """Run a check of a device that may look at others; yield its result on those where it does not."""
    for name in subjects(check, (device.device for device in context.devices.values())):
        with suppress(ReadsOthersError):
            yield result_on(context, check, name, until, alone)


def _handed_on(context: CheckContext, device: DeviceContext, reads: Reads, numbers: Numbers) -> Observation:
    if device.name not in context.snapshot.devices:
        return device.observation
    return device.observation if _may_stand_still(context, device) else reads.reduced(device.observation, numbers)


def _may_stand_still(context: CheckContext, device: DeviceContext) -> bool:
    """Whether a port counted nothing, and is cabled to another shard."""
    for port in device.cabled:
        far = context.far(device.name, port)
        if far is not None and far.device not in context.devices:
            counted = [device.deltas(name).get(port) for name in BYTES]
            if any(delta is not None and delta.is_known and not delta.value for delta in counted):
                return True
    return False
