"""Checks at the sites: workers read devices and judge them one by one; the coordinator judges the fabric as a whole."""

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from netkit import __version__
from netkit import plan as planning
from netkit.access import connect
from netkit.design import Fabric
from netkit.design.select import Device
from netkit.errors import NetkitError, Problem
from netkit.facts import Absent, Counters, Facts, Observation, Sample, Snapshot, serial
from netkit.fleet.dispatch import Dispatch
from netkit.fleet.job import CheckWork
from netkit.fleet.settings import FleetError
from netkit.judge import Check, Verdict, catalog, error
from netkit.judge.run import CheckResult, Judgement, ShardResult, subjects
from netkit.judge.shard import Reads
from netkit.project.checking import ACCEPTANCE, CLUSTER, NO_PAST, Checking, Part
from netkit.project.connections import chosen_source
from netkit.project.deadline import NEVER, Deadline
from netkit.project.past import Past
from netkit.project.project import Project
from netkit.store.record import batched, judgement_data, judgement_of

COUNTERS = "counters"
KINDS = tuple(one.name for one in fields(Facts) if one.name != COUNTERS)
HINTS = get_type_hints(Facts)
BY_PLACE = frozenset(
    kind
    for kind in KINDS
    if any(
        get_origin(option) is not None and issubclass(get_origin(option), Mapping) for option in get_args(HINTS[kind])
    )
)
"""Kinds of facts with a value for each place; the others have one for the device."""
SHARED = {"modules": ("limits",), "nics": ("settings", "next_settings"), "host": ("sysctls", "tools")}
"""Kind → fields that are the same on most devices: limits of a type of module, settings of a fabric."""
LARGEST = 2**64
EMPTY = Facts()


def packed(devices: Iterable[Observation]) -> bytes:
    """The facts of devices as JSON."""
    packing = _Packing()
    found = [packing.device(one) for one in devices]
    rest = serial.to_json({"devices": found, "places": [list(places) for places in packing.places]})
    values = ",".join(f'"{kind}":[{",".join(numbers)}]' for kind, numbers in packing.values.items())
    return f'{rest[:-1]},"values":{{{values}}}}}'.encode()


def unpacked(data: bytes) -> Sequence[Observation]:
    """The devices; FleetError if they are damaged."""
    try:
        return _FactsUnpacking.of(_plain(data)).found()
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, ValidationError):
        raise FleetError(Problem("the facts in its answer are damaged")) from None


def _plain(data: bytes) -> Any:
    """Parse JSON; equal strings of this part become one object, unless some are not UTF-8."""
    try:
        return from_json(data)
    except ValueError:
        return json.loads(data)


