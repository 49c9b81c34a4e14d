"""Faults in pairs: in a lab with two at once, each has to be found as a cause of its own, without a third.

`python -m tests.checks.pairs PLATFORM` injects each pair of rows of the table of faults, which takes an hour or two,
and writes the findings to `pairs.yaml`, from which the page of the faults is made; `--sample 100` draws that many.
With `--keep DIR` the facts are kept; a run that finds them there judges them again, and uses the lab only for the
missing pairs. Several labs can share the pairs: `--part 1/2` and `--part 2/2` with one folder, and then once more
without `--part`, which counts them. `--healthy 100` collects that often from a healthy lab: after its boot, a deploy,
reboots, during an incast and after it. Configurations are only read of healthy labs: no fault of a pair changes one.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import ceil
from pathlib import Path

import yaml

from netkit.design import Fabric
from netkit.facts import Snapshot
from netkit.facts.serial import dump, load
from netkit.judge.cause import CauseGroup, cause_groups
from netkit.judge.run import Judgement
from netkit.lab.folder import ask_keeper
from netkit.project.project import Project
from tests.checks.breaking import (
    LOADED_WINDOW_S,
    WINDOW_S,
    Ward,
    around,
    is_watched,
    judged,
    reported,
    shipped,
    ward,
    written,
)
from tests.checks.fault_table import Row, ends, rows_on
from tests.deploy.live_scene import merged
from tests.lab.running import until, write_fabric

TABLE = Path(__file__).with_name("pairs.yaml")
LOOKS = 3
"""Daemons may need a round or two to notice; after that the pair is not collected again."""
WITHIN_S, HEALTHY_WINDOW_S = 1.0, 1.0
SETTLED_S = 12.0
HOSTS_LAB = "nvue"
"""The platform of the switches below which host faults are injected."""


@dataclass(frozen=True)
class Pair:
    """Two rows of the table at once: the first fault stays while second ones come and go."""

    one: Row
    other: Row

    def __str__(self) -> str:
        return f"{self.one}+{self.other}"

    @property
    def rows(self) -> tuple[Row, Row]:
        return self.one, self.other

    @property
    def load(self) -> str:
        """The NIC that all hosts send to, if either row needs that."""
        return self.one.load or self.other.load

    @property
    def limits(self) -> Mapping[str, float]:
        """The thresholds for both rows."""
        return {**self.one.limits, **self.other.limits}

    @property
    def hidden(self) -> tuple[Row, ...]:
        """The faults that, by the table, are invisible or indistinguishable from the other one."""
        return tuple(row for row, other in (self.rows, self.rows[::-1]) if f"{row.fault} {row.at}" in {**other.hides})


@dataclass(frozen=True)
class Score:
    """The findings for a pair."""

    faults: int
    found: int
    causes: int
    right: int
    is_first_right: bool
    hidden: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether each fault is a cause of its own, and there is no other cause."""
        return self.faults == self.found and self.causes == self.right


def pairs(column: str) -> tuple[Pair, ...]:
    """Each row with each other one; quick faults are second, those that need load come last.

    Rows of hosts are paired with those of their switches, too.
    """
    own = rows_on(column)
    rows = [row for row in (*own, *(rows_on(HOSTS_LAB) if column == "hosts" else ())) if _is_paired(row)]
    rows.sort(key=lambda row: (row.is_within, not row.load, not row.settles))
    found = (Pair(one, other) for one, other in combinations(rows, 2) if one in own or other in own)
    others = (pair for pair in found if (pair.one.fault, pair.one.at) != (pair.other.fault, pair.other.at))
    return tuple(sorted(others, key=lambda pair: bool(pair.load)))


def _is_paired(row: Row) -> bool:
    return not row.deploys and not row.unreached


def drawn(every: Sequence[Pair], count: int) -> tuple[Pair, ...]:
    """A random sample of this size, in the order given; a larger sample contains every smaller one."""
    order = list(every)
    random.Random(17).shuffle(order)  # noqa: S311  # the same ones each time
    chosen = set(map(str, order[:count]))
    return tuple(pair for pair in every if str(pair) in chosen)


