"""Run shipped checks on hand-made facts, in one piece and in shards, which have to agree."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from netkit.judge import Check, CheckContext, Finding, Verdict, catalog
from netkit.judge.run import CheckResult, Judgement, ShardResult, run
from netkit.judge.shard import Reads, judge_shard


@cache
def shipped() -> catalog.Catalog:
    return catalog.load()


def judge(scene: CheckContext, checks: Sequence[Check]) -> Judgement:
    """The findings of checks; every device in its own shard, and two halves, give the same."""
    found = run(scene, checks)
    names = tuple(scene.devices)
    for shards in ([(name,) for name in names], [names[::2], names[1::2]]):
        assert sharded(scene, checks, shards) == found
    return found


def sharded(scene: CheckContext, checks: Sequence[Check], shards: Iterable[Sequence[str]]) -> Judgement:
    """The findings when judged in shards."""
    reads = Reads.of(checks)
    parts = [judge_shard(_part(scene, names), checks, reads) for names in shards if names]
    assert not any(part.deferred for part in parts)
    return run(_whole(scene, parts), checks)


def _part(scene: CheckContext, names: Sequence[str]) -> CheckContext:
    devices = {name: one for name, one in scene.snapshot.devices.items() if name in names}
    return replace(scene, snapshot=replace(scene.snapshot, devices=devices), names=frozenset(names))


def _whole(scene: CheckContext, parts: Sequence[ShardResult]) -> CheckContext:
    devices = {name: one for part in parts for name, one in part.observations.items() if name in scene.snapshot.devices}
    return replace(scene, snapshot=replace(scene.snapshot, devices=devices), shards=tuple(parts))


def results(scene: CheckContext, name: str) -> dict[str, CheckResult]:
    """The findings of one check, by device."""
    return {result.device: result for result in judge(scene, catalog.select(shipped(), [name])).results}


def said(scene: CheckContext, name: str) -> list[tuple[str, str, str, str]]:
    """Verdict, device, place and text of each warning and failure."""
    found = judge(scene, catalog.select(shipped(), [name])).findings
    return sorted(_told(finding) for finding in found if finding.verdict > Verdict.SKIPPED)


def skipped(scene: CheckContext, name: str) -> list[tuple[str, str, str]]:
    """Device, place and reason of what could not be judged, without unreachable devices."""
    found = judge(scene, catalog.select(shipped(), [name])).findings
    reported = ((one.device, one.place, one.text) for one in found if one.verdict is Verdict.SKIPPED)
    return sorted(one for one in reported if not one[2].startswith("not reached"))


def _told(finding: Finding) -> tuple[str, str, str, str]:
    return finding.verdict.word, finding.device, finding.place, finding.text
