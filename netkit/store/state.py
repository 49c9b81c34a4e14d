"""How each check stands at each place, and since when: what a notifier or a monitoring system asks for. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from netkit.judge import Finding, Verdict
from netkit.judge.run import FABRIC, CheckResult, Judgement
from netkit.judge.silence import REACHED
from netkit.store.record import short

GONE = "it is not part of the fabric any more"
UNCHECKED = "its check is not there any more"


class Key(NamedTuple):
    """Where something stands; the same in every run."""

    check: str
    device: str
    place: str = ""

    @property
    def id(self) -> str:
        """Return it as people and files write it."""
        return f"{self.check}[{self.device}]" + (f" {self.place}" if self.place else "")


@dataclass(frozen=True, slots=True)
class CheckState:
    """How a check stands at a place. There is one for every place that was ever worse than skipped."""

    key: Key
    verdict: Verdict
    since_s: float
    """The run that first had this verdict after another one."""
    seen_s: float
    """The last run that judged it."""
    text: str = ""


States = Mapping[Key, CheckState]
Peers = Mapping[tuple[str, str], str]
"""What each port is cabled to by design: device and port → device."""


def key_of(finding: Finding) -> Key:
    """Return where a finding stands."""
    return Key(short(finding.check), short(finding.device or FABRIC), short(finding.place))


def reached_key(name: str) -> Key:
    """Return where it stands whether a device was reached."""
    return Key(REACHED, short(name))


def after(before: States, judgement: Judgement, names: Iterable[str], taken_s: float) -> States:
    """Return the states that a run adds or changes; what it did not judge stays as it was.

    A place is healthy again only when it was judged and nothing was found there.
    """
    found = {**_bad(judgement), **dict(_missed(judgement))}
    reached = _reached(names, judgement)
    judged = {(one.check, one.device): _Judged.of(one) for one in judgement.results}
    for key in before:
        if key not in found and (verdict := _verdict(key, judged, reached)) is not None:
            found[key] = (verdict, "")
    return {key: _next(before.get(key), key, *told, taken_s) for key, told in found.items()}


@dataclass(frozen=True, slots=True)
class Extent:
    """What there is; how other things stood is over."""

    devices: Collection[str]
    """All devices of the fabric."""
    checks: Collection[str] | None = None
    """All checks; None where only some were asked for."""

    def lacks(self, key: Key) -> str:
        """Return why nobody will ever look there again; empty where somebody may."""
        if key.device != FABRIC and key.device not in self.devices:
            return GONE
        return UNCHECKED if self.checks is not None and key.check not in {REACHED, *self.checks} else ""


def over(before: States, extent: Extent, taken_s: float) -> States:
    """Return the states that were bad at places, or by checks, that are no longer there: nobody else ends them."""
    bad = ((key, one) for key, one in before.items() if one.verdict is not Verdict.PASS)
    return {key: _next(one, key, Verdict.PASS, why, taken_s) for key, one in bad if (why := extent.lacks(key))}


def without_half_seen(states: States, judgement: Judgement, names: Iterable[str], peers: Peers) -> States:
    """Return states without what is well only because nobody looked at the other end of its cable.

    Checks of the fabric compare both ends, and find nothing where one of them was not seen.
    """
    seen = {"", *_reached(names, judgement)}
    by_device = {(one.check, one.device) for one in judgement.results}
    return {
        key: one
        for key, one in states.items()
        if one.verdict is not Verdict.PASS or (key.check, key.device) in by_device or _far(key, peers) in seen
    }


def _reached(names: Iterable[str], judgement: Judgement) -> frozenset[str]:
    return frozenset(names) - {name for name, _ in judgement.unreached}


def _far(key: Key, peers: Peers) -> str:
    """Return the device at the other end of a port, or of one whose priority or lane this is; empty without a cable."""
    return peers.get((key.device, key.place)) or peers.get((key.device, _port(key.place)), "")


def _port(place: str) -> str:
    return place.rpartition("/")[0]


class _Judged(NamedTuple):
    """What a result says of places it has no bad finding for."""

    is_whole: bool
    """Whether anything was judged, and nothing left out."""
    unknown: frozenset[tuple[str, str]]
    """Device and place of what could not be judged; without a place, the device as a whole."""

    @classmethod
    def of(cls, result: CheckResult) -> "_Judged":
        unknown = [one for one in result.findings if one.verdict in {Verdict.SKIPPED, Verdict.ERROR}]
        is_whole = bool(result.examined) and not result.left_out
        return cls(is_whole, frozenset((one.device or FABRIC, one.place) for one in unknown))

    def tells(self, key: Key) -> bool:
        """Whether a place that is not among the findings is well."""
        around = {(key.device, key.place), (key.device, _port(key.place)), (key.device, "")}
        is_known = not around & self.unknown and all(device != FABRIC for device, _ in self.unknown)
        return self.is_whole and is_known


def _bad(judgement: Judgement) -> dict[Key, tuple[Verdict, str]]:
    found: dict[Key, tuple[Verdict, str]] = {}
    for finding in judgement.findings:
        key = key_of(finding)
        if finding.verdict > Verdict.SKIPPED and (key not in found or finding.verdict > found[key][0]):
            found[key] = (finding.verdict, finding.text)
    return found


def _missed(judgement: Judgement) -> Iterator[tuple[Key, tuple[Verdict, str]]]:
    for name, why in judgement.unreached:
        yield reached_key(name), (Verdict.FAIL, why)


def _verdict(key: Key, judged: Mapping[tuple[str, str], _Judged], reached: frozenset[str]) -> Verdict | None:
    """Return how a place stands that nothing bad was found at; None when the run does not report."""
    if key.check == REACHED:
        return Verdict.PASS if key.device in reached else None
    result = judged.get((key.check, key.device)) or judged.get((key.check, FABRIC))
    is_reached = key.device == FABRIC or key.device in reached
    return Verdict.PASS if is_reached and result is not None and result.tells(key) else None


def _next(before: CheckState | None, key: Key, verdict: Verdict, text: str, taken_s: float) -> CheckState:
    if before is not None and before.verdict is verdict:
        return replace(before, seen_s=taken_s, text=text)
    return CheckState(key, verdict, taken_s, taken_s, text)
