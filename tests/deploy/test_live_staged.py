"""A change in two stages on running switches, with faults at its steps, while all hosts ping each other.

Wherever a run, its resume or its rollback is cut off, each switch runs the old files, the intended ones, or both.
From there it is finished or rolled back, byte for byte; only a restarting switch loses packets.
A few steps run by default; `NETKIT_KILLED=frr,sonic,nvue,eos` runs every step on each of these NOSes.
"""

import difflib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from netkit import plan as planning
from netkit.access.connect import connect
from netkit.access.endpoints import lab_endpoints
from netkit.access.settings import AccessSettings
from netkit.deploy import Journal
from netkit.design import Fabric
from netkit.lab.folder import LabFolder, ask_keeper
from netkit.platforms.compare import MODELS, compare
from netkit.platforms.config import Files
from tests import intents
from tests.cli.site import Site
from tests.command import ROOT
from tests.deploy.rolling import INTERVAL_S, addresses, pair_call
from tests.deploy.test_live_order import values
from tests.lab.running import needs_lab, running, write_fabric
from tests.lanes import daily

pytestmark = needs_lab
PATIENCE_S, QUIET_S = 900, 1.5
WHOLE = tuple(filter(None, os.environ.get("NETKIT_KILLED", "").split(",")))
STEPS = ("preflight", "sample", "load", "commit", "connect", "verify", "gate", "confirm", "confirmed", "end")
SIGNALS = ("SIGKILL", "SIGINT", "SIGTERM", "SIGHUP")
INTERRUPTED = 1
SECRET = re.compile(r"@secret:(\w+)@")
"""The placeholder with which a lab boots instead of a secret; a rollback fills in the secret."""
Running = dict[str, dict[str, str | None]]


@dataclass(frozen=True)
class Act:
    """A command with its fault: the kind, the device, its step, and at which occurrence of that step."""

    verb: str
    fault: str = ""
    device: str = "-"
    step: str = ""
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.verb} {self.fault} {self.device} {self.step} {self.nth}" if self.fault else self.verb


SAMPLE = (
    (
        Act("deploy", "SIGKILL", "leaf02", "commit"),
        Act("resume", "SIGKILL", "spine01", "confirm"),
        Act("rollback", "SIGKILL", "leaf01", "connect"),
        Act("resume"),
    ),
    (Act("deploy", "SIGKILL", "-", "stage"), Act("resume")),
    (Act("deploy", "SIGHUP", "spine01", "load", 2), Act("rollback")),
    (Act("deploy", "SIGKILL", "leaf02", "confirmed", 2), Act("rollback")),
)
EVERY = (
    (Act("deploy", "unreachable", "leaf02", "commit", 2), Act("rollback")),
    *(
        (Act("attempt", fault, device, step, nth), Act("rollback"))
        for fault, device in (("unreachable", "spine02"), ("restart", "spine02"), ("unreachable", "leaf02"))
        for step, nth in (("commit", 1), ("verify", 2))
    ),
    (Act("deploy"), Act("rollback", "SIGTERM", "leaf01", "gate"), Act("resume")),
    *(
        (Act("deploy", "SIGKILL", ("leaf02", "spine01")[place % 2], step, nth), Act(then))
        for place, step in enumerate(STEPS)
        for nth, then in ((1, "resume"), (1, "rollback"), (2, "resume"), (2, "rollback"))
    ),
    *(
        (Act("deploy", SIGNALS[place % len(SIGNALS)], "-", "stage"), Act(then))
        for place, then in enumerate(("resume", "rollback") * 2)
    ),
    *(
        (Act("deploy"), Act("rollback", "SIGKILL", "leaf02", step, nth), Act("resume"))
        for step in STEPS
        for nth in (1, 2)
    ),
    *(
        (Act("deploy", fault, "spine02", step, nth), Act("rollback"))
        for fault in ("unreachable", "hangs", "restart")
        for step, nth in (("load", 1), ("commit", 2), ("connect", 1), ("confirm", 2))
    ),
)


