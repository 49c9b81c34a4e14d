"""Owned lines that a change adds, edits or removes: however it is reverted, a switch runs and saves its old state.

The cases are listed by branch of each platform's ownership, in `takeback/`. One change covers those of all branches at
once, as far as they are applied alike; each branch is judged separately. The lane whole runs every way to revert on
each platform with one kind of change, and every way with every kind on the platforms together; by default each
platform runs a different one. `NETKIT_TAKEBACK=all` with `--whole` runs the whole matrix.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.design import Fabric
from netkit.errors import NetkitError
from netkit.platforms.compare import MODELS, ConfigComparison, Situation, compare
from netkit.platforms.config import Config, Files
from netkit.platforms.config import Path as Place
from netkit.platforms.driver import Candidate
from netkit.platforms.secrets import SECRET
from tests import intents
from tests.command import run
from tests.deploy.live_scene import values
from tests.lab.running import RunningLab, needs_lab, running, until, write_fabric
from tests.lanes import is_whole
from tests.platforms import driven

PLATFORMS = ("frr", "nvue", "eos", "sonic")
KINDS = ("added", "changed", "removed")
LONG_S, SHORT_S = 3600, 15
PLACEHOLDERS = {
    "snmpd.conf": re.compile(r'"@secret:\w+@"'),
    "startup.yaml": re.compile(r"""["']@secret:\w+@["']"""),
    "eos.cfg": re.compile(r"(?:sha512 )?@secret:\w+@"),
}
PLACEHOLDER = re.compile(r"@secret:\w+@")
QUOTED = re.compile(r"'(\d+|true|false)'")
CASES = Path(__file__).parent / "takeback"
SONIC_PORTS = {"swp33s0": "Ethernet256", "swp33s1": "Ethernet260"}
Branch = Place


@dataclass(frozen=True)
class Case:
    """What happens to one owned branch of a platform."""

    branch: Branch
    base: Mapping[Place, str | None]
    edits: Mapping[str, Mapping[Place, str | None]]
    """Kind of change → places with the new value of each; a kind without such a change is missing."""
    is_alone: bool


@cache
def cases(platform: str) -> tuple[Case, ...]:
    """The cases of a platform; those of FRR's file also apply to a switch that runs SONiC."""
    found = yaml.safe_load((CASES / f"{platform}.yaml").read_text(encoding="utf-8"))
    if platform == "sonic":
        text = (CASES / "frr.yaml").read_text(encoding="utf-8")
        for port, name in SONIC_PORTS.items():
            text = text.replace(port, name)
        routing = {branch: case for branch, case in yaml.safe_load(text).items() if branch.startswith("frr.conf")}
        owned = {" / ".join(branch) for branch in MODELS["sonic"].ownership.owned}
        found = {branch: case for branch, case in routing.items() if branch in owned} | found
    return tuple(_case(tuple(branch.split(" / ")), case) for branch, case in found.items())


def _case(branch: Branch, found: Mapping[str, Any]) -> Case:
    edits = {kind: _edits(found[kind], kind) for kind in KINDS if isinstance(found[kind], list)}
    return Case(branch, _edits(found.get("base", []), "base"), edits, "alone" in found)


def _edits(lines: list[str], kind: str) -> dict[Place, str | None]:
    sides = ((place, value) for place, _, value in (line.partition(" = ") for line in lines))
    return {tuple(place.split(" / ")): None if kind == "removed" else value for place, value in sides}


@cache
def fabric(platform: str) -> Fabric:
    return intents.fabric(intent(platform))


def intent(platform: str) -> dict[str, Any]:
    """The intent: a leaf for each way to revert."""
    return values(platform, {"rails": len(tried_here(platform)), "units": [{"unit": 1, "hosts": 1}]})


@cache
def base(platform: str, device: str) -> dict[str, str]:
    """The running files before: what is rendered, and what the cases need besides."""
    edits = {place: value for case in cases(platform) for place, value in case.base.items()}
    return edited(platform, driven.files_of(fabric(platform), device), edits)


def edited(platform: str, files: Files, edits: Mapping[Place, str | None]) -> dict[str, str]:
    """Files with entries set, or with everything at and below a place removed."""
    model = MODELS[platform]
    config = dict(model.read(files))
    for place, value in edits.items():
        if value is None:
            for found in [found for found in config if found[: len(place)] == place]:
                del config[found]
        else:
            config = placed(config, place, value)
    made = model.text(config)
    for file in made.keys() & files.keys():
        if model.read({file: made[file]}) == model.read({file: files[file]}):
            made[file] = files[file]
            continue
        for secret in PLACEHOLDERS.get(file, PLACEHOLDER).findall(files[file]):
            made[file] = made[file].replace(SECRET, secret, 1)
    return {file: QUOTED.sub(r"\1", text) if file == "netplan.yaml" else text for file, text in made.items()}


def placed(config: Config, place: Place, value: str) -> dict[Place, str]:
    """Set an entry; a new one goes after the last of its section that has nothing below it."""
    if place in config:
        return {**config, place: value}
    headers = {found[:-1] for found in config}
    siblings = [found for found in config if found[:-1] == place[:-1] and found not in headers]
    entries = list(config.items())
    at = list(config).index(siblings[-1]) + 1 if siblings else len(entries)
    return dict([*entries[:at], (place, value), *entries[at:]])


