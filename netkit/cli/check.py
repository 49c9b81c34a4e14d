"""`netkit check`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from netkit.cli import trials
from netkit.cli.checking import Checking
from netkit.cli.fabric import CHECKS, beside
from netkit.cli.stored import Storing, past, source_of
from netkit.cli.text import columns
from netkit.cli.whole_file import write_whole
from netkit.deploy.shape import weightiest
from netkit.errors import Problem, UsageError
from netkit.judge import Check, Scene, Verdict, catalog
from netkit.judge.run import Judgement
from netkit.judge.run import run as judge
from netkit.report.changes_text import changes_text
from netkit.report.judgement_json import judgement_json, judgement_junit
from netkit.report.judgement_markdown import judgement_markdown
from netkit.report.judgement_text import judgement_text
from netkit.report.judgement_view import Judged
from netkit.report.metrics import metrics

FORMATS: Mapping[str, Callable[[Judged], str]] = {
    "text": judgement_text,
    "json": judgement_json,
    "junit": judgement_junit,
    "markdown": judgement_markdown,
}
UNREACHED, FAILED = 4, 1
PROFILES = ("light", "full")


def run(
    folder: Path,
    *,
    names: Sequence[str],
    limit: str,
    lab: str,
    window_s: float,
    profile: str,
    snapshot: Path | None,
    results: Sequence[Path],
    source: str,
    output: str,
    lists: bool,
    storing: tuple[str, str, str],
    metrics_file: Path | None = None,
    has_changes_only: bool = False,
) -> int:
    """Judge the fabric; return 4 when a device could not be reached, 1 when a check failed or nothing was judged."""
    _refuse(output, profile)
    stored = Storing.of(*storing)
    if has_changes_only and (not stored.where or output != "text"):
        raise UsageError(
            Problem("--changes compares with the last stored run, as text", "give --store, and no --format")
        )
    checking = Checking.of(
        folder,
        limit=limit,
        lab=lab,
        window_s=window_s,
        snapshot=snapshot,
        is_light=profile == "light",
        source=source,
    )
    checks = catalog.select(catalog.load(beside(checking.project.loaded.folder, CHECKS)), names)
    if lists:
        sys.stdout.write(columns((check.name, check.layer, check.title) for check in checks))
        return 0
    with past(stored, source_of(checking.project.fabric.name, lab)) as earlier:
        scene = trials.scene(checking, checks, results, lambda: checking.scene(checks, earlier))
        judged = judged_of(scene, checks)
        if not has_changes_only:
            sys.stdout.write(FORMATS[output](judged))
        if metrics_file is not None:
            write_whole(metrics_file, metrics(scene, judged))
        changes = earlier.save(scene, judged, checking.project.loaded.intent)
        if has_changes_only:
            sys.stdout.write(changes_text(judged.fabric, changes))
    return judged.exit_code


def _refuse(output: str, profile: str) -> None:
    if output not in FORMATS:
        raise UsageError(Problem(f"no output format {output!r}", f"use one of {', '.join(FORMATS)}"))
    if profile not in PROFILES:
        raise UsageError(Problem(f"no profile {profile!r}", f"use {' or '.join(PROFILES)}"))


def judged_of(scene: Scene, checks: Sequence[Check]) -> Judged:
    """Return what checks say about a scene, with what the process ends with."""
    found = judge(scene, checks)
    window_s = max((seen.window_s for seen in scene.devices.values()), default=0.0)
    judged = Judged(
        scene.fabric.name,
        len(scene.devices),
        window_s,
        scene.snapshot.taken_s,
        found,
        {check.name: check.layer for check in checks},
    )
    return replace(judged, exit_code=exit_code(found))


def exit_code(found: Judgement) -> int:
    """Return what a judgement ends with: a warning is no failure, and what nobody judged is no pass."""
    is_bad = found.verdict >= Verdict.FAIL or not found.examined
    return weightiest(FAILED if is_bad else 0, UNREACHED if found.unreached else 0)
