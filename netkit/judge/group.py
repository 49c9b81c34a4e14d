"""One cause over many symptoms, and what is to be repaired first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.judge.cause import own
from netkit.judge.check import LAYERS, Layer
from netkit.judge.finding import Finding, Verdict

MANY = 4
"""What is wrong in the same words at so many places has one cause."""
SETTINGS: frozenset[Layer] = frozenset({"host", "qos", "reach"})
"""Of settings and counters, that is so of two places on one device."""
Layers = Mapping[str, Layer]
"""Check → its layer."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A cause, and what follows from it."""

    head: Finding
    symptoms: tuple[Finding, ...]
    places: int = 1
    """At how many places the same is wrong."""

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict among cause and symptoms."""
        return max(finding.verdict for finding in (self.head, *self.symptoms))


def troubles(findings: Iterable[Finding], layers: Layers) -> tuple[Trouble, ...]:
    """Return findings that are worth a person's time by cause, what is to be repaired first before the others."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.verdict > Verdict.SKIPPED:
            groups.setdefault(own(finding), []).append(finding)
    found = [_trouble(group, layers) for group in groups.values()]
    return tuple(sorted(_alike(found, layers), key=lambda trouble: _weight(trouble, layers)))


def _alike(found: Sequence[Trouble], layers: Layers) -> Iterator[Trouble]:
    """Yield troubles; where many places have the same one, its cause is common to them."""
    same: dict[tuple[str, str, Verdict], list[Trouble]] = {}
    for trouble in found:
        same.setdefault((trouble.head.check, trouble.head.text, trouble.verdict), []).append(trouble)
    for group in same.values():
        if len(group) >= MANY:
            yield _together(group)
            continue
        devices: dict[str, list[Trouble]] = {}
        for trouble in group:
            is_setting = layers.get(trouble.head.check) in SETTINGS and trouble.head.place
            devices.setdefault(trouble.head.device if is_setting else str(len(devices)), []).append(trouble)
        yield from map(_together, devices.values())


def _together(group: Sequence[Trouble]) -> Trouble:
    first, *others = group
    symptoms = (*first.symptoms, *(one for other in others for one in (other.head, *other.symptoms)))
    return Trouble(first.head, symptoms, len(group))


def _layer(finding: Finding, layers: Layers) -> int:
    return LAYERS.index(layers.get(finding.check, LAYERS[-1]))


def _trouble(group: Sequence[Finding], layers: Layers) -> Trouble:
    head, *symptoms = sorted(group, key=lambda one: (one.is_symptom, _layer(one, layers), -one.verdict))
    return Trouble(head, tuple(symptoms))


def _weight(trouble: Trouble, layers: Layers) -> tuple[int, int, int, str, str]:
    head = trouble.head
    return -trouble.verdict, _layer(head, layers), -len(trouble.symptoms), head.device, head.place
