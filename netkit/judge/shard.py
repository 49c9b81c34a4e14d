"""Judge a fabric in shards, with the same findings as in one piece.

A shard runs the local checks on its devices, and reduces their facts to what the other checks read. Those of these that
judge a device are tried too: where one does not look at other devices after all, as on most healthy ones, its result
stands.

Whether the counters of a port are stuck shows only beside those of the other end of its cable. Where that end is in
another shard and the port may be stuck, the device is handed on with all of its facts, and judged again where both ends
are known.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

from netkit.facts import Absent, Counters, Facts, Observation, Sample
from netkit.facts.device import KINDS
from netkit.judge.check import Check
from netkit.judge.context import CROSSED, CheckContext, DeviceContext
from netkit.judge.delta import is_of_port
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


@dataclass(frozen=True, slots=True)
class Reads:
    """The facts and counters that checks of several devices read."""

    kinds: frozenset[str] = frozenset(KINDS)
    counters: frozenset[str] | None = None
    """None: all of them."""

    @classmethod
    def of(cls, checks: Iterable[Check], further: Iterable[str] = ()) -> Self:
        """Return what those of the checks read that are not local, and further facts."""
        shared = [check for check in checks if not check.is_local]
        if any(check.reads is None for check in shared):
            return cls()
        names = {*further, *(name for check in shared for name in check.reads or ())}
        return cls(frozenset(names & {*KINDS}), BYTES | (names - {*KINDS}))

    def reduced(self, one: Observation) -> Observation:
        """Return an observation without what is not read; what is missing keeps its reason."""
        if self.counters is None:
            return one
        samples = (one.samples[0], one.samples[-1]) if len(one.samples) > 1 else one.samples
        kept = _Kept(self.counters, samples)
        has_buffers = False
        facts: dict[str, Any] = {kind: self._fact(kind, getattr(one.facts, kind), kept) for kind in KINDS}
        counted = (
            replace(sample, counters=kept.of(sample.counters), buffers=sample.buffers if has_buffers else {})
            for sample in samples
        )
        return replace(one, facts=Facts(**facts), samples=tuple(counted))

    def _fact(self, kind: str, fact: Any, kept: "_Kept") -> object:
        if isinstance(fact, Absent) or kind in self.kinds:
            return fact
        return kept.of(fact) if kind == "counters" else ELSEWHERE


class _Kept:
    """The counters to keep: the named ones, and all of a port where one fell, since those beside it explain why."""

    def __init__(self, names: frozenset[str], samples: Sequence[Sample]) -> None:
        self._names = names
        self._fallen = set(_fallen(samples[0].counters, samples[-1].counters)) if len(samples) > 1 else set[str]()

    def of(self, counters: Counters) -> Counters:
        found: dict[str, Mapping[str, int]] = {name: counters[name] for name in counters if name in self._names}
        if not self._fallen:
            return found
        for name in counters.keys() - self._names:
            beside = {at: count for at, count in counters[name].items() if _port(name, at) in self._fallen}
            if beside:
                found[name] = beside
        return found


def _fallen(earlier: Counters, later: Counters) -> Iterator[str]:
    """Yield the ports with a counter that is lower than before."""
    for name, counts in later.items():
        before = earlier.get(name, {})
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
    observations = {name: _handed_on(context, device, reads) for name, device in context.devices.items()}
    still = {name: frozenset(device.still) for name, device in context.devices.items() if device.still}
    return ShardResult(observations, tuple(results), still, frozenset(deferred))


def _tried(context: CheckContext, check: Check, until: CheckDeadline, alone: CheckContext) -> Iterator[CheckResult]:
    """Run a check of a device that may look at others; yield its result on those where it does not."""
    for name in subjects(check, (device.device for device in context.devices.values())):
        with suppress(ReadsOthersError):
            yield result_on(context, check, name, until, alone)


def _handed_on(context: CheckContext, device: DeviceContext, reads: Reads) -> Observation:
    if device.name not in context.snapshot.devices:
        return device.observation
    return device.observation if _may_stand_still(context, device) else reads.reduced(device.observation)


def _may_stand_still(context: CheckContext, device: DeviceContext) -> bool:
    """Whether a port counted nothing, and is cabled to another shard."""
    for port in (*device.ports, *device.nics):
        far = context.far(device.name, port)
        if far is not None and far.device not in context.devices:
            counted = [device.deltas(name).get(port) for name in BYTES]
            if any(delta is not None and delta.is_known and not delta.value for delta in counted):
                return True
    return False
