"""A lab of one platform, broken row by row of the table of faults and collected from as `netkit check` does."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from netkit import plan as planning
from netkit.design import Host, Switch
from netkit.facts import Absent, Observation, Snapshot
from netkit.judge import CheckContext, Finding, Verdict, catalog
from netkit.judge.check import Check
from netkit.judge.run import Judgement
from netkit.lab.folder import LabFolder, ask_keeper
from netkit.observe import CollectOptions
from netkit.project.connections import Connections
from netkit.project.observing import Looking, look
from netkit.project.project import Project
from tests import lanes
from tests.checks.deploying import failed, taken_back
from tests.checks.fault_table import Found, Row, daily, place_of, rows_on
from tests.checks.judging import judge
from tests.facts import untold
from tests.intents import ON_PLATFORM
from tests.lab.running import RunningLab, intent, on_platform, running, until, write_fabric

VERSIONS = {"nvue": "5.16.1", "sonic": "202505", "eos": "4.35.1F", "frr": "8.4.4"}
SECRETS = {f"NETKIT_SECRET_{name}": f"$6$made{name.lower()}" for name in ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")}
WINDOW_S = 2.5
LOADED_WINDOW_S = 6.0
"""A lab sends a few CNPs a second, a real fabric thousands."""
DEADLINE_S = 25.0
SETTLING_S = 100.0
"""How long daemons may take to notice."""
NO_LIMITS: Mapping[str, float] = {}


@dataclass(frozen=True)
class Ward:
    """A lab and its fabric."""

    lab: RunningLab
    project: Project

    @property
    def folder(self) -> LabFolder:
        """The folder with the access settings of the lab."""
        return LabFolder(self.lab.home / self.lab.name)

    def broken(self, row: Row) -> None:
        """Inject the fault of a row."""
        options = [f"{name}={value}" for name, value in row.options.items()]
        ask_keeper(self.folder, "break", fault=row.fault, place=place_of(self.project.fabric, row.at), options=options)

    def mended(self, row: Row) -> None:
        """Heal the fault, and wait until nothing is left of it."""
        self.healed(row)
        ask_keeper(self.folder, "calm")

    def healed(self, row: Row) -> None:
        """Heal the fault; anything else that is wrong stays."""
        place = place_of(self.project.fabric, row.at)
        ask_keeper(self.folder, "heal", fault=row.fault, place=place)
        if row.fault == "counter-wrap":  # it lasts until counters are cleared
            ask_keeper(self.folder, "break", fault="counter-reset", place=place, options=[])
            ask_keeper(self.folder, "heal", fault="counter-reset", place=place)

    def loaded(self, nic: str, seconds: int = 300) -> None:
        """Let all hosts send to one NIC for a while."""
        ask_keeper(self.folder, "incast", place=nic, senders=3, seconds=seconds)

    def look(self, window_s: float, *, has_config: bool = True, has_probes: bool = True) -> Snapshot:
        """Collect once, or at both ends of a window."""
        options = CollectOptions(window_s=window_s, has_config=has_config, deadline_s=DEADLINE_S)
        devices: list[Switch | Host] = [*self.project.fabric.switches, *self.project.fabric.hosts]
        return look(self.project, Connections.of(self.project), Looking(devices, options, has_probes=has_probes))

    def judged(self, snapshot: Snapshot, own: Mapping[str, float] = NO_LIMITS) -> Judgement:
        """The findings of all checks by the thresholds of the fabric, some of which a row may override."""
        return judged(self.project, snapshot, own)


def judged(project: Project, snapshot: Snapshot, own: Mapping[str, float] = NO_LIMITS) -> Judgement:
    """The findings of all checks for a snapshot, however old it is."""
    plan = planning.read(snapshot.plan) if snapshot.plan else None
    limits = project.loaded.intent.thresholds.model_copy(update=dict(own))
    scene = CheckContext(project.fabric, snapshot, limits, plan=plan)
    return judge(scene, shipped())


@cache
def shipped() -> tuple[Check, ...]:
    """The checks shipped with netkit, loaded once."""
    return tuple(catalog.select(catalog.load(), []))


def written(folder: Path, platform: str) -> Path:
    """Write the fabric of one platform."""
    model = ON_PLATFORM[platform]["leaf"]["model"]
    values = on_platform(platform, intent(), model=model, version=VERSIONS[platform])
    values |= {"purpose": "lab"} if platform == "frr" else {}
    return write_fabric(folder / "fabric", values)


@contextmanager
def ward(folder: Path, platform: str) -> Iterator[Ward]:
    """Boot a healthy fabric of one platform."""
    fabric = written(folder, platform)
    with running(fabric, name="f") as lab, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETKIT_LAB_DIR", str(lab.home))
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        project = Project.open(fabric, lab=lab.name)
        found = Ward(lab, project)
        until(lambda: is_watched(found.look(0)), "BFD watches every session: it begins seconds after BGP")
        yield found


def is_watched(snapshot: Snapshot) -> bool:
    """Whether BFD is up on every session of every switch."""
    reported = [one.facts.sessions for one in snapshot.devices.values() if one.platform != "linux"]
    return all(not isinstance(one, Absent) and all(found.is_bfd_up for found in one.values()) for one in reported)


def reported(judgement: Judgement) -> set[Found]:
    """The warnings and failures."""
    return {as_told(one) for one in judgement.findings if one.verdict > Verdict.SKIPPED}


def as_told(one: Finding) -> Found:
    """A finding in the form of the table."""
    return one.verdict.word, one.check, one.device, one.place


class Faults:
    """The faults injected in a lab of one platform: one subclass per file, so that they run in parallel."""

    platform = "nvue"
    column = "nvue"
    """The lab in the table, and the column of the docs."""
    device = "leaf01"

    @pytest.fixture(scope="class")
    @classmethod
    def lab(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
        with ward(tmp_path_factory.mktemp("faults"), cls.platform) as found:
            yield found

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Make a test of each row of the table."""
        if "row" in metafunc.fixturenames:
            metafunc.parametrize("row", lanes.daily(rows_on(cls.column), *daily(cls.column)), ids=str)

    def test_a_healthy_lab_is_clean(self, lab: Ward) -> None:
        """Nothing is wrong, every device was reached, and most checks could judge."""
        judgement = lab.judged(lab.look(WINDOW_S))
        assert (reported(judgement), judgement.unreached) == (set(), ())
        assert judgement.examined > 100

    def test_unreported_facts_are_those_in_the_docs(self, lab: Ward) -> None:
        facts = lab.look(0).devices[self.device].facts
        assert untold.by_device(facts, is_host=self.column == "hosts") == untold.by_the_docs(self.column)

    def test_a_fault_is_found_where_it_is_and_nothing_else(self, lab: Ward, row: Row) -> None:
        expected = (row.expected(lab.project.fabric), set(row.unreached))
        with broken(lab, row) as looked:
            judgement = again_until(looked, lambda seen: found(lab, row, seen) == expected, row.patience_s)
        told_of = found(lab, row, judgement)
        assert told_of == expected, [one for one in judgement.findings if as_told(one) in told_of[0] - expected[0]]

    def test_a_healed_lab_is_clean_again(self, lab: Ward) -> None:
        """No finding of the faults is left once daemons have noticed."""
        judgement = again_until(lambda: lab.judged(lab.look(WINDOW_S)), lambda seen: not reported(seen), SETTLING_S)
        assert (reported(judgement), judgement.unreached) == (set(), ())


