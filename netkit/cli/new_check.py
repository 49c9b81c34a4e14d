"""`netkit check --new NAME`: write a check and its test to start from."""

import re
import sys
from pathlib import Path

from netkit import intent
from netkit.errors import OutputError, Problem, UsageError
from netkit.judge import catalog
from netkit.project.project import CHECKS

NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
CHECK = '''"""{title}: what it is about, in a line."""

from collections.abc import Iterator

from netkit.facts import Absent
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fail


@device_check(layer="host", needs=["system"])
def hostname(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every device calls itself what the design calls it.

    Say here what a failure means, and what to do about it.
    """
    system = device.facts.system
    if isinstance(system, Absent):
        return
    if system.hostname == device.name:
        yield PASSED
    else:
        yield fail("", f"calls itself {{system.hostname}}", "netkit deploy")
'''
TEST = '''"""Try the check in {name}.py on facts written by hand: `pytest {folder}`."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from netkit.facts import Facts
from netkit.facts.device import System
from netkit.judge import Verdict, catalog

(CHECK,) = catalog.of_file(Path(__file__).parent / "{name}.py")


@pytest.mark.parametrize(("hostname", "verdict"), [("leaf01", Verdict.PASS), ("other", Verdict.FAIL)])
def test_a_device_knows_its_name(hostname: str, verdict: Verdict) -> None:
    device = SimpleNamespace(name="leaf01", facts=Facts(system=System(hostname)))
    assert CHECK.of_device is not None
    assert [finding.verdict for finding in CHECK.of_device(None, device)] == [verdict]  # type: ignore[arg-type]
'''


def run(folder: Path, name: str) -> None:
    """Write a check and its test into the user's own folder of checks; refuse to overwrite."""
    stem = name.replace("-", "_")
    if not NAME.fullmatch(stem):
        what = f"{name!r} is not a valid name for a check"
        raise UsageError(Problem(what, "use lower-case letters, digits and dashes"))
    if stem.startswith(catalog.NO_CHECKS):
        raise UsageError(Problem(f"a file {stem}.py is not read as a check", "choose another name"))
    if (catalog.shipped_checks() / f"{stem}.py").exists():
        what = f"netkit has checks in {stem}.py, and your file would replace them all"
        raise UsageError(Problem(what, "choose another name"))
    checks = intent.load(folder).folder / CHECKS
    files = {checks / f"{stem}.py": CHECK, checks / f"test_{stem}.py": TEST}
    taken = [file for file in files if file.exists()]
    if taken:
        raise OutputError(Problem(f"{taken[0]} exists", "choose another name"))
    checks.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        file.write_text(
            text.format(title=stem.replace("_", " ").capitalize(), name=stem, folder=checks), encoding="utf-8"
        )
        sys.stdout.write(f"{file}\n")
    sys.stdout.write(f"next: pytest {checks}, then netkit check {stem.replace('_', '-')} --fabric {folder}\n")