@dataclass
class Bench:
    """A lab in which a change is made and rolled back, over and over."""

    site: Site
    platform: str
    intents: tuple[dict[str, Any], dict[str, Any]]
    at: int = 0
    """Which of the two the switches run."""

    @property
    def lab(self) -> LabFolder:
        return LabFolder(self.site.lab.home / self.site.lab.name)

    def fabric(self) -> Fabric:
        return intents.fabric(self.intents[self.at])

    def running(self) -> Running:
        record = json.loads((self.lab.path / "lab.json").read_text(encoding="utf-8"))
        endpoints = lab_endpoints(record, self.lab.path, AccessSettings())
        found: Running = {}
        for switch in self.fabric().switches:
            driver = connect(replace(endpoints[switch.name], timeout_s=120), lambda name: f"{name}-of-a-test")
            driver.open()
            try:
                files = driver.running_files()
                found[switch.name] = {file: text and SECRET.sub(r"\1-of-a-test", text) for file, text in files.items()}
            finally:
                driver.close()
        return found

    def act(self, act: Act, run: str) -> None:
        """Run a command with its fault."""
        words = {
            "deploy": "deploy",
            "attempt": "deploy --on-failure rollback",
            "resume": f"deploy --resume {run}",
            "rollback": f"rollback {run}",
        }
        netkit = self.site.words(*words[act.verb].split(), "--yes")[3:]
        struck = [act.fault, act.device, act.step, str(act.nth), self.site.lab.name]
        module = ["tests.deploy.struck", *struck] if act.fault else ["netkit"]
        done = subprocess.run(
            [sys.executable, "-m", *module, *netkit],
            cwd=ROOT,
            env=self.site.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        codes = {"": {0}, "SIGKILL": {-signal.SIGKILL}} | {name: {INTERRUPTED} for name in SIGNALS[1:]}
        said = f"{act}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert done.returncode in codes.get(act.fault, {0, 1, 4}), said
        assert "Traceback" not in done.stderr, said

    def assert_known(self, runs: Iterable[Path], before: Running) -> None:
        """Assert that every switch runs what a plan names, or what ran before."""
        known: dict[str, list[Files]] = {}
        for name, files in before.items():
            known[name] = [{file: text for file, text in files.items() if text is not None}]
        for orders in (Journal(run).orders() for run in runs):
            for name, intended in orders.intended.items():
                known[name].append(intended)
            for bridge in orders.plan.bridges:
                intended = orders.intended[bridge.device]
                known[bridge.device].append(planning.keeping(self.fabric(), bridge.device, intended, bridge.kept))
        for name, files in self.running().items():
            changes = [compare(MODELS[self.platform], files, one).changes for one in known[name]]
            assert () in changes, (name, changes)

    def tried(self, acts: tuple[Act, ...]) -> None:
        """Deploy the change with faults on the way, and finish it or roll it back."""
        before, was, runs = self.running(), self.at, set(self.site.runs())
        self.at = 1 - self.at
        write_fabric(self.site.lab.fabric, self.intents[self.at])
        calls = {pair: pair_call(pair) for pair in addresses(self.fabric())}
        ask_keeper(self.lab, "begin-calls", interval_s=INTERVAL_S, calls=[asdict(call) for call in calls.values()])
        time.sleep(QUIET_S)
        try:
            first = newest = ""
            for act in acts:
                self.act(act, first if act.verb == "rollback" else newest)
                assert self.site.lab.lab("heal", "--all").returncode == 0
                folders = sorted(set(self.site.runs()) - runs)
                first, newest = folders[0].name, folders[-1].name
                self.assert_known(folders, before)
            time.sleep(QUIET_S)
        finally:
            heard = ask_keeper(self.lab, "end-calls")["heard"]
        if any(act.verb == "rollback" for act in acts):
            self.at = was
            assert not (changed := differences(before, self.running())), changed
        write_fabric(self.site.lab.fabric, self.intents[self.at])
        assert self.site.netkit("plan", "--detailed-exitcode").returncode == 0
        assert all(one["sent"] and not one["problem"] for one in heard)
        if not any(act.fault == "restart" for act in acts):
            assert [(one["name"], one["gaps"]) for one in heard if one["gaps"]] == []


def differences(before: Running, after: Running) -> str:
    """Differences between the files of switches, line by line."""
    lines: list[str] = []
    for name in before:
        for file in {**before[name], **after[name]}:
            was, now = ((found[name].get(file) or "").splitlines() for found in (before, after))
            lines += difflib.unified_diff(was, now, f"{name} {file} before", f"{name} {file} after", lineterm="")
    return "\n".join(lines)


@contextmanager
def bench(platform: str, folder: Path) -> Iterator[Bench]:
    found = [values(platform, ["supernet", name]) for name in ("lower ceilings", "higher ceilings")]
    with running(write_fabric(folder / "fabric", found[0]), name="st") as lab:
        site = Site(lab, folder)
        assert site.netkit("deploy", "--yes", "--disruptive", "--busy").returncode == 0
        yield Bench(site, platform, (found[0], found[1]))


@dataclass
class Benches:
    """One lab for many changes; a new one after a change that failed and left an unknown state."""

    platform: str
    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)
    found: Bench | None = None
    booted: int = 0

    def tried(self, acts: tuple[Act, ...]) -> None:
        if self.found is None:
            self.booted += 1
            self.found = self.stack.enter_context(bench(self.platform, self.folder / str(self.booted)))
        try:
            self.found.tried(acts)
        except BaseException:
            self.found = None
            self.stack.close()
            raise


@pytest.fixture(scope="module")
def benches(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    platform = str(request.param)
    found = Benches(platform, tmp_path_factory.mktemp(platform))
    with found.stack:
        yield found


def named(acts: object) -> str:
    return ", ".join(map(str, acts)) if isinstance(acts, tuple) else str(acts)


@pytest.mark.parametrize("benches", ["frr"], indirect=True)
@pytest.mark.parametrize("acts", daily(SAMPLE, SAMPLE[3]), ids=named)
def test_a_change_in_two_stages_is_finished_or_rolled_back_from_any_step(
    acts: tuple[Act, ...], benches: Benches
) -> None:
    benches.tried(acts)


@pytest.mark.skipif(not WHOLE, reason="NETKIT_KILLED=frr,sonic,nvue,eos")
@pytest.mark.parametrize("benches", WHOLE or ["frr"], indirect=True)
@pytest.mark.parametrize("acts", [*SAMPLE, *EVERY] if WHOLE else [SAMPLE[0]], ids=named)
def test_a_change_in_two_stages_is_finished_or_rolled_back_from_every_step(
    acts: tuple[Act, ...], benches: Benches
) -> None:
    benches.tried(acts)