@contextmanager
def broken(ward: Ward, row: Row) -> Iterator[Callable[[], Judgement]]:
    """Inject a row's fault for the length of a block; yield a function that collects."""
    before = ward.look(0) if row.is_within else None
    window_s = LOADED_WINDOW_S if row.load else WINDOW_S
    intended = ward

    def looked() -> Judgement:
        seen = around(before, intended.look(0)) if before else intended.look(window_s)
        return intended.judged(seen, row.limits)

    if row.load:
        ward.loaded(row.load)
    ward.broken(row)
    with tempfile.TemporaryDirectory() as folder:
        try:
            if row.deploys:
                intended = replace(ward, project=failed(ward.lab, Path(folder), row))
            yield looked
        finally:
            ward.mended(row)
            if row.deploys:
                taken_back(ward.lab, Path(folder), ward.project)


def again_until(
    looked: Callable[[], Judgement], is_enough: Callable[[Judgement], bool], patience_s: float
) -> Judgement:
    """Collect until a condition holds or the time limit is reached; return the last result."""
    deadline = time.monotonic() + patience_s
    while not is_enough(seen := looked()) and time.monotonic() < deadline:
        pass
    return seen


def found(ward: Ward, row: Row, judgement: Judgement) -> tuple[set[Found], set[str]]:
    """The warnings and failures, without those that may accompany the fault, and the unreachable devices."""
    fabric = ward.project.fabric
    expected = row.expected(fabric)
    rest = {one for one in reported(judgement) if one in expected or not row.allows(fabric, one)}
    return rest, {name for name, _ in judgement.unreached}


def around(before: Snapshot, after: Snapshot) -> Snapshot:
    """Two collections as one: their counters become both ends of its window."""

    def both(name: str, last: Observation) -> Observation:
        return replace(last, samples=(*before.devices[name].samples, *last.samples))

    return replace(after, devices={name: both(name, last) for name, last in after.devices.items()})
