"""Which finding follows from which: what a check may be a symptom of, at the place where the other thing is wrong.

A finding follows from another one when its check says that it may (`follows`), and the other is at the same place: in
what it names as its cause, on its cable, of its whole device, or at one of the places it says it may come from
(`touches`); or when the other names its cause as one that it `explains`. Whatever no other finding explains is a cause
of its own, though it be on the same cable.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.judge.check import LAYERS, Check, Layer, is_meant
from netkit.judge.context import CheckContext
from netkit.judge.finding import Finding, Silenced, Verdict


def cable_at(context: CheckContext, device: str, place: str) -> str:
    """Return the cable at a place, be it a port or a priority of one."""
    return context.cable(device, place) or context.cable(device, place.rpartition("/")[0])


def linked(context: CheckContext, checks: Sequence[Check], findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return findings in the same order, each with the cause that those of one cause share."""
    bad = [number for number, one in enumerate(findings) if one.verdict > Verdict.SKIPPED]
    if not bad:
        return findings
    links = _Links(context, checks, findings, bad)
    return [links.named(number) for number in range(len(findings))]


class _Links:
    """From each finding to what it follows from."""

    def __init__(
        self, context: CheckContext, checks: Sequence[Check], findings: Sequence[Finding], bad: Sequence[int]
    ) -> None:
        self._context, self._findings = context, findings
        self._order = {check.name: (LAYERS.index(check.layer), order) for order, check in enumerate(checks)}
        self._follows = {check.name: tuple(_followed(check, checks)) for check in checks}
        self._says = {check.name: check.follows is not None for check in checks}
        self._cables = {number: self._cable(findings[number]) for number in bad}
        self._at: dict[tuple[str, str], list[int]] = {}
        self._explaining: dict[str, list[int]] = {}
        for number in sorted(bad, key=self._rank):
            for key in dict.fromkeys(self._keys(number)):
                self._at.setdefault((findings[number].check, key), []).append(number)
            for cause in findings[number].explains:
                self._explaining.setdefault(cause, []).append(number)
        self._parents: dict[int, int] = {}
        for candidates in (self._explained, self._followed):  # what one finding says of another goes before the rest
            for number in sorted(set(bad) - self._parents.keys(), key=self._rank):
                parent = next((one for one in candidates(number) if self._root(one) != number), None)
                if parent is not None:
                    self._parents[number] = parent
        roots = {number: self._root(number) for number in bad}
        self._roots = roots
        self._has_symptoms = {root for number, root in roots.items() if root != number}
        names: dict[str, set[int]] = {}
        for root in roots.values():
            names.setdefault(own(findings[root]), set()).add(root)
        self._shared = {name for name, owners in names.items() if len(owners) > 1}

    def named(self, number: int) -> Finding:
        """Return a finding with the cause it belongs to."""
        one = self._findings[number]
        if number not in self._roots:
            return one
        root = self._roots[number]
        head = self._findings[root]
        if root == number and root not in self._has_symptoms and own(head) not in self._shared:
            return one._replace(touches=())
        name = f"{own(head)} ({head.check})" if own(head) in self._shared else own(head)
        return one._replace(cause=name, touches=(), is_symptom=root != number)

    def _rank(self, number: int) -> tuple[int, int, int, int]:
        one = self._findings[number]
        layer, order = self._order.get(one.check, (len(LAYERS), 0))
        return -len(one.explains), layer, -one.verdict, order

    def _cable(self, one: Finding) -> str:
        return cable_at(self._context, one.device, one.place)

    def _ends(self, number: int) -> Iterator[str]:
        """Yield the devices at both ends of the cable a finding is at, or its device."""
        if self._cables[number]:
            yield from (end.partition(":")[0] for end in self._cables[number].split(" — "))
        elif self._findings[number].device:
            yield self._findings[number].device

    def _keys(self, number: int) -> Iterator[str]:
        """Yield under which keys a finding is found as a cause."""
        one = self._findings[number]
        yield own(one)
        yield self._cables[number] or f"nowhere {number}"
        yield from (f"in {device}" for device in self._ends(number))
        if one.device and not one.place:
            yield f"on {one.device}"

    def _explained(self, number: int) -> Iterator[int]:
        """Yield the findings that say of themselves that they explain this one."""
        yield from (other for other in self._explaining.get(own(self._findings[number]), ()) if other != number)

    def _followed(self, number: int) -> Iterator[int]:
        """Yield what a finding may follow from, the nearest first."""
        one = self._findings[number]
        keys = [own(one), self._cables[number]]
        if self._says.get(one.check):
            keys += [f"on {one.device}"] if one.device else []
            keys += [f"in {one.device}"] if one.device and not one.place else []
        keys += [key for place in one.touches for key in (place, f"in {place}")]
        for key in filter(None, keys):
            found = [other for check in self._follows.get(one.check, ()) for other in self._at.get((check, key), ())]
            found = [other for other in found if other != number and not self._is_other_way(one, other)]
            yield from sorted(found, key=self._rank)
        alike = self._at.get((one.check, own(one)), [number])
        yield from (other for other in alike[:1] if other != number)

    def _is_other_way(self, one: Finding, other: int) -> bool:
        """Whether two findings are about the two directions of one cable, which have nothing to do with each other."""
        ways = own(one).partition(": ")[0], own(self._findings[other]).partition(": ")[0]
        return all(" → " in way for way in ways) and ways[0] == " → ".join(reversed(ways[1].split(" → ")))

    def _root(self, number: int) -> int:
        while number in self._parents:
            number = self._parents[number]
        return number


