"""Work of many devices in several real processes: the results, progress and errors equal those of one."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.design import Fabric, Host, Switch
from netkit.errors import AccessError, Problem, RenderError
from netkit.facts import Facts, Observation, Sample, Snapshot
from netkit.facts.device import Interface
from netkit.judge import catalog
from netkit.project import checking, processes, rendering
from netkit.project.checking import Checking
from netkit.project.connections import Connections
from netkit.project.judging import judged_of
from netkit.project.observing import Looking
from netkit.project.processes import LEAST, Names, ProcessError, ProcessPool, cores, divided
from netkit.project.project import Feedback, Project
from netkit.project.rendering import rendered
from netkit.render.engine import EXTRA
from tests.command import ROOT

PARTS: tuple[Names, ...] = (("a", "b"), ("c",), ("d", "e"))


class Heard(Feedback):
    """Collects progress reports."""

    def __init__(self) -> None:
        self.counted, self.notes = 0, list[str]()

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Callable[[], None]]:
        del total
        yield self.count if title == "working" else lambda: None

    def count(self) -> None:
        self.counted += 1

    def note(self, line: str) -> None:
        self.notes.append(line)


def busy(names: Names, feedback: Feedback) -> tuple[int, Names]:
    with feedback.progress("working", len(names)) as count, feedback.progress("resting", 1) as other:
        for _ in names:
            count()
            other()
    feedback.note(f"{','.join(names)} done by {cores()}")
    return os.getpid(), names


@pytest.mark.parametrize("number", [1, 2, 3, 8])
def test_results_are_in_the_order_of_the_parts(number: int) -> None:
    heard = Heard()
    with ProcessPool(PARTS, busy, number, "working") as spread:
        found = list(spread.results(heard, heard.count))
    assert tuple(names for _, names in found) == PARTS
    assert len({pid for pid, _ in found}) == min(number, len(PARTS))
    assert (os.getpid() in {pid for pid, _ in found}) == (number == 1)
    assert heard.counted == 5
    each = cores() if number == 1 else 1
    assert sorted(heard.notes) == sorted(f"{','.join(names)} done by {each}" for names in PARTS)


def refusing(names: Names, _: Feedback) -> Names:
    if names == ("c",):
        raise AccessError(Problem("c has no address", "add it"))
    return names


def test_an_error_of_one_part_cancels_all() -> None:
    with ProcessPool(PARTS, refusing, 2, "") as spread, pytest.raises(AccessError, match="c has no address; add it"):
        list(spread.results(Heard()))


def test_of_two_errors_the_first_in_order_is_raised_whichever_came_first() -> None:
    refused = multiprocessing.Event()

    def refusing_late_first(names: Names, _: Feedback) -> Names:
        if names == PARTS[0]:
            assert refused.wait(30)
        elif names == PARTS[2]:
            refused.set()
        raise AccessError(Problem(f"{names[0]} has no address", "add it"))

    for number in (1, 3):
        refused.set() if number == 1 else refused.clear()
        with ProcessPool(PARTS, refusing_late_first, number, "") as spread, pytest.raises(AccessError, match=r"^a has"):
            list(spread.results(Heard()))


def broken(names: Names, _: Feedback) -> Names:
    raise KeyError(*names[:1])


def test_a_defect_in_a_process_has_its_traceback() -> None:
    with ProcessPool(PARTS, broken, 2, "") as spread, pytest.raises(RuntimeError, match="KeyError: 'a'") as raised:
        list(spread.results(Heard()))
    assert "in broken" in raised.value.__notes__[0]


def killed(names: Names, _: Feedback) -> Names:
    if names == ("c",):
        os.kill(os.getpid(), signal.SIGKILL)
    return names


def test_a_process_that_dies_is_reported() -> None:
    with ProcessPool(PARTS, killed, 2, "") as spread, pytest.raises(ProcessError, match="a process of netkit died"):
        list(spread.results(Heard()))


@given(st.integers(0, 400), st.integers(0, 9))
def test_parts_are_even_complete_and_in_order(devices: int, number: int) -> None:
    names = tuple(map(str, range(devices)))
    parts = divided(names, number)
    assert tuple(name for part in parts for name in part) == names
    assert len(parts) <= (number or cores())
    sizes = {len(part) for part in parts}
    assert max(sizes) - min(sizes) <= 1
    assert len(parts) == 1 or min(sizes) >= LEAST


def observed(ports: Sequence[str], device: Switch | Host, number: int) -> Observation:
    """A device on which some ports are down, some counters stand still and some were reset."""
    states = {port: Interface(is_up=(number + at) % 7 != 0) for at, port in enumerate(ports)}
    pairs = {port: ((0, 9_000_000), (7, 7), (900, 3))[(number + at) % 3] for at, port in enumerate(ports)}
    counts = [{at: pair[end] for at, pair in pairs.items()} for end in (0, 1)]
    first, last = (
        Sample(at_s, {"rx_bytes": one, "tx_bytes": one}) for at_s, one in zip((100.0, 110.0), counts, strict=True)
    )
    return Observation(device.name, device.platform, Facts(interfaces=states, counters=last.counters), (first, last))


def snapshot(fabric: Fabric) -> Snapshot:
    found = [observed([port.name for port in one.ports], one, number) for number, one in enumerate(fabric.switches)]
    found += [observed([nic.interface for nic in one.nics], one, number) for number, one in enumerate(fabric.hosts)]
    return Snapshot(fabric.name, 200.0, {one.device: one for one in found})


def test_checks_in_several_processes_have_the_findings_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project.open(Path(ROOT, "inventory/reference"))
    whole = snapshot(project.fabric)

    def look(project: Project, _: Connections, looking: Looking) -> Snapshot:
        project.feedback.note(f"{os.getpid()}")
        return replace(whole, devices={device.name: whole.devices[device.name] for device in looking.devices})

    monkeypatch.setattr(checking, "look", look)
    monkeypatch.setattr(processes, "LEAST", 5)
    beside = ("drift", "acceptance", "cluster")
    checks = tuple(one for one in catalog.load().values() if not one.name.startswith(beside))
    heard, found = Heard(), []
    for number in (1, 3):
        mine = replace(project, processes=number, feedback=heard)
        found.append(judged_of(Checking.of(mine, window_s=10.0).context(checks), checks))
    assert len(set(heard.notes)) == 4
    assert found[0] == found[1]
    assert found[0].judgement.findings


@pytest.mark.parametrize("at_once", [1, 5, 1000])
def test_several_processes_render_the_same_as_one(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "FEWEST", 2)
    monkeypatch.setattr(rendering, "AT_ONCE", at_once)
    project = Project.open(ROOT / "inventory" / "reference")
    devices = project.devices()
    one, several = (
        list(rendered(replace(project, processes=number), devices, ztp=True, has_extra=True)) for number in (1, 3)
    )
    assert one == several
    assert [found.device for found in one] == [device.name for device in devices]


def test_a_template_error_is_the_same_from_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "FEWEST", 2)
    template = tmp_path / "templates" / "host" / EXTRA / "broken.conf.j2"
    template.parent.mkdir(parents=True)
    template.write_text("{{ nothing.at.all }}\n", encoding="utf-8")
    project = Project.open(ROOT / "inventory" / "reference", workplace=tmp_path)
    refusals = []
    for number in (1, 3):
        with pytest.raises(RenderError) as caught:
            list(rendered(replace(project, processes=number), project.devices("role=host"), has_extra=True))
        refusals.append(caught.value.problems)
    assert refusals[0] == refusals[1]
    assert "nothing" in refusals[0][0].message