def scored(fabric: Fabric, pair: Pair, judgement: Judgement) -> Score:
    """Count faults that are causes of their own, and causes that are such a fault, each at most once."""
    shown = [row for row in pair.rows if row.found and row not in pair.hidden]
    layers = {check.name: check.layer for check in shipped()}
    causes = cause_groups(judgement.findings, layers)
    owners = [
        [row for row in pair.rows if _is_of(fabric, row, cause, is_hidden=row in pair.hidden)] for cause in causes
    ]
    named = {str(row) for rows in owners for row in rows}
    right = min(sum(map(bool, owners)), len(named)) if len(shown) == len(pair.rows) else sum(map(bool, owners))
    causing = [{number for number, rows in enumerate(owners) if row in rows} for row in shown]
    found = min(
        sum(map(bool, causing)), len(set().union(*causing))
    )  # one cause counts for one fault, even if both would explain it
    is_first_right = bool(owners[0]) if owners else not shown
    return Score(len(shown), found, len(causes), right, is_first_right, len(pair.hidden))


def _is_of(fabric: Fabric, row: Row, cause: CauseGroup, *, is_hidden: bool) -> bool:
    """Whether a cause belongs to a fault: as the table says, or as a finding allowed at one of its places.

    For a hidden fault, findings that may accompany it count wherever they are.
    """
    heads = [one for one in (cause.head, *cause.symptoms) if one.check == cause.head.check]
    lines = [line.partition(" ") for line in row.may]
    if is_hidden:
        return cause.head.check in {line.split()[1] for line in row.found} | {check for check, _, _ in lines}
    places = {one[1:] for one in row.expected(fabric)}
    places |= {(check, *end) for check, _, at in lines if at for end in ends(fabric, at)}
    return any((one.check, one.device, one.place) in places for one in heads)


class Bench:
    """A lab in which pairs of faults are injected."""

    def __init__(self, lab: Ward) -> None:
        self._lab = lab
        self._standing: Row | None = None

    def seen(self, pair: Pair) -> Snapshot:
        """The facts of a pair, once its faults are found or the rounds are used up."""
        lab = self._lab
        self._stand(pair.one)
        if pair.load:
            lab.loaded(pair.load)
        if not pair.other.is_within:
            lab.broken(pair.other)
        if pair.other.settles:
            time.sleep(SETTLED_S)
        try:
            for _ in range(LOOKS):
                seen = self._look(pair)
                if scored(lab.project.fabric, pair, lab.judged(seen, pair.limits)).is_whole:
                    break
            return seen
        finally:
            (lab.healed if pair.one.load else lab.mended)(pair.other)
            if pair.one.settles and pair.other.settles:  # both are about the same links, which the other fault restored
                lab.mended(pair.one)
                self._standing = None

    def _stand(self, row: Row) -> None:
        if row is self._standing:
            return
        if self._standing is not None:
            self._lab.mended(self._standing)
        self._standing = row
        if not row.is_within:
            self._lab.broken(row)
        if row.settles:
            time.sleep(SETTLED_S)

    def _look(self, pair: Pair) -> Snapshot:
        if not pair.other.is_within:
            return self._lab.look(LOADED_WINDOW_S if pair.load else WINDOW_S, has_config=False)
        before = self._lab.look(0, has_config=False, has_probes=False)  # their packets would fill queues
        for row in pair.rows:
            if row.is_within:
                self._lab.broken(row)
        time.sleep(WITHIN_S)
        seen = around(before, self._lab.look(0, has_config=False))
        for row in pair.rows:
            if row.is_within:
                self._lab.healed(row)
        return seen


