"""The checks under pytest: `pytest checks/ --fabric DIR [--snapshot FILE | --lab [NAME]]`.

Each check on each device is a test, `checks/bgp.py::sessions[leaf01]`, with the verdict of `netkit check`: a failure
fails, a broken check is an error, what could not be judged is skipped, and a warning passes with a warning. Exit codes
are pytest's own.
"""

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from netkit.errors import NetkitError

if TYPE_CHECKING:
    from netkit.judge import Check, Scene
    from netkit.judge.run import Result


class FailedCheck(Exception):  # noqa: N818 (it is no error: the check did what it should)
    """A check found that something is wrong."""


class BrokenCheckError(Exception):
    """A check broke off."""


class CheckWarning(UserWarning):
    """A check warns."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose a fabric."""
    group = parser.getgroup("netkit")
    group.addoption("--fabric", default="", help="folder with fabric.yaml: run netkit's checks on its devices")
    group.addoption("--snapshot", default="", help="judge a file of netkit snapshot; no device is asked")
    group.addoption("--lab", nargs="?", const=".", default="", help="look at the lab of this fabric, or at NAME")
    group.addoption("--limit", default="", help="devices: names, globs, role=spine, rail=3")
    group.addoption("--window", type=float, default=10.0, help="seconds between two samples of the counters")


def pytest_configure(config: pytest.Config) -> None:
    """Open the fabric, when one is named: what is wrong with it is said once."""
    if config.getoption("--fabric"):
        try:
            config.stash[BENCH] = Bench(config)
        except NetkitError as error:
            raise pytest.UsageError(*map(str, error.problems)) from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the files that hold checks, when a fabric is named."""
    is_check = file_path.suffix == ".py" and not file_path.name.startswith(("_", "test_", "conftest"))
    if not is_check or not parent.config.getoption("--fabric"):
        return None
    if "netkit.judge" not in file_path.read_text(encoding="utf-8", errors="replace"):
        return None
    return CheckFile.from_parent(parent, path=file_path)


class CheckFile(pytest.File):
    """A file of checks."""

    def collect(self) -> Iterable["CheckItem"]:
        """Yield a test for each check on each device it is about."""
        bench = self.config.stash[BENCH]
        for check in bench.checks_of(self.path):
            for device in bench.devices_of(check):
                short = check.name.partition(".")[2].replace("-", "_")
                yield CheckItem.from_parent(self, name=f"{short}[{device}]", check=check, device=device)


class CheckItem(pytest.Item):
    """One check on one device."""

    def __init__(self, *, check: "Check", device: str, **more: Any) -> None:
        super().__init__(**more)
        self.check, self.device = check, device

    def runtest(self) -> None:
        """Judge."""
        from netkit.judge import Verdict  # noqa: PLC0415 (pytest loads this plugin in projects that have no fabric)

        result = self.config.stash[BENCH].result(self.check, self.device)
        texts = "\n".join(_line(finding) for finding in result.findings)
        if result.verdict is Verdict.ERROR:
            raise BrokenCheckError(texts)
        if result.verdict is Verdict.FAIL:
            raise FailedCheck(texts)
        if result.verdict is Verdict.SKIPPED:
            pytest.skip(texts or "nothing was judged")
        if result.verdict is Verdict.WARN:
            warnings.warn(CheckWarning(texts), stacklevel=1)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """Return what a person wants to read: findings, then what they mean."""
        if isinstance(excinfo.value, FailedCheck | BrokenCheckError | NetkitError):
            return f"{excinfo.value}\n\n{self.check.text}"
        return str(super().repr_failure(excinfo, style))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the check is."""
        return self.path, None, f"{self.check.name}[{self.device}]"


def _line(finding: Any) -> str:
    place = ":".join(part for part in (finding.device, finding.place) if part)
    remedy = f"; {finding.remedy}" if finding.remedy else ""
    return f"{finding.verdict.word}: {place}: {finding.text}{remedy}"


class Bench:
    """The fabric of a test session: designed once, looked at once, and each check run once."""

    def __init__(self, config: pytest.Config) -> None:
        from netkit.cli.checking import Checking  # noqa: PLC0415 (see above)

        option = config.getoption
        self._checking = Checking.of(
            Path(option("--fabric")),
            limit=option("--limit"),
            lab=option("--lab"),
            window_s=option("--window"),
            snapshot=Path(option("--snapshot")) if option("--snapshot") else None,
        )
        self._scene: Scene | None = None
        self._results: dict[str, Mapping[str, Result]] = {}

    def checks_of(self, file: Path) -> Iterable["Check"]:
        """Return the checks in a file."""
        from netkit.judge import catalog  # noqa: PLC0415 (see above)

        return catalog.of_file(file)

    def devices_of(self, check: "Check") -> Iterable[str]:
        """Return the devices a check is about, or `fabric`."""
        from netkit.judge.run import subjects  # noqa: PLC0415 (see above)

        return subjects(check, self._checking.devices)

    def result(self, check: "Check", device: str) -> "Result":
        """Return what a check says about a device."""
        from netkit.judge.run import run  # noqa: PLC0415 (see above)

        if self._scene is None:
            self._scene = self._checking.scene()
        if check.name not in self._results:
            self._results[check.name] = {one.device: one for one in run(self._scene, [check]).results}
        return self._results[check.name][device]


BENCH = pytest.StashKey[Bench]()
