"""A lab of one platform that is broken row by row of the table of faults, and looked at as `netkit check` does."""

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
"""Of CNPs a lab sends some in a second, where a fabric sends thousands."""
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
        """Return where the lab can be asked."""
        return LabFolder(self.lab.home / self.lab.name)

    def broken(self, row: Row) -> None:
        """Break it as a row says."""
        options = [f"{name}={value}" for name, value in row.options.items()]
        ask_keeper(self.folder, "break", fault=row.fault, place=place_of(self.project.fabric, row.at), options=options)

    def mended(self, row: Row) -> None:
        """Heal it, and let nothing of it be left."""
        self.healed(row)
        ask_keeper(self.folder, "calm")

    def healed(self, row: Row) -> None:
        """Heal it; what else is wrong stays."""
        place = place_of(self.project.fabric, row.at)
        ask_keeper(self.folder, "heal", fault=row.fault, place=place)
        if row.fault == "counter-wrap":  # it lasts until counters are cleared
            ask_keeper(self.folder, "break", fault="counter-reset", place=place, options=[])
            ask_keeper(self.folder, "heal", fault="counter-reset", place=place)

    def loaded(self, nic: str, seconds: int = 300) -> None:
        """Let everybody send to a NIC for a while."""
        ask_keeper(self.folder, "incast", place=nic, senders=3, seconds=seconds)

    def look(self, window_s: float, *, has_config: bool = True, has_probes: bool = True) -> Snapshot:
        """Look once, or at both ends of a window."""
        options = CollectOptions(window_s=window_s, has_config=has_config, deadline_s=DEADLINE_S)
        devices: list[Switch | Host] = [*self.project.fabric.switches, *self.project.fabric.hosts]
        return look(self.project, Connections.of(self.project), Looking(devices, options, has_probes=has_probes))

    def judged(self, snapshot: Snapshot, own: Mapping[str, float] = NO_LIMITS) -> Judgement:
        """Return what all checks say by the limits of the fabric, some of which a row may have of its own."""
        return judged(self.project, snapshot, own)


def judged(project: Project, snapshot: Snapshot, own: Mapping[str, float] = NO_LIMITS) -> Judgement:
    """Return what all checks say of a snapshot, however long ago it was taken."""
    plan = planning.read(snapshot.plan) if snapshot.plan else None
    limits = project.loaded.intent.thresholds.model_copy(update=dict(own))
    scene = CheckContext(project.fabric, snapshot, limits, plan=plan)
    return judge(scene, shipped())


@cache
def shipped() -> tuple[Check, ...]:
    """Return the checks of netkit, loaded once."""
    return tuple(catalog.select(catalog.load(), []))


def written(folder: Path, platform: str) -> Path:
    """Write the fabric of one platform that is broken."""
    model = ON_PLATFORM[platform]["leaf"]["model"]
    values = on_platform(platform, intent(), model=model, version=VERSIONS[platform])
    values |= {"purpose": "lab"} if platform == "frr" else {}
    return write_fabric(folder / "fabric", values)


@contextmanager
def ward(folder: Path, platform: str) -> Iterator[Ward]:
    """Boot a fabric of one platform as it is meant to be."""
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
    """Return what is wrong."""
    return {as_told(one) for one in judgement.findings if one.verdict > Verdict.SKIPPED}


def as_told(one: Finding) -> Found:
    """Return what the table says of a finding."""
    return one.verdict.word, one.check, one.device, one.place


class Faults:
    """What is tried on a lab of one platform. A file for each, so that they run beside each other."""

    platform = "nvue"
    column = "nvue"
    """Whose rows of the table, and whose column of the docs."""
    device = "leaf01"

    @pytest.fixture(scope="class")
    @classmethod
    def lab(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
        """Yield the lab that is broken."""
        with ward(tmp_path_factory.mktemp("faults"), cls.platform) as found:
            yield found

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Give each row of the table its test."""
        if "row" in metafunc.fixturenames:
            metafunc.parametrize("row", lanes.daily(rows_on(cls.column), *daily(cls.column)), ids=str)

    def test_a_healthy_lab_is_clean(self, lab: Ward) -> None:
        """Nothing is wrong, everybody was reached, and much was judged."""
        judgement = lab.judged(lab.look(WINDOW_S))
        assert (reported(judgement), judgement.unreached) == (set(), ())
        assert judgement.examined > 100

    def test_what_is_not_told_is_in_the_docs(self, lab: Ward) -> None:
        """What a device does not report is what the table in the docs says."""
        facts = lab.look(0).devices[self.device].facts
        assert untold.by_device(facts, is_host=self.column == "hosts") == untold.by_the_docs(self.column)

    def test_a_fault_is_found_where_it_is_and_nothing_else(self, lab: Ward, row: Row) -> None:
        """A fault is found as its row says."""
        expected = (row.expected(lab.project.fabric), set(row.unreached))
        with broken(lab, row) as looked:
            judgement = again_until(looked, lambda seen: found(lab, row, seen) == expected, row.patience_s)
        told_of = found(lab, row, judgement)
        assert told_of == expected, [one for one in judgement.findings if as_told(one) in told_of[0] - expected[0]]

    def test_a_mended_lab_is_clean_again(self, lab: Ward) -> None:
        """Nothing of what was broken is left, once daemons have noticed."""
        judgement = again_until(lambda: lab.judged(lab.look(WINDOW_S)), lambda seen: not reported(seen), SETTLING_S)
        assert (reported(judgement), judgement.unreached) == (set(), ())


@contextmanager
def broken(ward: Ward, row: Row) -> Iterator[Callable[[], Judgement]]:
    """Break a lab as a row says for the length of a block; yield what looks at it."""
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
    """Look again and again until it is enough or patience ends; return what was seen last."""
    deadline = time.monotonic() + patience_s
    while not is_enough(seen := looked()) and time.monotonic() < deadline:
        pass
    return seen


def found(ward: Ward, row: Row, judgement: Judgement) -> tuple[set[Found], set[str]]:
    """Return what is wrong but for what may show beside, and who was not reached."""
    fabric = ward.project.fabric
    expected = row.expected(fabric)
    rest = {one for one in reported(judgement) if one in expected or not row.allows(fabric, one)}
    return rest, {name for name, _ in judgement.unreached}


def around(before: Snapshot, after: Snapshot) -> Snapshot:
    """Return two looks as one: the counters of both are the ends of its window."""

    def both(name: str, last: Observation) -> Observation:
        return replace(last, samples=(*before.devices[name].samples, *last.samples))

    return replace(after, devices={name: both(name, last) for name, last in after.devices.items()})
