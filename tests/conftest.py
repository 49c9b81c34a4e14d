"""Shared fixtures: golden files; and the order of the files."""

import difflib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Their asserts are those of several files, and fail with what they found as a test's own do.
pytest.register_assert_rewrite("tests.checks.breaking", "tests.facts.written")
# Machines are shared: how long an example takes says nothing about netkit.
# A run that passed passes again: new examples are for who looks for them, with --hypothesis-profile=random.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("netkit", settings.get_profile("random"), derandomize=True)
settings.load_profile("netkit")
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
}
"""Marks of files that start daemons, a lab or a browser."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the quick lane."""
    parser.addoption("--quick", action="store_true", help="leave out tests that start daemons, a lab or a browser")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with files that need a lab, the longest first: labs mostly wait, and what is quick leaves no long end."""
    if config.getoption("--quick"):
        live = [item for item in items if isinstance(item, pytest.Function) and LIVE & vars(item.module).keys()]
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in set(live)]
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (not _needs_lab(item), -sizes[item.path], item.path))


def _needs_lab(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and hasattr(item.module, "needs_lab")
