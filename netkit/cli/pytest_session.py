"""The fabric of a session of pytest: designed once, looked at once, and all checks that were chosen run once."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.errors import NetkitError, Problem, UsageError
from netkit.judge import Check, CheckContext, catalog
from netkit.judge.run import CheckResult, subjects
from netkit.project.checking import Checking
from netkit.project.judging import judged_of, silencing
from netkit.project.past import Past, Storing, past
from netkit.report.judgement_view import Judged

KEEP = "90d"
LONGEST_S = 86_400


class CheckSession:
    """What the tests of a session ask."""

    def __init__(self, option: Mapping[str, object], *, is_one_of_many: bool) -> None:
        snapshot, results = str(option["netkit_snapshot"]), option["netkit_results"]
        self._storing = Storing.of(str(option["netkit_store"]), str(option["netkit_since"]), KEEP)
        if self._storing.where and is_one_of_many:
            what = "a run that is stored is one run, and several processes would each make one"
            raise UsageError(Problem(what, "leave out -n, or the store"))
        project = open_project(Path(str(option["netkit_fabric"])), str(option["netkit_lab"]))
        warn(project)
        self._checking = Checking.of(
            project,
            limit=str(option["netkit_limit"]),
            window_s=_window_s(float(str(option["netkit_window"]))),
            snapshot=Path(snapshot) if snapshot else None,
            source=str(option["netkit_source"]),
        )
        self._results = tuple(Path(str(file)) for file in results) if isinstance(results, list) else ()
        self._checks: Sequence[Check] = ()
        self._past = Past()
        self._open = ExitStack()
        self._scene: CheckContext | None = None
        self._judged: Judged | None = None
        self._failure: NetkitError | None = None
        self._found: Mapping[tuple[str, str], CheckResult] = {}

    def checks_of(self, file: Path) -> Iterable[Check]:
        """Return the checks in a file."""
        return catalog.of_file(file)

    def devices_of(self, check: Check) -> Iterable[str]:
        """Return the devices a check is about, or `fabric`."""
        return subjects(check, self._checking.devices)

    def choose(self, checks: Iterable[Check]) -> None:
        """Note which checks are to run; what none of them needs is not asked for."""
        self._checks = tuple({check.name: check for check in checks}.values())

    def result(self, check: Check, device: str) -> CheckResult:
        """Return what a check says about a device."""
        if self._judged is None:
            self._judge_once()
        return self._found[check.name, device]

    def _judge_once(self) -> None:
        """Judge; what failed once is not tried for each test."""
        if self._failure is not None:
            raise self._failure
        try:
            self._judge()
        except NetkitError as error:
            self._failure = error
            raise

    def _judge(self) -> None:
        known = {*self._checking.project.checks(), *(check.name for check in self._checks)}
        self._past = self._open.enter_context(past(self._storing, self._checking.project))
        silenced = silencing(self._checking.project, self._past, known)
        scene = self._checking.context(self._checks, self._past, self._results)
        judged = judged_of(scene, self._checks, silenced=silenced)
        self._found = {(one.check, one.device): one for one in judged.judgement.results}
        self._scene, self._judged = scene, judged

    def end(self) -> None:
        """Keep the run, where there is a store."""
        with self._open:
            if self._scene is not None and self._judged is not None:
                self._past.save(self._scene, self._judged, self._checking.project.intent)


def _window_s(given_s: float) -> float:
    if not 0 <= given_s <= LONGEST_S:
        raise UsageError(Problem(f"--netkit-window {given_s:g} is no time", f"give seconds, 0 to {LONGEST_S}"))
    return given_s
