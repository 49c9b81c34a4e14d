"""Wanted objects against those of a source of truth: what is missing is created, what differs is changed.

Nothing is deleted or moved: conflicting objects are left unchanged and reported.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal, Protocol

from netkit.truth.dialect import ObjectKind, Record, TruthDialect, identity
from netkit.truth.wanted import Key, Ref, Wanted

WRITTEN_TOGETHER = 100
LONGEST_QUERY = 2500
"""Characters of the filters in one address: a web server accepts some 4,000 to 8,000."""
LONGEST_FILTER = 12
"""Characters of the name of a filter, which each value has before it."""
PLANNED = object()
"""Stands for the id of an object that a dry run does not create."""


class TruthRefusedError(Exception):
    """The source does not accept a value; its words."""


class TruthClient(Protocol):
    """The API of a source."""

    def find(self, endpoint: str, filters: Mapping[str, object]) -> Iterable[Record]:
        """Read all objects that match."""

    def create(self, endpoint: str, rows: Sequence[Mapping[str, object]]) -> Iterable[Record]:
        """Create all of them or none; TruthRefusedError."""

    def update(self, endpoint: str, rows: Sequence[Mapping[str, object]]) -> Iterable[Record]:
        """Change all of them or none; TruthRefusedError."""


@dataclass(frozen=True, slots=True)
class ExportedObject:
    """An object that is created, changed, or left although it should be; others are as they should be."""

    kind: str
    name: str
    action: Literal["create", "change", "left"]
    detail: str = ""


@dataclass(slots=True)
class TruthExport:
    """Goes through the wanted objects kind by kind; writes only with `writes`."""

    client: TruthClient
    dialect: TruthDialect
    writes: bool
    found: list[ExportedObject] = field(default_factory=list)
    unchanged: int = 0
    _wanted: dict[Ref, Wanted] = field(default_factory=dict)
    _records: dict[str, dict[Key, list[Record]]] = field(default_factory=lambda: defaultdict(dict))
    _ids: dict[Ref, object] = field(default_factory=dict)
    _names: dict[str, dict[Any, Key]] = field(default_factory=lambda: defaultdict(dict))

    def run(self, neutral: Iterable[Wanted]) -> None:
        """Export every object."""
        adapted = [one for each in neutral for one in self.dialect.adapted(each)]
        self._wanted = {Ref(one.kind, one.key): one for one in adapted}
        order = list(self.dialect.kinds)
        adapted = sorted(self._wanted.values(), key=lambda one: order.index(one.kind))
        for kind, ones in groupby(adapted, key=lambda one: one.kind):
            if not self.dialect.kinds[kind].is_support:
                self._step(kind, list(ones))

    def _step(self, name: str, ones: list[Wanted]) -> None:
        kind = self.dialect.kinds[name]
        if kind.is_support:
            self._support(ones)  # device types are found by their manufacturers
        self._read(name, kind, ones)
        missing: list[Wanted] = []
        changes: list[tuple[Wanted, Record, dict[str, object]]] = []
        for one in (each for each in ones if self._is_possible(each.claimed)):
            records = self._records[name].get(one.key, [])
            fitting = next((record for record in records if not self._claims(one, record)), None)
            if fitting is not None:
                self._ids[Ref(name, one.key)] = fitting["id"]
                if values := self._differing(one, fitting):
                    changes.append((one, fitting, values))
                else:
                    self.unchanged += 1
            elif records:
                self._leave(one, self._claims(one, records[0]))
            else:
                missing.append(one)
        if kind.part_of:  # of an object that was left
            missing = [one for one in missing if Ref(kind.part_of, one.key) in self._ids]
        self._support(missing)
        possible = [one for one in missing if self._is_possible(one.initial, one.managed, one.claimed)]
        self._create(name, kind, [one for one in possible if not self._has_cable_in_the_way(one)])
        self._change(kind, [one for one in changes if self._is_possible(one[0].managed, one[0].claimed)])

    def _read(self, name: str, kind: ObjectKind, ones: Sequence[Wanted]) -> None:
        """Read the objects of a kind that have the keys of the wanted ones, or belong to the same parents."""
        scope = {key: self._resolved(value) for key, value in kind.scope.items()}
        if PLANNED in scope.values():
            return
        asked = [{kind.asked: some} for some in queries(self._asked(kind, ones))] if kind.asked else [{}]
        for query in asked:
            for record in self.client.find(kind.endpoint, {**scope, **query}):
                self._keep(name, kind, record)

    def _asked(self, kind: ObjectKind, ones: Iterable[Wanted]) -> Iterator[object]:
        for one in ones:
            if one.kind == "cable":
                yield from (identity(record["cable"]) for record in self._ends(one) if record["cable"])
            elif not kind.by:
                yield one.key[-1]
            elif (known := self._ids.get(Ref(kind.by, one.key[:1]), PLANNED)) is not PLANNED:
                yield known

    def _keep(self, name: str, kind: ObjectKind, record: Record) -> None:
        key = kind.key(record, self._names)
        self._records[name].setdefault(key, []).append(record)
        self._names[name][record["id"]] = key

    def _ends(self, cable: Wanted) -> Iterator[Record]:
        for end in (cable.key[:2], cable.key[2:]):
            yield from self._records["interface"].get(end, [])

    def _has_cable_in_the_way(self, one: Wanted) -> bool:
        """Leave a cable one of whose ports has another one."""
        for record in self._ends(one) if one.kind == "cable" else ():
            if record["cable"]:
                port = " ".join(self._names["interface"][record["id"]])
                cable = self._names["cable"].get(identity(record["cable"]), ())
                ends = [" ".join(end) for end in (cable[:2], cable[2:]) if any(end)]
                others = [end for end in ends if end != port]
                self._leave(one, f"{port} has a cable to {others[0] if others else 'another device'}")
                return True
        return False

    def _claims(self, one: Wanted, record: Record) -> str:
        """What an object has in place of a value that it must not have given away; empty: nothing."""
        for key, value in one.claimed.items():
            current = record[key]
            if identity(current) not in {None, "", self._resolved(value)}:
                return f"{key.removesuffix('_id').removesuffix('_type')} is {_shown(record, key)}"
        return ""

    def _differing(self, one: Wanted, record: Record) -> dict[str, object]:
        """The values that an object lacks, as they are written."""
        values: dict[str, object] = {}
        for key, value in (*one.managed.items(), *one.claimed.items()):
            column, _, part = key.partition(".")
            current = record[column]
            if part:
                if Ref("custom field", (part,)) not in self._ids:
                    continue  # a field of this name is of another type
                current = (current or {}).get(part)
                if current != value:
                    values[column] = {part: value}
            elif identity(current) != self._resolved(value):
                values[column] = self._resolved(value)
        return values

    def _support(self, missing: Iterable[Wanted]) -> None:
        """Create objects that others need first, such as their manufacturer."""
        needed: dict[str, dict[Ref, None]] = defaultdict(dict)
        for one in missing:
            for ref in _refs(one.initial):
                if self.dialect.kinds[ref.kind].is_support and ref not in self._ids:
                    needed[ref.kind][ref] = None
        for kind in sorted(needed, key=list(self.dialect.kinds).index):
            self._step(kind, [self._wanted[ref] for ref in needed[kind] if ref not in self._ids])

    def _is_possible(self, *values: Mapping[str, object]) -> bool:
        """Whether everything that an object refers to is there."""
        return all(ref in self._ids for some in values for ref in _refs(some))

    def _create(self, name: str, kind: ObjectKind, ones: Sequence[Wanted]) -> None:
        rows = [(one, {**one.initial, **self._differing(one, defaultdict(lambda: None))}) for one in ones]
        resolved = [(one, self._resolved(row)) for one, row in rows]
        for one, record in self._written(self.client.create, kind, resolved):
            if record is not PLANNED:
                self._keep(name, kind, record)
            self._ids[Ref(name, one.key)] = PLANNED if record is PLANNED else record["id"]
            self.found.append(ExportedObject(name, " ".join(one.key), "create"))

    def _change(self, kind: ObjectKind, changes: Sequence[tuple[Wanted, Record, Any]]) -> None:
        before = {(one.kind, one.key): (record, values) for one, record, values in changes}
        rows = [(one, {"id": record["id"], **values}) for one, record, values in changes]
        for one, _ in self._written(self.client.update, kind, rows):
            record, values = before[(one.kind, one.key)]
            detail = ", ".join(self._changed(one, record, values))
            self.found.append(ExportedObject(one.kind, " ".join(one.key), "change", detail))

    def _changed(self, one: Wanted, record: Record, values: Record) -> Iterator[str]:
        for key, value in {**one.managed, **one.claimed}.items():
            column, _, part = key.partition(".")
            if column in values:
                was = (record[column] or {}).get(part) if part else _shown(record, column)
                now = " ".join(value.key) if isinstance(value, Ref) else value
                yield f"{part or key} {was or 'empty'} → {now}"

    def _written(
        self, write: Callable[..., Iterable[Record]], kind: ObjectKind, rows: Sequence[tuple[Wanted, Any]]
    ) -> Iterator[tuple[Wanted, Any]]:
        """Write rows together, and where that is refused one by one; yield what was written."""
        if not self.writes:
            yield from ((one, PLANNED) for one, _ in rows)
            return
        for start in range(0, len(rows), WRITTEN_TOGETHER):
            some = rows[start : start + WRITTEN_TOGETHER]
            try:
                records = list(write(kind.endpoint, [row for _, row in some]))
            except TruthRefusedError:
                yield from self._one_by_one(write, kind, some)
            else:
                yield from zip((one for one, _ in some), records, strict=True)

    def _one_by_one(
        self, write: Callable[..., Iterable[Record]], kind: ObjectKind, rows: Iterable[tuple[Wanted, Any]]
    ) -> Iterator[tuple[Wanted, Record]]:
        for one, row in rows:
            try:
                yield one, next(iter(write(kind.endpoint, [row])))
            except TruthRefusedError as error:
                self._leave(one, f"refused: {error}")

    def _leave(self, one: Wanted, reason: str) -> None:
        self.found.append(ExportedObject(one.kind, " ".join(one.key), "left", reason))

    def _resolved(self, value: object) -> Any:
        """A value with ids in place of references."""
        if isinstance(value, Ref):
            return self._ids.get(value, PLANNED)
        if isinstance(value, Mapping):
            return {key: self._resolved(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._resolved(one) for one in value]
        return value


def _refs(value: object) -> Iterator[Ref]:
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _refs(one)


def _shown(record: Record, column: str) -> str:
    """A value as people call it: a nested object by its name, with its device."""
    value = record.get(column.removesuffix("_id").removesuffix("_type"), record[column])
    if not isinstance(value, Mapping):
        return str(value or "")
    name = value.get("display") or value.get("name") or value.get("label") or value.get("value") or value.get("id")
    device = value.get("device")
    return f"{device['name']} {name}" if isinstance(device, Mapping) and "name" in device else str(name)


def queries(values: Iterable[object]) -> Iterator[list[object]]:
    """Divide what is asked for into queries whose addresses are short enough."""
    some: list[object] = []
    length = 0
    for value in dict.fromkeys(values):
        length += len(str(value)) + LONGEST_FILTER
        if length > LONGEST_QUERY:
            yield some
            some, length = [], len(str(value)) + LONGEST_FILTER
        some.append(value)
    if some:
        yield some
