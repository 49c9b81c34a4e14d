"""Runs checks, isolated from each other, until a deadline, and counts what was examined."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, islice
from types import TracebackType
from typing import Self

from netkit.design import Host
from netkit.facts import Absent, Observation
from netkit.judge.cause import cable_at, linked
from netkit.judge.check import Check
from netkit.judge.context import CheckContext, Device, DeviceContext
from netkit.judge.delta import CounterState
from netkit.judge.finding import PASSED, Finding, Silenced, Verdict, error, skip, worst


class OverdueError(BaseException):
    """The time is over while a check runs; not an Exception, so that no check catches it."""


class CheckDeadline:
    """The check being judged, and the time that is left; this base class has no limit."""

    running = ""
    """The check that is running; empty between two checks."""
    has_reported = False
    """Whether an interrupted check was reported: those not started after it are then merely skipped."""
    why = ""
    """The text for checks that were not started."""

    @property
    def is_over(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Break off nothing any more."""


FABRIC = "fabric"
MOST_SAME = 500
"""The findings kept of one check on one device; the others are counted."""
MOST_OF_DEVICE, MOST_OF_FABRIC = 1_000_000, 10_000_000
"""More things than a check can have to judge: 8192 hosts of 8 NICs below three tiers have 400,000 ends of cables, and
with each of 8 priorities 3.2 million; a device has 512 ports at most. What yields more never ends."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check on one device, or on the fabric."""

    check: str
    device: str
    """A device, or `fabric`."""
    verdict: Verdict
    examined: int
    """How many things were judged, without skipped ones."""
    findings: tuple[Finding, ...] = ()
    """Those that are not a pass, worst first."""
    left_out: int = 0

    @property
    def id(self) -> str:
        """Its stable unique name."""
        return f"{self.check}[{self.device}]"

    @property
    def open_verdict(self) -> Verdict:
        """The verdict without what is silenced; findings that were left out are not silenced."""
        if not self.silenced:
            return self.verdict
        left_out = [self.findings[-1].verdict] if self.left_out else []
        verdict = worst([*(one.verdict for one in self.findings if one.silenced is None), *left_out])
        return Verdict.PASS if verdict is Verdict.SKIPPED else verdict

    @property
    def silenced(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.silenced is not None)

    def part(self, names: Collection[str]) -> "CheckResult":
        """A result on the fabric as far as it is about some devices, or leaves open what is: never better than it."""
        unknown = {Verdict.SKIPPED, Verdict.ERROR}
        is_here = (one.device in names if one.device else one.verdict in unknown for one in self.findings)
        found = tuple(compress(self.findings, is_here))
        verdict = worst(one.verdict for one in (*found, *(self.findings[-1:] if self.left_out else ())))
        is_judged = self.examined and verdict is Verdict.SKIPPED
        return replace(self, verdict=Verdict.PASS if is_judged else verdict, findings=found)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The results of all checks."""

    results: tuple[CheckResult, ...]
    unreached: tuple[tuple[str, str], ...]
    """Devices that were not or not fully observed, and why."""
    excused: tuple[tuple[str, Silenced], ...] = ()
    """Those of them that are silenced for it."""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of what is not silenced; what was not judged is not a pass."""
        return worst(result.open_verdict for result in self.results)

    @property
    def examined(self) -> int:
        """How many things were judged."""
        return sum(result.examined for result in self.results)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for result in self.results for finding in result.findings)

    @property
    def silenced(self) -> tuple[Finding, ...]:
        return tuple(finding for result in self.results for finding in result.silenced)

    def count(self, verdict: Verdict) -> int:
        """Count the findings with a verdict that are not silenced."""
        return sum(finding.verdict is verdict and finding.silenced is None for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """4: devices were not reached, 1: a check failed or nothing was judged; warnings and silenced findings pass."""
        if len(self.unreached) > len(self.excused):
            return 4
        return int(self.verdict >= Verdict.FAIL or not self.examined)

    def part(self, names: Collection[str]) -> "Judgement":
        """What it says about some devices; of what is about the fabric, the findings on them."""
        results = (one.part(names) if one.device == FABRIC else one for one in self.results)
        return Judgement(
            tuple(one for one in results if one.device in names or one.device == FABRIC),
            tuple(one for one in self.unreached if one[0] in names),
            tuple(one for one in self.excused if one[0] in names),
        )


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What a shard of a fabric found, and what is needed of it to judge the whole."""

    observations: Mapping[str, Observation]
    """Its devices: reduced to what other checks read, or whole where they may have to be judged again."""
    results: tuple[CheckResult, ...] = ()
    """Those of the local checks."""
    still: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Device → its ports with stuck counters, as far as the shard can know."""
    deferred: frozenset[str] = frozenset()
    """Checks of one device that look at others, and so were not run."""


Known = Mapping[str, Mapping[str, CheckResult]]
"""Check → device → a result that was found before."""
NOTHING_KNOWN: Known = {}


def run(context: CheckContext, checks: Sequence[Check], deadline: CheckDeadline | None = None) -> Judgement:
    """Run the checks that its shards have not; those that the deadline leaves no time for report that."""
    with deadline or CheckDeadline() as until:
        known = _known(context)
        results = [result for check in checks for result in results_of(context, check, until, known)]
    found = iter(linked(context, checks, [finding for result in results for finding in result.findings]))
    results = [
        replace(one, findings=tuple(islice(found, len(one.findings)))) if one.findings else one for one in results
    ]
    failures = [(device.name, device.observation.failure) for device in context.devices.values()]
    unreached = [(name, failure) for name, failure in failures if failure]
    return Judgement(tuple(results), tuple(unreached))


def _known(context: CheckContext) -> Known:
    """What shards found, except on devices with stuck counters that no shard could know of."""
    if not context.shards:
        return NOTHING_KNOWN
    still = {name: ports for shard in context.shards for name, ports in shard.still.items()}
    again = {name for name, device in context.devices.items() if device.still != still.get(name, set())}
    results = (one for shard in context.shards for one in shard.results)
    found: dict[str, dict[str, CheckResult]] = {}
    for one in results:
        if one.device not in again or one.verdict is Verdict.ERROR:
            found.setdefault(one.check, {})[one.device] = one
    return found


def subjects(check: Check, devices: Iterable[Device]) -> Iterator[str]:
    """Yield what a check judges: devices of its kind, or the fabric."""
    if check.of_fabric is not None:
        yield FABRIC
        return
    for device in devices:
        if check.on == "device" or (check.on == "host") == isinstance(device, Host):
            yield device.name


def results_of(
    context: CheckContext,
    check: Check,
    deadline: CheckDeadline,
    known: Known = NOTHING_KNOWN,
    given: CheckContext | None = None,
) -> Iterator[CheckResult]:
    """Run one check; `given` is the context it sees, by default the whole one."""
    if check.of_fabric is not None:
        yield _result(context, check, FABRIC, partial(check.of_fabric, context), deadline)
        return
    before = known.get(check.name, {})
    for name in subjects(check, (device.device for device in context.devices.values())):
        found = before.get(name)
        yield result_on(context, check, name, deadline, given) if found is None else found


def result_on(
    context: CheckContext, check: Check, name: str, deadline: CheckDeadline, given: CheckContext | None = None
) -> CheckResult:
    """Run a check of a device on one; `given` is the context it sees, by default the whole one."""
    device = context.devices[name]
    reason = _why_not(check, device)
    if reason or check.of_device is None:
        return _result(context, check, name, partial(tuple, [skip("", reason)]), deadline)
    return _result(context, check, name, partial(check.of_device, given or context, device), deadline)


def _why_not(check: Check, device: DeviceContext) -> str:
    """Why a device cannot be judged; empty if it can."""
    if not device.is_reached:
        return f"not reached: {device.observation.failure}"
    for kind in check.needs:
        fact = getattr(device.facts, kind)
        if isinstance(fact, Absent):
            return f"no {kind.replace('_', ' ')}: {fact.reason}"
    return "only one sample of its counters: give a window" if check.has_window and not device.window_s else ""


def _result(
    context: CheckContext, check: Check, device: str, ask: Callable[[], Iterable[Finding]], deadline: CheckDeadline
) -> CheckResult:
    """Run a check; one that breaks off reports that, and nothing about the device."""
    if deadline.is_over:
        return _not_started(context, check, device, deadline)
    tally, most = _Tally(), MOST_OF_FABRIC if device == FABRIC else MOST_OF_DEVICE
    try:
        deadline.running = f"{check.name}[{device}]"
        for number, finding in enumerate(ask(), 1):
            if number > most:
                raise _EndlessError(f"it has yielded more than {most:,} findings, and never ends")
            if finding is PASSED:  # almost all are
                tally.examined += 1
                continue
            if not isinstance(finding, Finding):
                raise TypeError(f"it yields {type(finding).__name__}, not a Finding")
            tally.keep(finding if finding.verdict is Verdict.PASS else _whole(context, check, device, finding))
        deadline.running = ""
    except (Exception, SystemExit, OverdueError) as broken:  # exit() in a check would end the run with success
        deadline.running = ""
        deadline.has_reported |= isinstance(broken, OverdueError)
        kind = "" if isinstance(broken, OverdueError | _EndlessError) else f"{type(broken).__name__}: "
        why = f"the check failed: {kind}{broken}{_where(check, broken)}"
        tally.keep(_whole(context, check, device, error("", why)))
    return tally.result(check.name, device)


class _Tally:
    """The findings of one check so far; only the worst are kept, however many come."""

    def __init__(self) -> None:
        self.examined = 0
        self._found, self._left_out = list[Finding](), 0

    def keep(self, finding: Finding) -> None:
        self.examined += finding.verdict is not Verdict.SKIPPED
        if finding.verdict is not Verdict.PASS:
            self._found.append(finding)
        if len(self._found) >= 2 * MOST_SAME:
            self._shorten()

    def _shorten(self) -> None:
        self._found.sort(key=lambda finding: -finding.verdict)
        self._left_out += max(0, len(self._found) - MOST_SAME)
        del self._found[MOST_SAME:]

    def result(self, check: str, device: str) -> CheckResult:
        self._shorten()
        verdict = worst(finding.verdict for finding in self._found)
        if self.examined and verdict is Verdict.SKIPPED:
            verdict = Verdict.PASS  # something was judged and passed; what was skipped is counted separately
        return CheckResult(check, device, verdict, self.examined, tuple(self._found), self._left_out)


class _EndlessError(Exception):
    """A check yields more than there can be."""


def _not_started(context: CheckContext, check: Check, device: str, deadline: CheckDeadline) -> CheckResult:
    """Report that there was no time for a check: once as an error, so that the run is not taken as complete."""
    finding = skip("", deadline.why) if deadline.has_reported else error("", deadline.why)
    deadline.has_reported = True
    tally = _Tally()
    tally.keep(_whole(context, check, device, finding))
    return tally.result(check.name, device)


def _where(check: Check, broken: BaseException) -> str:
    """The line of the check's own file where it broke off."""
    code = getattr(check.of_fabric or check.of_device, "__code__", None)
    line, trace = 0, broken.__traceback__
    while trace is not None:
        line = trace.tb_lineno if code and trace.tb_frame.f_code.co_filename == code.co_filename else line
        trace = trace.tb_next
    return f", line {line}" if line else ""


def _proper(finding: Finding) -> Finding:
    """Validate a finding of a user's check; TypeError if it cannot be shown and stored."""
    if not isinstance(finding.verdict, Verdict):
        raise TypeError(f"{finding.verdict!r} is not a verdict")
    for name in ("place", "text", "remedy", "cause", "device"):
        if not isinstance(getattr(finding, name), str):
            raise TypeError(f"the {name} of a finding is {getattr(finding, name)!r}, not a text")
    return finding


def _whole(context: CheckContext, check: Check, device: str, finding: Finding) -> Finding:
    name = _proper(finding).device or ("" if device == FABRIC else device)
    cause = finding.cause or cable_at(context, name, finding.place)
    evidence = (*finding.evidence, *_counted(context, check, name, finding))
    return finding._replace(check=check.name, device=name, cause=cause, evidence=evidence)


def _counted(context: CheckContext, check: Check, name: str, finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield the window and the state of the counters behind a finding, where it does not give them itself."""
    given = dict(finding.evidence)
    if not check.has_window or finding.verdict is Verdict.SKIPPED or "window" in given:
        return
    device = context.devices.get(name)
    window_s = device.window_s if device else max((one.window_s for one in context.devices.values()), default=0.0)
    yield "window", f"{window_s:.1f} s"
    if "state" not in given:
        yield "state", CounterState.DELTA
