"""The fabric of a pytest session: designed, read and judged once."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from netkit.errors import NetkitError, Problem, UsageError
from netkit.judge import Check, CheckContext, catalog
from netkit.judge.run import CheckResult, subjects
from netkit.project.checking import Checking
from netkit.project.judging import judged_of, silencing
from netkit.project.past import Past, Storing, past
from netkit.project.project import Project
from netkit.report.annotation import annotate
from netkit.report.judgement_view import Judged

KEEP = "90d"
LONGEST_S = 86_400


class CheckSession:
    """What the tests of a session share."""

    def __init__(self, option: Mapping[str, object], *, is_one_of_many: bool) -> None:
        snapshot, results = str(option["netkit_snapshot"]), option["netkit_results"]
        self._storing = Storing.of(str(option["netkit_store"]), str(option["netkit_since"]), KEEP)
        if self._storing.where and is_one_of_many:
            what = "a session is stored as one run, and several processes would each store one"
            raise UsageError(Problem(what, "drop -n, or the store"))
        window_s = float(str(option["netkit_window"]))
        if not 0 <= window_s <= LONGEST_S:
            what = f"--netkit-window {window_s:g} is out of range"
            raise UsageError(Problem(what, f"give seconds, 0 to {LONGEST_S}"))
        project = Project.open(Path(str(option["netkit_fabric"])), lab=str(option["netkit_lab"]))
        found = project.notes("warning")
        sys.stderr.writelines(f"warning: {one}\n" for one in found)
        annotate(found)
        self._checking = Checking.of(
            project,
            limit=str(option["netkit_limit"]),
            window_s=window_s,
            snapshot=Path(snapshot) if snapshot else None,
            source=str(option["netkit_source"]),
        )
        self._results = tuple(Path(str(file)) for file in results) if isinstance(results, list) else ()
        self._checks: Sequence[Check] = ()
        self._past = Past()
        self._open = ExitStack()
        self._context: CheckContext | None = None
        self._judged: Judged | None = None
        self._failure: NetkitError | None = None
        self._found: Mapping[tuple[str, str], CheckResult] = {}

    def checks_of(self, file: Path) -> Iterable[Check]:
        return catalog.of_file(file)

    def devices_of(self, check: Check) -> Iterable[str]:
        """The devices a check applies to, or `fabric`."""
        return subjects(check, self._checking.devices)

    def choose(self, checks: Iterable[Check]) -> None:
        """Record which checks will run: only the facts they need are read."""
        self._checks = tuple({check.name: check for check in checks}.values())

    def result(self, check: Check, device: str) -> CheckResult:
        if self._failure is not None:  # do not try again for each test
            raise self._failure
        if self._judged is None:
            try:
                self._judge()
            except NetkitError as error:
                self._failure = error
                raise
        return self._found[check.name, device]

    def _judge(self) -> None:
        known = {*self._checking.project.checks(), *(check.name for check in self._checks)}
        self._past = self._open.enter_context(past(self._storing, self._checking.project))
        silenced = silencing(self._checking.project, self._past, known)
        context = self._checking.context(self._checks, self._past, self._results)
        judged = judged_of(context, self._checks, silenced=silenced)
        self._found = {(one.check, one.device): one for one in judged.judgement.results}
        self._context, self._judged = context, judged

    def end(self) -> None:
        """Save the run if there is a store."""
        with self._open:
            if self._context is not None and self._judged is not None:
                self._past.save(self._context, self._judged, self._checking.project.intent)
