"""Running one shipped check on a scene made by hand."""

from functools import cache

from netkit.judge import CheckContext, Finding, Verdict, catalog
from netkit.judge.run import CheckResult, run


@cache
def shipped() -> catalog.Catalog:
    return catalog.load()


def results(scene: CheckContext, name: str) -> dict[str, CheckResult]:
    """Return what one check says, by device."""
    return {result.device: result for result in run(scene, catalog.select(shipped(), [name])).results}


def said(scene: CheckContext, name: str) -> list[tuple[str, str, str, str]]:
    """Return what is wrong: verdict, device, place and text."""
    found = run(scene, catalog.select(shipped(), [name])).findings
    return sorted(_told(finding) for finding in found if finding.verdict > Verdict.SKIPPED)


def skipped(scene: CheckContext, name: str) -> list[tuple[str, str, str]]:
    """Return what could not be judged: device, place and reason; devices that were not reached left out."""
    found = run(scene, catalog.select(shipped(), [name])).findings
    told = ((one.device, one.place, one.text) for one in found if one.verdict is Verdict.SKIPPED)
    return sorted(one for one in told if not one[2].startswith("not reached"))


def _told(finding: Finding) -> tuple[str, str, str, str]:
    return finding.verdict.word, finding.device, finding.place, finding.text