def own(one: Finding) -> str:
    """Return the name of what a finding is about."""
    return one.cause or f"{one.check} on {one.device} {one.place}"


def _followed(check: Check, checks: Iterable[Check]) -> Iterator[str]:
    """Yield the checks whose findings a check may follow from; all of lower layers when it does not say."""
    for other in checks:
        if check.follows is None:
            if LAYERS.index(other.layer) < LAYERS.index(check.layer):
                yield other.name
        elif any(is_meant(other.name, name) for name in check.follows):
            yield other.name


MANY = 4
"""What is wrong in the same words at so many places has one cause."""
SETTINGS: frozenset[Layer] = frozenset({"host", "qos", "reach"})
"""Of settings and counters, that is so of two places on one device."""
Layers = Mapping[str, Layer]
"""Check → its layer."""


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """A cause, and what follows from it."""

    head: Finding
    symptoms: tuple[Finding, ...]
    places: int = 1
    """At how many places the same is wrong."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the cause and its symptoms."""
        return self.head, *self.symptoms

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict among cause and symptoms; what is silenced counts when all of it is."""
        counted = [one for one in self.findings if one.silenced is None]
        return max(finding.verdict for finding in counted or self.findings)

    @property
    def is_silenced(self) -> bool:
        """Whether nothing of it counts."""
        return all(one.silenced is not None for one in self.findings)


def cause_groups(findings: Iterable[Finding], layers: Layers) -> tuple[CauseGroup, ...]:
    """Return findings by cause, what is to be repaired first before the others; what is silenced comes last."""
    found = [CauseGroup(*_headed(group, layers)) for group in _by_cause(findings).values()]
    return tuple(sorted(_alike(found, layers), key=lambda trouble: _weight(trouble, layers)))


def _alike(found: Sequence[CauseGroup], layers: Layers) -> Iterator[CauseGroup]:
    """Yield troubles; where many places have the same one, its cause is common to them."""
    same: dict[tuple[str, str, Verdict, bool, Silenced | None], list[CauseGroup]] = {}
    for trouble in found:
        head = trouble.head
        key = head.check, head.text, trouble.verdict, trouble.is_silenced, head.silenced
        same.setdefault(key, []).append(trouble)
    for group in same.values():
        if len(group) >= MANY:
            yield _together(group)
            continue
        devices: dict[str, list[CauseGroup]] = {}
        for trouble in group:
            is_setting = layers.get(trouble.head.check) in SETTINGS and trouble.head.place
            devices.setdefault(trouble.head.device if is_setting else str(len(devices)), []).append(trouble)
        yield from map(_together, devices.values())


def _together(group: Sequence[CauseGroup]) -> CauseGroup:
    first, *others = group
    symptoms = (*first.symptoms, *(one for other in others for one in (other.head, *other.symptoms)))
    return CauseGroup(first.head, symptoms, len(group))


def _layer(finding: Finding, layers: Layers) -> int:
    return LAYERS.index(layers.get(finding.check, LAYERS[-1]))


def heads(findings: Iterable[Finding], layers: Layers) -> Mapping[str, Finding]:
    """Return by the name of each cause the finding that stands for it."""
    return {name: _headed(group, layers)[0] for name, group in _by_cause(findings).items()}


def _by_cause(findings: Iterable[Finding]) -> Mapping[str, list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.verdict > Verdict.SKIPPED:
            groups.setdefault(own(finding), []).append(finding)
    return groups


def _headed(group: Sequence[Finding], layers: Layers) -> tuple[Finding, tuple[Finding, ...]]:
    """Return the finding that names the cause, and those that follow from it."""
    head, *symptoms = sorted(group, key=lambda one: (one.is_symptom, _layer(one, layers), -one.verdict))
    return head, tuple(symptoms)


def _weight(trouble: CauseGroup, layers: Layers) -> tuple[bool, int, int, int, str, str]:
    head = trouble.head
    return trouble.is_silenced, -trouble.verdict, _layer(head, layers), -len(trouble.symptoms), head.device, head.place