def below(config: Config, branch: Branch) -> dict[Place, str]:
    """The part of a configuration in a branch."""
    return {place: value for place, value in config.items() if is_below(place, branch)}


def is_below(place: Place, branch: Branch) -> bool:
    return len(place) >= len(branch) and all(map(fnmatchcase, place, branch))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_owned_branch_has_its_case(platform: str) -> None:
    ownership = MODELS[platform].ownership
    assert {case.branch for case in cases(platform)} == {*ownership.owned, *ownership.claimed}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_case_changes_only_its_branch_and_as_declared(platform: str, kind: str) -> None:
    before = base(platform, "leaf01")
    for case in cases(platform):
        if kind in case.edits:
            changes = difference(platform, before, edited(platform, before, case.edits[kind])).changes
            kinds = {(change.is_addition, change.is_removal) for change in changes}
            assert kinds == {(kind == "added", kind == "removed")}, case.branch
            assert [change.path for change in changes if not is_below(change.path, case.branch)] == [], case.branch


def difference(platform: str, before: Files, after: Files) -> ConfigComparison:
    """The changes, whichever of the two configurations owns a claimed branch."""
    found = (compare(MODELS[platform], before, after, owner=owner) for owner in (before, after))
    return max(found, key=lambda one: len(one.changes))


@cache
def batches(platform: str, kind: str) -> tuple[tuple[Case, ...], ...]:
    """Cases of a kind that fit into one change: applied alike, and none hides another."""
    found: dict[object, list[Case]] = {}
    before = base(platform, "leaf01")
    for case in cases(platform):
        if kind in case.edits:
            compared = difference(platform, before, edited(platform, before, case.edits[kind]))
            key = case.branch if case.is_alone else way(platform, compared)
            found.setdefault(key, []).append(case)
    return tuple(map(tuple, found.values()))


def way(platform: str, found: ConfigComparison) -> str:
    version = fabric(platform).switch("leaf01").version
    return MODELS[platform].strategy(Situation(found.changes, found.running, found.intended, version)).method


@dataclass
class Switch:
    """A leaf of a lab, as netkit reaches it."""

    lab: RunningLab
    platform: str
    name: str

    def state(self) -> dict[str, str | None]:
        """The running configuration, and what is read at boot."""
        with self.driver() as driver:
            startup = driver.get_config(retrieve="startup")["startup"]
            found = {**driver.running_files(), "startup": startup}
        return {name: in_order(text) for name, text in found.items()} if self.platform == "nvue" else found

    def driver(self) -> Any:
        return driven.driver(self.lab, self.name, self.platform)

    def make(self, files: Files, revert_s: int | None = None, owner: Files | None = None) -> None:
        """Make it run files; without a timer they are saved."""
        with self.driver() as driver:
            found = compare(MODELS[self.platform], driver.running_files(), files, owner=owner or files)
            driver.load_candidate(Candidate(files, found.changes, way(self.platform, found)))
            driver.commit_config(revert_in=revert_s or LONG_S)
            left = compare(MODELS[self.platform], driver.running_files(), files, owner=owner or files).changes
            assert left == ()
            if revert_s is None:
                driver.confirm_commit()

    def goes_back(self) -> None:
        """Wait until no change is pending."""
        with self.driver() as driver:
            until(lambda: not driver.has_pending_commit(), "the change is taken back")


def in_order(text: str | None) -> str:
    """A configuration of NVUE with sorted keys: their order has no meaning."""
    return json.dumps(json.loads(text or "null"), indent=1, sort_keys=True)


@dataclass(frozen=True)
class End:
    """The state of a switch before a change and after it was reverted."""

    kind: str
    batch: tuple[Case, ...]
    was: Mapping[str, str | None]
    now: Mapping[str, str | None]
    error: str


Ends = tuple[str, Mapping[str, list[End]]]
"""The platform, and the results by way to revert."""


def by_the_timer(switch: Switch, after: Files, _before: Files) -> None:
    for seconds in (SHORT_S, 5 * SHORT_S):  # on a busy machine the timer may expire before the change is applied
        with suppress(NetkitError, AssertionError):
            switch.make(after, seconds)
            return switch.goes_back()
        switch.goes_back()
    switch.make(after, 25 * SHORT_S)
    return switch.goes_back()


def by_a_rollback(switch: Switch, after: Files, _before: Files) -> None:
    switch.make(after, LONG_S)
    with switch.driver() as driver:
        driver.rollback()


def by_a_deploy(switch: Switch, after: Files, before: Files) -> None:
    switch.make(after)
    switch.make(before, owner=after)


def by_a_reboot(switch: Switch, after: Files, _before: Files) -> None:
    switch.make(after, LONG_S)
    assert switch.lab.lab("restart", switch.name).returncode == 0


WAYS: dict[str, Callable[[Switch, Files, Files], None]] = {
    "timer": by_the_timer,
    "rollback": by_a_rollback,
    "deploy": by_a_deploy,
    "reboot": by_a_reboot,
}


