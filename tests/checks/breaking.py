"""A lab of one platform that is broken row by row of the table of faults, and looked at as `netkit check` does."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from netkit import plan as planning
from netkit.cli.checking import Checking
from netkit.cli.fabric import Project
from netkit.cli.fleet import fleet
from netkit.cli.observing import Looking, look
from netkit.design import Host, Switch
from netkit.facts import Absent, Observation, Snapshot
from netkit.judge import Finding, Scene, Verdict, catalog
from netkit.judge.run import Judgement, run
from netkit.lab import remote
from netkit.lab.folder import LabFolder
from netkit.observe import Options
from tests.checks.fault_table import Found, Row, place_of
from tests.facts import untold
from tests.intents import ON_PLATFORM
from tests.lab.running import RunningLab, intent, on_platform, running, until, write_fabric

VERSIONS = {"nvue": "5.16.1", "sonic": "202505", "eos": "4.35.1F", "frr": "8.4.4"}
SECRETS = {f"NETKIT_SECRET_{name}": f"$6$made{name.lower()}" for name in ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")}
WINDOW_S = 2.5
LOADED_WINDOW_S = 6.0
"""Of CNPs a lab sends some in a second, where a fabric sends thousands."""
DEADLINE_S = 25.0
PATIENCE_S, SETTLING_S = 40.0, 100.0
"""How long the row before may linger, and how long daemons may take to notice."""
FEW_CNPS = {"cnp_minimum": 25, "cnp_loss_warn_percent": 60.0, "cnp_loss_fail_percent": 60.0}
"""Few CNPs, counted at moments that are not quite the same."""


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
        remote.ask(self.folder, "break", fault=row.fault, place=place_of(self.project.fabric, row.at), options=options)

    def mended(self, row: Row) -> None:
        """Heal it, and let nothing of it be left."""
        place = place_of(self.project.fabric, row.at)
        remote.ask(self.folder, "heal", fault=row.fault, place=place)
        remote.ask(self.folder, "calm")
        if row.fault == "counter-wrap":  # it lasts until counters are cleared
            remote.ask(self.folder, "break", fault="counter-reset", place=place, options=[])
            remote.ask(self.folder, "heal", fault="counter-reset", place=place)

    def loaded(self, nic: str) -> None:
        """Let everybody send to a NIC."""
        remote.ask(self.folder, "incast", place=nic, senders=3, seconds=300)

    def look(self, window_s: float) -> Snapshot:
        """Look once, or at both ends of a window."""
        options = Options(window_s=window_s, has_config=True, deadline_s=DEADLINE_S)
        devices: list[Switch | Host] = [*self.project.fabric.switches, *self.project.fabric.hosts]
        return look(self.project, fleet(self.project, self.lab.name), Looking(devices, options))

    def judged(self, snapshot: Snapshot, *, is_loaded: bool = False) -> Judgement:
        """Return what all checks say; under load they judge CNPs, however few the lab sends."""
        plan = planning.read(snapshot.plan) if snapshot.plan else None
        limits = self.project.loaded.intent.thresholds
        limits = limits.model_copy(update=FEW_CNPS) if is_loaded else limits
        scene = Scene(self.project.fabric, snapshot, limits, plan=plan)
        return run(scene, catalog.select(catalog.load(), []))


@contextmanager
def ward(folder: Path, platform: str) -> Iterator[Ward]:
    """Boot a fabric of one platform as it is meant to be."""
    model = ON_PLATFORM[platform]["leaf"]["model"]
    values = on_platform(platform, intent(), model=model, version=VERSIONS[platform])
    values |= {"purpose": "lab"} if platform == "frr" else {}
    fabric = write_fabric(folder / "fabric", values)
    with running(fabric, name="f") as lab, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETKIT_LAB_DIR", str(lab.home))
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        project = Checking.of(fabric, limit="", lab=lab.name, window_s=0, snapshot=None).project
        found = Ward(lab, project)
        until(lambda: is_watched(found.look(0)), "BFD watches every session: it begins seconds after BGP")
        yield found


def is_watched(snapshot: Snapshot) -> bool:
    """Whether BFD is up on every session of every switch."""
    told = [one.facts.sessions for one in snapshot.devices.values() if one.platform != "linux"]
    return all(not isinstance(one, Absent) and all(found.is_bfd_up for found in one.values()) for one in told)


def told(judgement: Judgement) -> set[Found]:
    """Return what is wrong."""
    return {as_told(one) for one in judgement.findings if one.verdict > Verdict.SKIPPED}


def as_told(one: Finding) -> Found:
    """Return what the table says of a finding."""
    return one.verdict.word, one.check, one.device, one.place


def assert_clean(ward: Ward) -> None:
    """A healthy lab is clean: nothing is wrong, everybody was reached, and much was judged."""
    judgement = ward.judged(ward.look(WINDOW_S))
    found = told(judgement)
    assert not found, found
    assert not judgement.unreached, judgement.unreached
    assert judgement.examined > 100


def assert_told_as_documented(ward: Ward, column: str, device: str) -> None:
    """What a device does not tell is what the table in the docs says."""
    facts = ward.look(0).devices[device].facts
    assert untold.by_device(facts, is_host=column == "hosts") == untold.by_the_docs(column)


def assert_found(ward: Ward, row: Row) -> None:
    """A fault is found as its row says, and nothing else is."""
    fabric = ward.project.fabric
    expected = (row.expected(fabric), set(row.unreached))
    deadline = time.monotonic() + (SETTLING_S if row.settles else PATIENCE_S)
    before = ward.look(0) if row.is_within else None
    if row.load:
        ward.loaded(row.load)
    ward.broken(row)
    try:
        while True:
            seen = _around(before, ward.look(0)) if before else ward.look(LOADED_WINDOW_S if row.load else WINDOW_S)
            judgement = ward.judged(seen, is_loaded=bool(row.load))
            all_told = told(judgement)
            rest = {one for one in all_told if one in expected[0] or not row.allows(fabric, one)}
            found = (rest, {name for name, _ in judgement.unreached})
            if found == expected or time.monotonic() >= deadline:
                break
    finally:
        ward.mended(row)
    assert found == expected, [one for one in judgement.findings if as_told(one) in found[0] - expected[0]]


def _around(before: Snapshot, after: Snapshot) -> Snapshot:
    """Return two looks as one: the counters of both are the ends of its window."""

    def both(name: str, last: Observation) -> Observation:
        return replace(last, samples=(*before.devices[name].samples, *last.samples))

    return replace(after, devices={name: both(name, last) for name, last in after.devices.items()})


def assert_mended(ward: Ward) -> None:
    """Nothing of what was broken is left, once daemons have noticed."""
    deadline = time.monotonic() + SETTLING_S
    while True:
        judgement = ward.judged(ward.look(WINDOW_S))
        if not told(judgement) or time.monotonic() >= deadline:
            break
    found = told(judgement)
    assert not found, found
    assert not judgement.unreached, judgement.unreached
