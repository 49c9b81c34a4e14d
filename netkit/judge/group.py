"""One cause over many symptoms, and what is to be repaired first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.judge.cause import own
from netkit.judge.check import LAYERS, Layer
from netkit.judge.finding import Finding, Silenced, Verdict

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


def troubles(findings: Iterable[Finding], layers: Layers) -> tuple[CauseGroup, ...]:
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
