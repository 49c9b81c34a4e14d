"""The checks under pytest: `pytest checks/ --netkit-fabric DIR [--netkit-snapshot FILE | --netkit-lab [NAME]]`.

Each check on each device is a test, `checks/bgp.py::sessions[leaf01]`, with the verdict of `netkit check`: a failure
fails, a broken check is an error, what could not be judged or is silenced is skipped, and a warning passes with a
warning. Exit codes are pytest's own.
"""

import warnings
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.junitxml import xml_key  # what pytest's own record_xml_attribute uses; reports of -n come without it

from netkit.errors import NetkitError

if TYPE_CHECKING:
    from netkit.cli.pytest_session import CheckSession
    from netkit.judge import Check
    from netkit.judge.run import CheckResult


CHECKS = "checks"
CASE = "netkit_case"
"""What a report keeps: check and device."""


class FailedCheck(Exception):  # noqa: N818 (it is no error: the check did what it should)
    """A check found that something is wrong."""


class BrokenCheckError(Exception):
    """A check broke off."""


class CheckWarning(UserWarning):
    """A check warns."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose a fabric."""
    group = parser.getgroup("netkit")
    group.addoption("--netkit-fabric", default="", help="folder with fabric.yaml: run netkit's checks on its devices")
    group.addoption("--netkit-snapshot", default="", help="judge a file of netkit snapshot; no device is asked")
    group.addoption("--netkit-lab", nargs="?", const=".", default="", help="look at the lab of this fabric, or at NAME")
    group.addoption("--netkit-limit", default="", help="devices: names, globs, role=spine, rail=3")
    group.addoption("--netkit-window", type=float, default=10.0, help="seconds between two samples of the counters")
    group.addoption("--netkit-source", default="", help="native, snmp or napalm: what switches are looked at through")
    group.addoption("--netkit-results", action="append", default=[], metavar="FILE", help="results of acceptance runs")
    group.addoption(
        "--netkit-store", nargs="?", const=".", default="", help="keep the run in a store: a file, a URL, the usual"
    )
    group.addoption("--netkit-since", default="", metavar="last", help="judge counters since the last stored run")


def pytest_configure(config: pytest.Config) -> None:
    """Open the fabric, when one is named: what is wrong with it is said once."""
    if not config.getoption("--netkit-fabric"):
        return
    config.pluginmanager.register(Naming(config))
    from netkit.cli import pytest_session  # noqa: PLC0415 (pytest loads this plugin in projects that have no fabric)

    is_one_of_many = bool(getattr(config.option, "numprocesses", None)) or hasattr(config, "workerinput")
    try:
        config.stash[BENCH] = pytest_session.CheckSession(vars(config.option), is_one_of_many=is_one_of_many)
    except NetkitError as error:
        raise pytest.UsageError(*map(str, error.problems)) from None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which checks are left to run."""
    if BENCH in session.config.stash:
        session.config.stash[BENCH].choose(item.check for item in session.items if isinstance(item, CheckItem))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the run."""
    if BENCH not in session.config.stash:
        return
    try:
        session.config.stash[BENCH].end()
    except NetkitError as error:
        pytest.exit("\n".join(f"the run is not kept: {problem}" for problem in error.problems), returncode=3)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the files that hold checks, when a fabric is named."""
    is_check = file_path.suffix == ".py" and not file_path.name.startswith(("_", "test_", "conftest"))
    if not is_check or not parent.config.getoption("--netkit-fabric"):
        return None
    text = file_path.read_text(encoding="utf-8", errors="replace")
    if "netkit.judge" not in text and not (file_path.parent.name == CHECKS and "netkit" in text):
        return None
    return CheckFile.from_parent(parent, path=file_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note in a report which check it is of, also where it goes from one process to another."""
    report = yield
    if isinstance(item, CheckItem):
        setattr(report, CASE, [item.check.name, item.device])
    return report


class Naming:
    """Names cases in JUnit as `netkit check --format junit` does: who reads both sees one case."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Name a case before pytest writes it."""
        xml, case = self._config.stash.get(xml_key, None), getattr(report, CASE, None)
        if xml is None or case is None:
            return
        named, (check, device) = xml.node_reporter(report), case
        named.add_attribute("classname", f"{xml.prefix}.{check}" if xml.prefix else check)
        named.add_attribute("name", device)


class CheckFile(pytest.File):
    """A file of checks."""

    def collect(self) -> Iterable["CheckItem"]:
        """Yield a test for each check on each device it is about."""
        bench = self.config.stash[BENCH]
        for check in bench.checks_of(self.path):
            for device in bench.devices_of(check):
                short = check.name.partition(".")[2].replace("-", "_")
                yield CheckItem.from_parent(self, name=f"{short}[{device}]", check=check, device=device)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """Return what is wrong with the file, in a line."""
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
        """Judge; to pytest what breaks off here is an error, and no failure."""
        from netkit.judge import Verdict  # noqa: PLC0415 (pytest loads this plugin in projects that have no fabric)

        self.result = self.config.stash[BENCH].result(self.check, self.device)
        if self.result.verdict is Verdict.ERROR:
            raise BrokenCheckError(_text(self.result))

    def runtest(self) -> None:
        """Tell the verdict."""
        from netkit.judge import Verdict  # noqa: PLC0415 (pytest loads this plugin in projects that have no fabric)

        result, texts = self.result, _text(self.result)
        if result.open_verdict is Verdict.FAIL:
            raise FailedCheck(texts)
        if result.open_verdict is Verdict.WARN:
            warnings.warn(CheckWarning(texts), stacklevel=1)
        elif result.silenced or result.verdict is Verdict.SKIPPED:
            pytest.skip(texts or "nothing was judged")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """Return what a person wants to read: findings, then what they mean."""
        if isinstance(excinfo.value, FailedCheck | BrokenCheckError | NetkitError):
            return f"{excinfo.value}\n\n{self.check.text}"
        return str(super().repr_failure(excinfo, style))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the check is."""
        return self.path, None, f"{self.check.name}[{self.device}]"


def _text(result: "CheckResult") -> str:
    return "\n".join(_line(finding) for finding in result.findings)


def _line(finding: Any) -> str:
    from netkit.report.judgement_view import silence_text  # noqa: PLC0415 (pytest loads this plugin in projects that have no fabric)

    place = ":".join(part for part in (finding.device, finding.place) if part)
    remedy = f"; {finding.remedy}" if finding.remedy else ""
    mark = f" ({silence_text(finding.silenced)})" if finding.silenced is not None else ""
    return f"{finding.verdict.word}: {place}: {finding.text}{remedy}{mark}"


BENCH: "pytest.StashKey[CheckSession]" = pytest.StashKey()
