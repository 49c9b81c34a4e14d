"""One cause over many symptoms: findings that share a cable, or that another finding explains, belong together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.judge.check import LAYERS, Layer
from netkit.judge.finding import Finding, Verdict

BENEATH: frozenset[Layer] = frozenset({"physical", "link"})
"""What is wrong down there is no symptom of congestion somewhere else, though both show on one cable."""
MANY = 4
"""What is wrong in the same words at so many places has one cause."""
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
    """Return findings that are worth a person's time by cause, the worst first."""
    groups: dict[str, list[Finding]] = {}
    chosen = [finding for finding in findings if finding.verdict > Verdict.SKIPPED]
    roots = _roots(chosen)
    for finding in chosen:
        key = _key(finding)
        is_its_own = layers.get(finding.check) in BENEATH and not finding.explains
        groups.setdefault(key if is_its_own else _root(roots, key), []).append(finding)
    found = [_trouble(group, layers) for group in groups.values()]
    return tuple(sorted(_alike(found), key=_weight))


def _alike(found: Iterable[Trouble]) -> Iterator[Trouble]:
    """Yield troubles; where many places have the same one, its cause is common to them."""
    same: dict[tuple[str, str, Verdict], list[Trouble]] = {}
    for trouble in found:
        same.setdefault((trouble.head.check, trouble.head.text, trouble.verdict), []).append(trouble)
    for group in same.values():
        if len(group) < MANY:
            yield from group
        else:
            first, *others = group
            yield Trouble(first.head, (*first.symptoms, *(one for other in others for one in _all(other))), len(group))


def _all(trouble: Trouble) -> tuple[Finding, ...]:
    return trouble.head, *trouble.symptoms


def _key(finding: Finding) -> str:
    return finding.cause or f"{finding.check} on {finding.device} {finding.place}"


def _roots(findings: Sequence[Finding]) -> dict[str, str]:
    """Return which cause each explained cause belongs to: the first that explains it; others stay causes beside it."""
    roots: dict[str, str] = {}
    for finding in findings:
        for explained in finding.explains:
            mine = _root(roots, _key(finding))
            if explained not in roots and mine != explained:
                roots[explained] = mine
    return roots


def _root(roots: Mapping[str, str], key: str) -> str:
    while key in roots:
        key = roots[key]
    return key


def _trouble(group: Sequence[Finding], layers: Layers) -> Trouble:
    def rank(finding: Finding) -> tuple[bool, int, int]:
        position = LAYERS.index(layers.get(finding.check, LAYERS[-1]))
        return not finding.explains, position, -finding.verdict

    head, *symptoms = sorted(group, key=rank)
    return Trouble(head, tuple(symptoms))


def _weight(trouble: Trouble) -> tuple[int, int, str, str]:
    return -trouble.verdict, -len(trouble.symptoms), trouble.head.device, trouble.head.place