IS_WHOLE = os.environ.get("NETKIT_TAKEBACK") == "all"
SAVE = {"eos": "FastCli -p 15 -c 'write memory'", "nvue": "nv config save", "sonic": "sudo config save -y"}
"""Have a switch write startup in its own notation, as it does when a change is confirmed."""


@cache
def tasks(platform: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The way to revert and the kinds of change for each leaf; in the whole matrix timers run in parallel."""
    if IS_WHOLE:
        return (*(("timer", (kind,)) for kind in KINDS), *((back, KINDS) for back in WAYS if back != "timer"))
    at = PLATFORMS.index(platform)
    return tuple((back, (KINDS[(at + number) % len(KINDS)],)) for number, back in enumerate(WAYS))


def tried_here(platform: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What the lane runs: by default one way to revert; tests/deploy and those of each driver cover the others too."""
    daily = dict(zip(PLATFORMS, WAYS, strict=True))[platform]
    return tuple(task for task in tasks(platform) if is_whole() or task[0] == daily)


def cells() -> list[tuple[str, str, str]]:
    """Platform, kind of change and way to revert of all runs."""
    return [(platform, kind, back) for platform in PLATFORMS for back, kinds in tasks(platform) for kind in kinds]


def test_every_way_to_revert_is_run_with_every_kind_of_change_and_on_every_platform() -> None:
    assert {(kind, back) for _, kind, back in cells()} == {(kind, back) for kind in KINDS for back in WAYS}
    assert {(platform, back) for platform, _, back in cells()} == {(one, back) for one in PLATFORMS for back in WAYS}
    assert {(platform, kind) for platform, kind, _ in cells()} == {(one, kind) for one in PLATFORMS for kind in KINDS}


def test_the_default_lane_has_each_way_to_revert_and_each_kind_of_change() -> None:
    daily = [task for platform in PLATFORMS for task in tried_here(platform)]
    assert {back for back, _ in daily} == set(WAYS)
    assert {kind for _, kinds in daily for kind in kinds} == set(KINDS)


@pytest.fixture(scope="module", params=PLATFORMS)
def ends(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ends]:
    """Boot a fabric, and run each way to revert on leaves of its own."""
    platform = request.param
    tasks_here = tried_here(platform)
    folder = write_fabric(tmp_path_factory.mktemp("fabric"), intent(platform))
    configs = tmp_path_factory.mktemp("configs")
    assert run("render", "--fabric", folder, "--out", configs).returncode == 0
    leaves = [f"leaf{number:02}" for number, _ in enumerate(tasks_here, 1)]
    for leaf in leaves:
        for file, text in base(platform, leaf).items():
            (configs / leaf / file).write_text(resolved(text), encoding="utf-8")
    booted = running(folder, "--configs", str(configs), name="tb")
    with booted as lab, ThreadPoolExecutor(len(leaves)) as pool:
        switches = [Switch(lab, platform, leaf) for leaf in leaves]
        found = pool.map(lambda switch, task: list(tries(switch, *task)), switches, tasks_here)
        tried_ends: dict[str, list[End]] = {back: [] for back, _ in tasks_here}
        for (back, _), ended in zip(tasks_here, found, strict=True):
            tried_ends[back] += ended
        yield platform, tried_ends


def resolved(text: str) -> str:
    return re.sub("@secret:([A-Z_]+)@", lambda found: driven.secret(found[1]), text)


def tries(switch: Switch, back: str, kinds: tuple[str, ...]) -> Iterator[End]:
    """Yield the result of each change."""
    if switch.platform in SAVE:
        switch.lab.shell(switch.name, SAVE[switch.platform])
    before = base(switch.platform, switch.name)
    for kind in kinds:
        for batch in batches(switch.platform, kind):
            yield tried(switch, back, before, kind, batch)


def tried(switch: Switch, back: str, before: Files, kind: str, batch: tuple[Case, ...]) -> End:
    edits = {place: value for case in batch for place, value in case.edits[kind].items()}
    was, error = switch.state(), ""
    try:
        WAYS[back](switch, edited(switch.platform, before, edits), before)
    except (NetkitError, AssertionError) as found:
        error = repr(found)
    return End(kind, batch, was, switch.state(), error)


@needs_lab
def test_a_reverted_change_leaves_no_trace(ends: Ends) -> None:
    platform, ends_by_way = ends
    for back, found in ends_by_way.items():
        kinds = {kind for one, kind, way in cells() if (one, way) == (platform, back)}
        assert {end.kind for end in found} == kinds
        for end in found:
            assert end.error == "", (back, end.kind)
            was, now = (parsed(platform, state) for state in (end.was, end.now))
            assert {case.branch: below(now, case.branch) for case in end.batch} == {
                case.branch: below(was, case.branch) for case in end.batch
            }, (back, end.kind)
            assert end.now == end.was, (back, end.kind)


def parsed(platform: str, state: Mapping[str, str | None]) -> Config:
    model = MODELS[platform]
    return model.parse({file: text for file, text in state.items() if text is not None and model.reads(file)})