@dataclass(slots=True)
class _Packing:
    values: dict[str, dict[str, int]] = field(default_factory=dict)
    """Kind → its values as JSON, each once, and their numbers."""
    places: dict[tuple[str, ...], int] = field(default_factory=dict)
    _last: dict[str, tuple[Any, int]] = field(default_factory=dict)
    """Kind with a value for each place → the last one and its number: many places have the same as the one before."""

    def device(self, one: Observation) -> dict[str, Any]:
        facts = {
            kind: self._fact(kind, fact) for kind in KINDS if (fact := getattr(one.facts, kind)) != getattr(EMPTY, kind)
        }
        counters, found = one.facts.counters, list[Any]()
        for sample in one.samples:
            found.append(self._sample(sample, one.samples[0]))
        is_last = bool(one.samples) and counters == one.samples[-1].counters
        return {
            "device": one.device,
            "platform": one.platform,
            "failure": one.failure,
            "seconds": one.seconds,
            "facts": facts,
            "samples": found,
            COUNTERS: True
            if is_last
            else counters.reason
            if isinstance(counters, Absent)
            else self._counters(counters),
        }

    def _fact(self, kind: str, fact: Any) -> Any:
        if isinstance(fact, Absent):
            return fact.reason
        if kind not in BY_PLACE:
            return self._number(kind, _written(kind, fact))
        numbers, last = list[int](), self._last.get(kind)
        for value in fact.values():
            if last is None or (last[0] is not value and last[0] != value):
                written = _written(kind, {"": value}).removeprefix('{"":')[:-1]
                last = self._last[kind] = value, self._number(kind, written)
            numbers.append(last[1])
        return [self._place(tuple(fact)), numbers]

    def _number(self, kind: str, written: str) -> int:
        numbers = self.values.setdefault(kind, {})
        return numbers.setdefault(written, len(numbers))

    def _place(self, places: tuple[str, ...]) -> int:
        return self.places.setdefault(places, len(self.places))

    def _sample(self, sample: Sample, first: Sample) -> dict[str, Any]:
        before = {} if sample is first else first.counters
        buffers = _sample_adapter().dump_python(replace(sample, counters={}), mode="json", exclude_defaults=True)
        return {**buffers, COUNTERS: self._counters(sample.counters, before)}

    def _counters(self, counters: Counters, before: Counters | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, counts in counters.items():
            earlier = (before or {}).get(name, {})
            if earlier is counts and counts:
                found[name] = [self._place(tuple(counts)), [0] * len(counts), True]
                continue
            is_alike = earlier.keys() == counts.keys() and bool(earlier)
            values = [count - earlier[at] for at, count in counts.items()] if is_alike else list(counts.values())
            found[name] = [self._place(tuple(counts)), values, is_alike]
        return found


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(HINTS[kind])


def _written(kind: str, fact: object) -> str:
    """A fact as JSON; the fast writer has null for what is not finite, and refuses what is not UTF-8."""
    adapter = _adapter(kind)
    with suppress(ValueError):
        written = adapter.dump_json(fact, exclude_defaults=True).decode()
        if "null" not in written:
            return written
    return serial.to_json(adapter.dump_python(fact, mode="json", exclude_defaults=True))


@cache
def _reader(kind: str) -> Callable[[Any], Any]:
    hint: Any = HINTS[kind] if kind in BY_PLACE else dict.__class_getitem__((str, HINTS[kind]))
    return serial.validator(TypeAdapter(hint)).validate_python


@cache
def _sample_adapter() -> TypeAdapter[Sample]:
    return TypeAdapter(Sample)


@cache
def _sample_reader() -> Callable[[Any], Any]:
    return serial.validator(_sample_adapter()).validate_python


@dataclass(frozen=True, slots=True)
class _FactsUnpacking:
    devices: Sequence[Mapping[str, Any]]
    places: Sequence[Sequence[str]]
    values: Mapping[str, Sequence[Any]]
    zeros: dict[int, Mapping[str, int]] = field(default_factory=dict)
    """Number of some places → counters that have not counted there: one object for all."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "_FactsUnpacking":
        places = [[_text(at) for at in places] for places in document["places"]]
        values = {
            kind: _shared(kind, _reader(kind)({str(number): value for number, value in enumerate(found)}))
            for kind, found in document["values"].items()
            if kind in KINDS
        }
        return cls(document["devices"], places, values)

    def found(self) -> Sequence[Observation]:
        return [self._device(one) for one in self.devices]

    def _device(self, one: Mapping[str, Any]) -> Observation:
        facts = {kind: self._fact(kind, fact) for kind, fact in one["facts"].items()}
        samples = list[Sample]()
        for sample in one["samples"]:
            counters = self._counters(sample[COUNTERS], samples[0].counters if samples else {})
            read = _sample_reader()({**sample, COUNTERS: {}})
            if not 0 <= read.at_s < serial.LAST_S:
                raise ValueError(read.at_s)
            samples.append(replace(read, counters=counters))
        counters = one[COUNTERS]
        if counters is True:
            facts[COUNTERS] = samples[-1].counters
        else:
            facts[COUNTERS] = _absent(counters) if isinstance(counters, str) else self._counters(counters, {})
        seconds = float(one["seconds"])
        if not math.isfinite(seconds):
            raise ValueError(seconds)
        about = _text(one["device"]), _text(one["platform"])
        return Observation(*about, Facts(**facts), tuple(samples), _text(one["failure"]), seconds)

    def _fact(self, kind: str, fact: Any) -> Any:
        if isinstance(fact, str):
            return _absent(fact)
        values = self.values.get(kind, ())
        if kind not in BY_PLACE:
            return values[_index(fact)]
        places, numbers = fact
        return dict(zip(self.places[_index(places)], [values[_index(number)] for number in numbers], strict=True))

    def _counters(self, packed_: Mapping[str, Any], before: Counters) -> Counters:
        found = {}
        for name, (number, values, is_alike) in packed_.items():
            places = self.places[_index(number)]
            if is_alike and values == [0] * len(before[name]):  # most counters count nothing: one object for both
                found[_text(name)] = before[name]
                continue
            if is_alike:
                earlier = before[name]
                counts = [earlier[at] + more if more else earlier[at] for at, more in zip(places, values, strict=True)]
            else:
                counts = values
            if not all(type(count) is int and 0 <= count < LARGEST for count in counts):
                raise ValueError(name)
            if any(counts):
                found[_text(name)] = dict(zip(places, counts, strict=True))
            else:
                found[_text(name)] = self.zeros.setdefault(number, dict(zip(places, counts, strict=True)))
        return found


def _shared(kind: str, values: Mapping[str, Any]) -> Sequence[Any]:
    """Values in their order; mappings that many of them have become one object."""
    names = SHARED.get(kind, ())
    if not names:
        return list(values.values())
    known: dict[tuple[tuple[str, Any], ...], Mapping[str, Any]] = {}

    def one(found: Mapping[str, Any]) -> Mapping[str, Any]:
        return known.setdefault(tuple(found.items()), found)

    return [replace(value, **{name: one(getattr(value, name)) for name in names}) for value in values.values()]


@cache
def _absent(reason: str) -> Absent:
    return Absent(reason)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _index(value: Any) -> int:
    """An index; a negative one would count from the end."""
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


AT_ONCE = 32
"""Devices per part of an answer."""
BESIDE = ("system",)
"""What reports show of each device, also where no check of several devices reads it."""
UNDECLARED = "reads other devices without declaring it: add reads=[…] to its decorator"
HEAD, RESULTS, FACTS = b"H", b"R", b"F"


def prepare(fabric: Fabric) -> None:
    """Compute in a worker what each of its jobs needs, for their processes to inherit."""
    for kind in KINDS:
        _adapter(kind)
    _sample_adapter()
    _ = fabric.far_ends, fabric.speeds_gbps
    connect.load({*(switch.platform for switch in fabric.switches), *(host.platform for host in fabric.hosts)})


def answered(
    project: Project, devices: Sequence[Device], work: CheckWork, deadline: Deadline = NEVER, past: Past = NO_PAST
) -> Iterator[bytes]:
    """Read and judge devices at their site; yield the parts of the answer: each process has a head and what follows."""
    checks = catalog.select(project.checks(), work.names)
    checking = replace(
        Checking.of(project, window_s=work.window_s, is_light=work.is_light, source=work.source or ""),
        devices=devices,
        deadline=deadline,
    )
    for part in checking.collect(checks, past, Reads.of(checks, BESIDE)):
        yield from _packed(part, checks, {device.name: device for device in devices})


def _packed(part: Part, checks: Sequence[Check], devices: Mapping[str, Device]) -> Iterator[bytes]:
    found, shard = part.snapshot, part.shard or ShardResult({})
    head = {"netkit": __version__, "taken_s": found.taken_s, "plan": found.plan}
    yield HEAD + json.dumps({**head, "still": {name: sorted(at) for name, at in shard.still.items()}}).encode()
    here = [devices[name] for name in found.devices]
    refused = _refused([check for check in checks if check.name in shard.deferred], here)
    for results in batched([*shard.results, *refused], AT_ONCE * len(checks)):
        yield RESULTS + judgement_data(Judgement(tuple(results), ()))
    for names in batched(found.devices, AT_ONCE):
        yield FACTS + packed(found.devices[name] for name in names)


def _refused(checks: Iterable[Check], devices: Sequence[Device]) -> Iterator[CheckResult]:
    """Yield the results of checks that cannot be judged where the device is read."""
    for check in checks:
        for name in subjects(check, devices):
            finding = error("", UNDECLARED, device=name)._replace(check=check.name)
            yield CheckResult(check.name, name, Verdict.ERROR, 1, (finding,))


@dataclass(slots=True)
class _Unpacking:
    """The parts of an answer so far."""

    fabric: str
    asked: frozenset[str]
    parts: list[Part] = field(default_factory=list)
    failure: str = ""
    """Why it is not used."""

    def take(self, payload: bytes) -> None:
        """Add a part; from the first one that is refused, the answer has failed."""
        if not self.failure:
            try:
                self._take(payload)
            except NetkitError as error:
                self.failure = error.problems[0].message

    def _take(self, payload: bytes) -> None:
        kind, content = payload[:1], payload[1:]
        if kind == HEAD:
            self.parts.append(self._begun(content))
            return
        if not self.parts:
            raise FleetError(Problem("its answer has no head"))
        part = self.parts[-1]
        snapshot, shard = part.snapshot, part.shard or ShardResult({})
        if kind == RESULTS:
            results = judgement_of(content, "its answer").results
            self._expect(one.device for one in results)
            shard = replace(shard, results=(*shard.results, *results))
        elif kind == FACTS:
            devices = {one.device: one for one in unpacked(content)}
            self._expect(devices)
            snapshot = replace(snapshot, devices={**snapshot.devices, **devices})
        else:
            raise FleetError(Problem(f"its answer has a part of the kind {kind!r}"))
        self.parts[-1] = Part(snapshot, shard)

    def _expect(self, names: Iterable[str]) -> None:
        """Refuse devices that the site was not asked for: they may be at another one."""
        others = [name for name in names if name not in self.asked]
        if others:
            raise FleetError(Problem(f"its answer is about {others[0]}, which was not requested"))

    def _begun(self, content: bytes) -> Part:
        try:
            head = json.loads(content)
            version, taken_s, plan = str(head["netkit"]), float(head["taken_s"]), str(head["plan"])
            still = {str(name): frozenset(map(str, ports)) for name, ports in head["still"].items()}
        except (ValueError, LookupError, TypeError, AttributeError):
            raise FleetError(Problem("the head of its answer is damaged")) from None
        if version != __version__:
            what = f"its worker runs netkit {version}, and this is {__version__}"
            raise FleetError(Problem(what, "run the same release at all sites"))
        if plan:
            differences = planning.read(plan, "its answer")
            self._expect(one.name for one in differences.devices)
            self._expect(one.name for one in differences.unreachable)
        return Part(Snapshot(self.fabric, taken_s, {}, plan), ShardResult({}, still=still))


@dataclass(frozen=True, slots=True)
class FleetCollector:
    """Has the workers of sites read and judge devices."""

    dispatch: Dispatch

    def __call__(self, checking: Checking, checks: Sequence[Check], past: Past) -> Sequence[Part]:
        """Give the devices to their sites; a shard without an answer leaves its devices unread, with the reason."""
        names = tuple(check.name for check in checks if not check.name.startswith((ACCEPTANCE, CLUSTER)))
        source = chosen_source(checking.source)
        work = CheckWork(names=names, window_s=checking.window_s, is_light=checking.is_light, source=source)
        project, platforms = checking.project, {device.name: device.platform for device in checking.devices}
        parts: list[Part] = []
        left_s, counted_s = checking.deadline.left_s, past.counted_s
        for answer in self.dispatch.answers(project, checking.devices, work, left_s, counted_s):
            unpacking = _Unpacking(project.fabric.name, frozenset(answer.job.devices), failure=answer.failure)
            for payload in answer.parts:
                unpacking.take(payload)
            if unpacking.failure:
                why = replace(answer, failure=unpacking.failure).why
                seen = {name: Observation(name, platforms[name], failure=why) for name in answer.job.devices}
                parts.append(Part(Snapshot(project.fabric.name, time.time(), seen)))
            else:
                parts += unpacking.parts
        return parts