def main() -> None:
    """Inject all pairs, and write the findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("platform")
    parser.add_argument("--keep", type=Path, default=Path("pairs"), help="where what was seen is kept")
    parser.add_argument("--again", action="store_true", help="ask the lab again for pairs that were not whole")
    parser.add_argument("--sample", type=int, default=0, metavar="PAIRS", help="only so many, drawn by chance")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="only the Kth of N equal parts")
    parser.add_argument("--kept", action="store_true", help="judge what was kept, and ask no lab")
    parser.add_argument("--healthy", type=int, default=0, metavar="ROUNDS", help="look at a healthy lab instead")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the lab is taken down
    platform = HOSTS_LAB if given.platform == "hosts" else given.platform
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if given.healthy:
            lab = stack.enter_context(ward(Path(folder), platform))
            healthy = dict[str, list[int]]()
            for kind, counts in _healthy(lab, Path(folder), given.healthy):
                healthy[kind] = counts
                _write(given.platform, {"healthy": healthy})
            return
        every = pairs(given.platform)
        bench: Bench | None = None
        project = Project.open(written(Path(folder, "judged"), platform))
        total: list[Score] = []
        for pair in _part(drawn(every, given.sample or len(every)), given.part):
            file = given.keep / f"{str(pair).replace('/', '_')}.json"
            score = _judged(project, pair, file) if file.exists() else None
            if not given.kept and (score is None or (given.again and not score.is_whole)):
                bench = bench or Bench(stack.enter_context(ward(Path(folder), platform)))
                given.keep.mkdir(parents=True, exist_ok=True)
                file.write_bytes(dump(bench.seen(pair)))
                score = _judged(project, pair, file)
            if score is None:
                continue
            total.append(score)
            if not score.is_whole:
                print(pair, score, flush=True)
    if given.part == "1/1":
        _write(given.platform, {**_summed(total), "of": len(every)})


def _part(pairs: Sequence[Pair], part: str) -> Sequence[Pair]:
    number, of = map(int, part.split("/"))
    return pairs[len(pairs) * (number - 1) // of : len(pairs) * number // of]


def _write(platform: str, counts: Mapping[str, object]) -> None:
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    table[platform] = {**table.get(platform, {}), **counts}
    TABLE.write_text(yaml.safe_dump(table, sort_keys=True), encoding="utf-8")


def _healthy(lab: Ward, folder: Path, rounds: int) -> Iterator[tuple[str, list[int]]]:
    """Collect from a healthy lab after each event of daily operation; yield the number of collections with findings."""
    for kind, happen in EVENTS.items():
        lab = happen(lab, folder)
        until(partial(_is_settled, lab), "BFD watches every session again")
        wrong, number = 0, ceil(rounds / len(EVENTS))
        for _ in range(number):
            found = sorted(reported(lab.judged(lab.look(HEALTHY_WINDOW_S))))
            wrong += bool(found)
            if found:
                print(kind, found, flush=True)
        yield kind, [wrong, number]


def _is_settled(lab: Ward) -> bool:
    return is_watched(lab.look(0, has_config=False))


def _deployed(lab: Ward, folder: Path) -> Ward:
    """Deploy a change to every switch and every host."""
    values = merged(yaml.safe_load((lab.lab.fabric / "fabric.yaml").read_text(encoding="utf-8")), CHANGE)
    fabric = write_fabric(folder / "changed", values)
    done = lab.lab.netkit("deploy", "--fabric", fabric, "--lab", lab.lab.name, "--yes", "--disruptive", "--busy")
    assert done.returncode == 0, done.stdout + done.stderr
    return replace(lab, project=Project.open(fabric, lab=lab.lab.name))


def _restarted(lab: Ward, device: str) -> Ward:
    done = lab.lab.lab("restart", device)
    assert done.returncode == 0, done.stdout + done.stderr
    return lab


def _crowded(lab: Ward) -> Ward:
    host = lab.project.fabric.hosts[0]
    lab.loaded(f"{host.name}:{host.nics[0].interface}", seconds=3600)
    return lab


def _calm(lab: Ward) -> Ward:
    ask_keeper(lab.folder, "calm")
    return lab


CHANGE = {"routing": {"max_paths": 32}}
EVENTS: Mapping[str, Callable[[Ward, Path], Ward]] = {
    "boot": lambda lab, _: lab,
    "deploy": _deployed,
    "reboot of a switch": lambda lab, _: _restarted(lab, lab.project.fabric.switches[0].name),
    "reboot of a host": lambda lab, _: _restarted(lab, lab.project.fabric.hosts[0].name),
    "an incast began": lambda lab, _: _crowded(lab),
    "it ended": lambda lab, _: _calm(lab),
}
"""Events of daily operation, in order."""


def _judged(project: Project, pair: Pair, file: Path) -> Score:
    return scored(project.fabric, pair, judged(project, load(file.read_bytes(), str(file)), pair.limits))


def _summed(scores: Sequence[Score]) -> dict[str, int]:
    return {
        "pairs": len(scores),
        "faults": sum(one.faults for one in scores),
        "found": sum(one.found for one in scores),
        "hidden": sum(one.hidden for one in scores),
        "causes": sum(one.causes for one in scores),
        "right": sum(one.right for one in scores),
        "first_right": sum(one.is_first_right for one in scores),
    }


if __name__ == "__main__":
    main()
