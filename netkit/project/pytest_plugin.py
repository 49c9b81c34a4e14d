"""The checks under pytest: `pytest checks/ --netkit-fabric DIR [--netkit-snapshot FILE | --netkit-lab [NAME]]`.

Each check on each device is a test, `checks/bgp.py::sessions[leaf01]`, with the verdict of `netkit check`: a failure
fails, a broken check is an error, a silenced or unjudged one is skipped, and a warning passes with a warning. Exit
codes are pytest's own.
"""

import warnings
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.junitxml import xml_key  # as pytest's own record_xml_attribute, which does not work with -n

from netkit.errors import NetkitError

if TYPE_CHECKING:
    from netkit.judge import Check
    from netkit.judge.run import CheckResult
    from netkit.project.pytest_session import CheckSession


CHECKS = "checks"
CASE = "netkit_case"
"""The attribute of a report that holds check and device."""


class FailedCheck(Exception):  # noqa: N818 (not an error: the check worked)
    """A check found something wrong."""


class BrokenCheckError(Exception):
    """A check raised an exception."""


class CheckWarning(UserWarning):
    """A check found something to warn about."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that select a fabric."""
    group = parser.getgroup("netkit")
    group.addoption("--netkit-fabric", default="", help="folder with fabric.yaml: run netkit's checks on its devices")
    group.addoption("--netkit-snapshot", default="", help="judge a file of netkit snapshot; no device is read")
    group.addoption("--netkit-lab", nargs="?", const=".", default="", help="read the lab of this fabric, or NAME")
    group.addoption("--netkit-limit", default="", help="devices: names, globs, role=spine, rail=3")
    group.addoption("--netkit-window", type=float, default=10.0, help="seconds between two samples of the counters")
    group.addoption("--netkit-source", default="", help="where facts of switches come from: native, snmp or napalm")
    group.addoption("--netkit-results", action="append", default=[], metavar="FILE", help="results of acceptance runs")
    group.addoption(
        "--netkit-store",
        nargs="?",
        const=".",
        default="",
        help="store the run: a file, a URL, or the default",
    )
    group.addoption("--netkit-since", default="", metavar="last", help="judge counters since the last stored run")


def pytest_configure(config: pytest.Config) -> None:
    """Open the fabric if one is given, so that its problems are reported once."""
    if not config.getoption("--netkit-fabric"):
        return
    config.pluginmanager.register(Naming(config))
    from netkit.project import pytest_session  # noqa: PLC0415 (pytest loads this plugin in projects that have no fabric)

    is_one_of_many = bool(getattr(config.option, "numprocesses", None)) or hasattr(config, "workerinput")
    try:
        config.stash[BENCH] = pytest_session.CheckSession(vars(config.option), is_one_of_many=is_one_of_many)
    except NetkitError as error:
        raise pytest.UsageError(*map(str, error.problems)) from None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Record which checks are left to run."""
    if BENCH in session.config.stash:
        session.config.stash[BENCH].choose(item.check for item in session.items if isinstance(item, CheckItem))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Save the run."""
    if BENCH not in session.config.stash:
        return
    try:
        session.config.stash[BENCH].end()
    except NetkitError as error:
        pytest.exit("\n".join(f"the run is not saved: {problem}" for problem in error.problems), returncode=3)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect files that hold checks if a fabric is given."""
    is_check = file_path.suffix == ".py" and not file_path.name.startswith(("_", "test_", "conftest"))
    if not is_check or not parent.config.getoption("--netkit-fabric"):
        return None
    text = file_path.read_text(encoding="utf-8", errors="replace")
    if "netkit.judge" not in text and not (file_path.parent.name == CHECKS and "netkit" in text):
        return None
    return CheckFile.from_parent(parent, path=file_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach check and device to a report, which may cross processes."""
    report = yield
    if isinstance(item, CheckItem):
        setattr(report, CASE, [item.check.name, item.device])
    return report


class Naming:
    """Names cases in JUnit as `netkit check --format junit` does, so that both give the same case."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        xml, case = self._config.stash.get(xml_key, None), getattr(report, CASE, None)
        if xml is None or case is None:
            return
        named, (check, device) = xml.node_reporter(report), case
        named.add_attribute("classname", f"{xml.prefix}.{check}" if xml.prefix else check)
        named.add_attribute("name", device)


class CheckFile(pytest.File):
    """A file of checks."""

    def collect(self) -> Iterable["CheckItem"]:
        """Yield a test for each check on each of its devices."""
        bench = self.config.stash[BENCH]
        for check in bench.checks_of(self.path):
            for device in bench.devices_of(check):
                short = check.name.partition(".")[2].replace("-", "_")
                yield CheckItem.from_parent(self, name=f"{short}[{device}]", check=check, device=device)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The problems of the file as lines."""
        del style
        if isinstance(excinfo.value, NetkitError):
            return "\n".join(map(str, excinfo.value.problems))
        return str(super().repr_failure(excinfo))


class CheckItem(pytest.Item):
    """One check on one device."""

    def __init__(self, *, check: "Check", device: str, **more: Any) -> None:
        super().__init__(**more)
        self.check, self.device = check, device
        self.result: CheckResult

    def setup(self) -> None:
        """Judge; an exception here is an error to pytest, not a failure."""
        from netkit.judge import Verdict  # noqa: PLC0415 (pytest loads this plugin in projects that have no fabric)

        self.result = self.config.stash[BENCH].result(self.check, self.device)
        if self.result.verdict is Verdict.ERROR:
            raise BrokenCheckError(_text(self.result))

    def runtest(self) -> None:
        from netkit.judge import Verdict  # noqa: PLC0415 (pytest loads this plugin in projects that have no fabric)

        result, texts = self.result, _text(self.result)
        if result.open_verdict is Verdict.FAIL:
            raise FailedCheck(texts)
        if result.open_verdict is Verdict.WARN:
            warnings.warn(CheckWarning(texts), stacklevel=1)
        elif result.silenced or result.verdict is Verdict.SKIPPED:
            pytest.skip(texts or "nothing was judged")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The findings, then what they mean."""
        if isinstance(excinfo.value, FailedCheck | BrokenCheckError | NetkitError):
            return f"{excinfo.value}\n\n{self.check.text}"
        return str(super().repr_failure(excinfo, style))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.check.name}[{self.device}]"


def _text(result: "CheckResult") -> str:
    from netkit.report.judgement_view import silence_text  # noqa: PLC0415 (pytest loads this plugin in projects that have no fabric)

    lines = []
    for finding in result.findings:
        place = ":".join(part for part in (finding.device, finding.place) if part)
        remedy = f"; {finding.remedy}" if finding.remedy else ""
        mark = f" ({silence_text(finding.silenced)})" if finding.silenced is not None else ""
        lines.append(f"{finding.verdict.word}: {place}: {finding.text}{remedy}{mark}")
    return "\n".join(lines)


BENCH: "pytest.StashKey[CheckSession]" = pytest.StashKey()
