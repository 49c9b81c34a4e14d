"""The facts of many devices in few bytes, which take little memory when they are read back.

The ports of a fabric are much alike. Equal values are written once for all devices, and are one object afterwards; the
same holds for lists of places. Counters are numbers without names, and of a later sample only what was added.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from netkit.errors import Problem
from netkit.facts import Absent, Counters, Facts, Observation, Sample, serial
from netkit.facts.optic import Limits
from netkit.fleet.settings import FleetError

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
LARGEST = 2**64
EMPTY = Facts()


def packed(devices: Iterable[Observation]) -> bytes:
    """Return the facts of devices as JSON."""
    packing = _Packing()
    found = [packing.device(one) for one in devices]
    document = {"devices": found, "values": packing.values, "places": [list(places) for places in packing.places]}
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def unpacked(data: bytes) -> Sequence[Observation]:
    """Return the devices; FleetError if they are damaged."""
    try:
        return _Unpacking.of(json.loads(data)).found()
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, ValidationError):
        raise FleetError(Problem("the facts in its answer are damaged")) from None


@dataclass(slots=True)
class _Packing:
    values: dict[str, list[Any]] = field(default_factory=dict)
    """Kind → its values, each once."""
    places: dict[tuple[str, ...], int] = field(default_factory=dict)
    _numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    """Kind → number of each value, by its text."""

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
        plain = _adapter(kind).dump_python(fact, mode="json", exclude_defaults=True)
        if kind not in BY_PLACE:
            return self._number(kind, plain)
        return [self._place(tuple(plain)), [self._number(kind, value) for value in plain.values()]]

    def _number(self, kind: str, value: Any) -> int:
        text = serial.to_json(value)
        numbers = self._numbers.setdefault(kind, {})
        found = numbers.get(text)
        if found is None:
            found = numbers[text] = len(numbers)
            self.values.setdefault(kind, []).append(json.loads(text))
        return found

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
            is_alike = earlier.keys() == counts.keys() and bool(earlier)
            values = [count - earlier[at] for at, count in counts.items()] if is_alike else list(counts.values())
            found[name] = [self._place(tuple(counts)), values, is_alike]
        return found


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(HINTS[kind])


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
class _Unpacking:
    devices: Sequence[Mapping[str, Any]]
    places: Sequence[Sequence[str]]
    values: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "_Unpacking":
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
            found[_text(name)] = dict(zip(places, counts, strict=True))
        return found


def _shared(kind: str, values: Mapping[str, Any]) -> Sequence[Any]:
    """Return values in their order; the limits of modules are few, and become one object each."""
    if kind != "modules":
        return list(values.values())
    known: dict[tuple[tuple[str, Limits], ...], Mapping[Any, Limits]] = {}
    return [replace(one, limits=known.setdefault(tuple(one.limits.items()), one.limits)) for one in values.values()]


@cache
def _absent(reason: str) -> Absent:
    return Absent(reason)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _index(value: Any) -> int:
    """Return an index; a negative one would count from the end."""
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value
