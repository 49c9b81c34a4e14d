"""Which finding follows from which.

A finding follows from another one when its check allows that (`follows`) and the other is at the same place: it has the
same cause, is on its cable, concerns its whole device, or is at one of the places it may come from (`touches`); or when
the other finding declares that it `explains` its cause. One that explains its own cause follows from that cause alone.
A finding that no other explains is a separate cause, even on
the same cable.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.judge.check import LAYERS, Check, Layer, is_meant
from netkit.judge.context import CheckContext
from netkit.judge.finding import Finding, Silenced, Verdict


def cable_at(context: CheckContext, device: str, place: str) -> str:
    """The cable at a place, which may be a port or a priority of one."""
    return context.cable(device, place) or context.cable(device, place.rpartition("/")[0])


def linked(context: CheckContext, checks: Sequence[Check], findings: Sequence[Finding]) -> Sequence[Finding]:
    """Findings in the same order, each with the name of its root cause."""
    bad = [number for number, one in enumerate(findings) if one.verdict > Verdict.SKIPPED]
    if not bad:
        return findings
    links = _Links(context, checks, findings, bad)
    return [links.named(number) for number in range(len(findings))]


class _Links:
    """Links each finding to the one it follows from."""

    def __init__(
        self, context: CheckContext, checks: Sequence[Check], findings: Sequence[Finding], bad: Sequence[int]
    ) -> None:
        self._findings = findings
        self._order = {check.name: (LAYERS.index(check.layer), order) for order, check in enumerate(checks)}
        self._follows = {check.name: tuple(_followed(check, checks)) for check in checks}
        self._declares = {check.name: check.follows is not None for check in checks}
        self._cables = {number: cable_at(context, findings[number].device, findings[number].place) for number in bad}
        self._at: dict[tuple[str, str], list[int]] = {}
        self._explaining: dict[str, list[int]] = {}
        for number in sorted(bad, key=self._rank):
            for key in dict.fromkeys(self._keys(number)):
                self._at.setdefault((findings[number].check, key), []).append(number)
            for cause in findings[number].explains:
                self._explaining.setdefault(cause, []).append(number)
        self._parents: dict[int, int] = {}
        for candidates in (self._explained, self._followed):  # an explicit explanation comes first
            for number in sorted(set(bad) - self._parents.keys(), key=self._rank):
                parent = next((one for one in candidates(number) if self._root(one) != number), None)
                if parent is not None:
                    self._parents[number] = parent
        roots = {number: self._root(number) for number in bad}
        self._roots = roots
        self._has_symptoms = {root for number, root in roots.items() if root != number}
        names: dict[str, set[int]] = {}
        for root in roots.values():
            names.setdefault(cause_name(findings[root]), set()).add(root)
        self._shared = {name for name, owners in names.items() if len(owners) > 1}

    def named(self, number: int) -> Finding:
        """A finding with the cause it belongs to."""
        one = self._findings[number]
        if number not in self._roots:
            return one
        root = self._roots[number]
        head = self._findings[root]
        if root == number and root not in self._has_symptoms and cause_name(head) not in self._shared:
            return one._replace(touches=())
        name = f"{cause_name(head)} ({head.check})" if cause_name(head) in self._shared else cause_name(head)
        return one._replace(cause=name, touches=(), is_symptom=root != number)

    def _rank(self, number: int) -> tuple[int, int, int, int]:
        one = self._findings[number]
        layer, order = self._order.get(one.check, (len(LAYERS), 0))
        return -len(one.explains), layer, -one.verdict, order

    def _ends(self, number: int) -> Iterator[str]:
        """Yield the devices at both ends of a finding's cable, or its device."""
        if self._cables[number]:
            yield from (end.partition(":")[0] for end in self._cables[number].split(" — "))
        elif self._findings[number].device:
            yield self._findings[number].device

    def _keys(self, number: int) -> Iterator[str]:
        """Yield the keys under which a finding is looked up as a cause."""
        one = self._findings[number]
        yield cause_name(one)
        yield self._cables[number] or f"nowhere {number}"
        yield from (f"in {device}" for device in self._ends(number))
        if one.device and not one.place:
            yield f"on {one.device}"

    def _explained(self, number: int) -> Iterator[int]:
        """Yield the findings that declare that they explain this one."""
        yield from (other for other in self._explaining.get(cause_name(self._findings[number]), ()) if other != number)

    def _followed(self, number: int) -> Iterator[int]:
        """Yield what a finding may follow from, the nearest first."""
        one = self._findings[number]
        keys = [cause_name(one)]
        if one.cause not in one.explains:  # else it is a separate cause, whatever else is wrong at its place
            keys += [self._cables[number]]
            if self._declares.get(one.check):
                keys += [f"on {one.device}"] if one.device else []
                keys += [f"in {one.device}"] if one.device and not one.place else []
            keys += [key for place in one.touches for key in (place, f"in {place}")]
        for key in filter(None, keys):
            found = [other for check in self._follows.get(one.check, ()) for other in self._at.get((check, key), ())]
            found = [other for other in found if other != number and not self._is_opposite(one, other)]
            yield from sorted(found, key=self._rank)
        near = self._at.get((one.check, cause_name(one)), [])
        alike = [other for other in near if cause_name(self._findings[other]) == cause_name(one)]
        yield from (other for other in alike[:1] if other != number)

    def _is_opposite(self, one: Finding, other: int) -> bool:
        """Whether two findings are about opposite directions of one cable, which are independent."""
        near, far = cause_name(one).partition(": ")[0], cause_name(self._findings[other]).partition(": ")[0]
        return " → " in near and " → " in far and near.split(" → ") == far.split(" → ")[::-1]

    def _root(self, number: int) -> int:
        while number in self._parents:
            number = self._parents[number]
        return number


