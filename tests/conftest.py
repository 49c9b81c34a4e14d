"""Shared fixtures: golden files; lanes; and the order of the files."""

import difflib
import gc
import os
import re
from collections import Counter
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests import lanes

# Their assertions are shared by several files, and print values as those of a test do.
pytest.register_assert_rewrite("tests.checks.breaking", "tests.facts.written")
# Machines are shared: how long an example takes is no property of netkit.
# A passing run stays reproducible: new examples are drawn with --hypothesis-profile=random only.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
GOLDEN = Path(__file__).parent / "golden"
UPDATE = "NETKIT_UPDATE_GOLDEN"

Golden = Callable[[str, str], None]


@pytest.fixture
def golden() -> Golden:
    """Compare text with a golden file; with NETKIT_UPDATE_GOLDEN=1 write it instead."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if os.environ.get(UPDATE):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            return
        if not file.exists():
            pytest.fail(f"no golden file {name}; run with {UPDATE}=1 and read what it wrote")
        wanted = file.read_text(encoding="utf-8")
        if text != wanted:
            lines = difflib.unified_diff(wanted.splitlines(), text.splitlines(), "golden", "rendered", lineterm="")
            pytest.fail(f"{name} differs:\n" + "\n".join(lines))

    return compare


LIVE = {
    "needs_chromium",
    "needs_frr",
    "needs_kubectl",
    "needs_lab",
    "needs_namespaces",
    "needs_rabbitmq",
    "needs_root",
    "needs_slurmctld",
    "needs_snmpd",
}
"""Marks of files that start daemons, a lab or a browser."""
SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").splitlines()[1:])
IMPORTS_LIVE = re.compile(rf"^from tests[\w.]* import (?:\([^)]*|.*)\b(?:{'|'.join(sorted(LIVE))})\b", re.MULTILINE)

DAEMON = "daemon"
"""The mark of other tests that start one: netkit serve, PostgreSQL."""
WHOLE = "whole"
"""The lane, and the mark of further platforms, faults and examples of what the default lane runs once."""
LEFT_OUT = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Draw the examples of the lane; hypothesis's plugin runs next, and loads a requested profile."""
    os.environ[lanes.LANE] = next((lane for lane in (WHOLE, "quick") if config.getoption(lane)), "default")
    drawn = settings(settings.get_profile("random"), derandomize=True, max_examples=lanes.examples(100))
    settings.register_profile("netkit", drawn)
    settings.load_profile("netkit")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the lanes, which scripts/test passes."""
    lanes = parser.getgroup("lanes")
    lanes.addoption("--no-live", action="store_true", help="leave out tests that start daemons, a lab or a browser")
    lanes.addoption("--quick", action="store_true", help="--no-live, and leave out slow tests")
    lanes.addoption("--whole", action="store_true", help=f"run tests marked {WHOLE} too")
    lanes.addoption("--second-try", action="store_true", help="what passes failed before: report it as flaky")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file that is left out: one that imports a mark of LIVE, or with --quick a slow one."""
    is_quick = config.getoption("--quick")
    if not (is_quick or config.getoption("--no-live")) or collection_path.suffix != ".py":
        return None
    is_slow = os.path.relpath(collection_path, Path(__file__).parent) in SLOW
    is_live = IMPORTS_LIVE.search(collection_path.read_text(encoding="utf-8"))
    return True if is_live or (is_quick and is_slow) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable the garbage collector while tests are collected, and freeze them: they all stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with files that need a lab, the longest first: labs mostly wait, and fast tests leave no long tail."""
    if config.getoption("--quick") or config.getoption("--no-live"):
        _leave_out(config, items, _starts_something)
    if not config.getoption("--whole"):
        config.stash[LEFT_OUT] = _leave_out(config, items, lanes.is_left_out)
    units = {item.path: _together(item.location[0]) for item in items}
    sizes = Counter(units[item.path] for item in items)
    items.sort(key=lambda item: (not _needs_lab(item), -sizes[units[item.path]], units[item.path], item.path))


def _leave_out(config: pytest.Config, items: list[pytest.Item], is_out: Callable[[pytest.Item], object]) -> int:
    """Deselect items, and return how many."""
    out = [item for item in items if is_out(item)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if not is_out(item)]
    return len(out)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report to the controller of xdist what this worker left out; each collects all tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@cache
def _together(file: str) -> str:
    """The file of a test, or the broker that several share: it takes 10 s of a core to start."""
    path = Path(__file__).parents[1] / file
    return "fleet_bed" if path.exists() and "fleet_bed: Bed" in path.read_text(encoding="utf-8") else file


class SharingScheduler(LoadFileScheduling):  # type: ignore[misc]
    """Like `--dist loadfile`, with files that share a server on one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return _together(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharingScheduler | None:
    """Distribute files as SharingScheduler does."""
    return SharingScheduler(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker left out."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how many tests the lane left out, and those that failed at first."""
    left_out = config.stash.get(LEFT_OUT, 0)
    if left_out:
        terminalreporter.write_line(f"{left_out} tests left out; --whole runs them")
    flaky = terminalreporter.stats.get("passed", []) if config.getoption("--second-try") else []
    if flaky:
        terminalreporter.section("flaky tests", yellow=True)
        for report in flaky:
            terminalreporter.write_line(f"FLAKY {report.nodeid}")
        terminalreporter.write_line(f"{len(flaky)} flaky: failed at first, passed on the second try", yellow=True)


def _starts_something(item: pytest.Item) -> object:
    is_live = isinstance(item, pytest.Function) and LIVE & vars(item.module).keys()
    return is_live or item.get_closest_marker(DAEMON)


def _needs_lab(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and hasattr(item.module, "needs_lab")