def cause_name(one: Finding) -> str:
    """The cause a finding names, else a name for the finding itself."""
    return one.cause or f"{one.check} on {one.device} {one.place}"


def _followed(check: Check, checks: Iterable[Check]) -> Iterator[str]:
    """Yield the checks whose findings a check may follow from; by default all of lower layers."""
    for other in checks:
        if check.follows is None:
            if LAYERS.index(other.layer) < LAYERS.index(check.layer):
                yield other.name
        elif any(is_meant(other.name, name) for name in check.follows):
            yield other.name


MANY = 4
"""The same finding at this many places has one cause."""
SETTINGS: frozenset[Layer] = frozenset({"host", "qos", "reach"})
"""In these layers, two places on one device are enough."""
Layers = Mapping[str, Layer]
"""Check → its layer."""


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """A cause, and what follows from it."""

    head: Finding
    symptoms: tuple[Finding, ...]
    places: int = 1
    """The number of places with the same finding."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.head, *self.symptoms

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of cause and symptoms; silenced ones count only if all are silenced."""
        counted = [one for one in self.findings if one.silenced is None]
        return max(finding.verdict for finding in counted or self.findings)

    @property
    def is_silenced(self) -> bool:
        return all(one.silenced is not None for one in self.findings)


def cause_groups(findings: Iterable[Finding], layers: Layers) -> tuple[CauseGroup, ...]:
    """Findings by cause, in order of repair; silenced causes come last."""
    found = [CauseGroup(*_headed(group, layers)) for group in _by_cause(findings).values()]

    def order(cause: CauseGroup) -> tuple[bool, int, int, int, str, str]:
        head = cause.head
        place = head.device, head.place
        return cause.is_silenced, -cause.verdict, _layer(head, layers), -len(cause.symptoms), *place

    return tuple(sorted(_merged(found, layers), key=order))


def _merged(found: Sequence[CauseGroup], layers: Layers) -> Iterator[CauseGroup]:
    """Yield causes; where many places have the same one, it is reported once."""
    same: dict[tuple[str, str, Verdict, bool, Silenced | None], list[CauseGroup]] = {}
    for cause in found:
        head = cause.head
        key = head.check, head.text, cause.verdict, cause.is_silenced, head.silenced
        same.setdefault(key, []).append(cause)
    for group in same.values():
        if len(group) >= MANY:
            yield _together(group)
            continue
        devices: dict[str, list[CauseGroup]] = {}
        for cause in group:
            is_setting = layers.get(cause.head.check) in SETTINGS and cause.head.place
            devices.setdefault(cause.head.device if is_setting else str(len(devices)), []).append(cause)
        yield from map(_together, devices.values())


def _together(group: Sequence[CauseGroup]) -> CauseGroup:
    first, *others = group
    symptoms = (*first.symptoms, *(one for other in others for one in (other.head, *other.symptoms)))
    return CauseGroup(first.head, symptoms, len(group))


def _layer(finding: Finding, layers: Layers) -> int:
    return LAYERS.index(layers.get(finding.check, LAYERS[-1]))


def heads(findings: Iterable[Finding], layers: Layers) -> Mapping[str, Finding]:
    """Name of each cause → the finding that represents it."""
    return {name: _headed(group, layers)[0] for name, group in _by_cause(findings).items()}


def _by_cause(findings: Iterable[Finding]) -> Mapping[str, list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.verdict > Verdict.SKIPPED:
            groups.setdefault(cause_name(finding), []).append(finding)
    return groups


def _headed(group: Sequence[Finding], layers: Layers) -> tuple[Finding, tuple[Finding, ...]]:
    """The finding that names the cause, and those that follow from it."""
    head, *symptoms = sorted(group, key=lambda one: (one.is_symptom, _layer(one, layers), -one.verdict))
    return head, tuple(symptoms)
