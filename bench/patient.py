"""A lab with random faults, and the checks that run on it, one process each."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from bench.measure import BenchError
from netkit import design, intent
from netkit.design import Fabric
from netkit.hardware import Catalog
from netkit.store import Source
from netkit.store.store import open_store

SECRETS = {f"NETKIT_SECRET_{name}": "bench-bench-bench" for name in ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")}
ON_PORTS = ("pause-storm", "dim-optic", "hot-optic", "mixed-optic-firmware", "wrong-mtu", "link-flap")
ON_NICS = ("pfc-off", "dirty-lane", "wrong-mtu", "wrong-dscp-map", "missing-host-route")
ON_DEVICES = ("unreachable", "refuses-auth")
WORK_DONE = {0, 1, 4}
PATIENCE_S = 900
LONGEST_LOG = 2000


@dataclass
class Patient:
    """A running lab in which faults come and go."""

    fabric: Path
    home: Path
    built: Fabric
    active: list[tuple[str, str]] = field(default_factory=list)
    faults: int = 0

    @classmethod
    @contextmanager
    def up(cls, fabric: Path, home: Path) -> Iterator["Patient"]:
        """Boot a copy of a fabric for the length of a block."""
        copy = home / "fabric"
        shutil.copytree(fabric, copy)
        patient = cls(copy, home, design.build(intent.load(copy).intent, Catalog()))
        patient.netkit("lab", "up", "--fabric", str(copy), "--lab", "rounds")
        try:
            yield patient
        finally:
            patient.netkit("lab", "down", "--lab", "rounds")

    def words(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "netkit", *arguments]

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment in which commands find the lab and its state."""
        places = {"NETKIT_LAB_DIR": str(self.home), "NETKIT_STATE_DIR": str(self.home / "state")}
        return {**os.environ, **places, **SECRETS, "NETKIT_STORE": ""}

    def netkit(self, *arguments: str) -> str:
        """Run a command that must succeed."""
        done = subprocess.run(
            self.words(*arguments),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode != 0:
            raise BenchError(f"netkit {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def change(self, chance: random.Random, most: int) -> None:
        """Inject or heal one fault."""
        if self.active and (len(self.active) >= most or chance.random() < 0.5):
            fault, place = self.active.pop(chance.randrange(len(self.active)))
            self.netkit("lab", "heal", "--lab", "rounds", place, fault)
            return
        fault, place = self._drawn(chance)
        if (fault, place) in self.active:
            return
        with suppress(BenchError):  # without optical power there is no dim-optic: nothing changes in this round
            self.netkit("lab", "break", "--lab", "rounds", fault, place)
            self.active.append((fault, place))
            self.faults += 1

    def _drawn(self, chance: random.Random) -> tuple[str, str]:
        switch, host = chance.choice(self.built.switches), chance.choice(self.built.hosts)
        port, nic = chance.choice(switch.ports).name, chance.choice(host.nics).interface
        device = chance.choice((switch.name, host.name))
        places = [(fault, f"{switch.name}:{port}") for fault in ON_PORTS]
        places += [(fault, f"{host.name}:{nic}") for fault in ON_NICS]
        return chance.choice([*places, *((fault, device) for fault in ON_DEVICES)])

    def heal_all(self) -> None:
        self.netkit("lab", "heal", "--lab", "rounds", "--all")
        self.active.clear()


class Checks:
    """Scheduled checks of a lab, and the states in their store after each."""

    def __init__(self, patient: Patient, folder: Path, url: str) -> None:
        self.patient, self.store = patient, folder / "rounds.db"
        receivers = [{"name": "hook", "kind": "webhook", "url": url, "groups": 100}]
        settings = {"receivers": receivers, "flapping": {"changes": 1000}}  # nothing is damped: each change is counted
        (patient.fabric / "notify.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        self.seen: dict[tuple[str, str, str], list[str]] = {}
        self.peaks_mb: list[float] = []
        self.kills = self.saved_by_killed = self.done = 0
        self._last_s = 10.0
        self._source = Source(patient.built.name, "rounds")

    @property
    def changes(self) -> int:
        """The number of state changes seen."""
        return sum(map(len, self.seen.values()))

    def run(self) -> None:
        """Run one check, as a schedule does."""
        before, began_s = self._runs(), time.monotonic()
        process = self._started()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self._last_s = time.monotonic() - began_s
        if process.returncode not in WORK_DONE or self._runs() != before + 1:
            output = self._log().read_text()[-LONGEST_LOG:]
            raise BenchError(f"a check ended with {process.returncode} and stored no run: {output}")
        self.peaks_mb.append(usage.ru_maxrss * 1024 / 1e6)
        self.done += 1
        self._look()

    def run_and_kill(self, part: float) -> None:
        """Start a check, and kill it with its children after a share of the last one's duration."""
        before = self._runs()
        process = self._started()
        with suppress(subprocess.TimeoutExpired):
            process.wait(self._last_s * part)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.kills += 1
        self.saved_by_killed += self._runs() - before
        self._look()

    def waiting(self) -> int:
        """How many rounds have notifications queued for the receiver."""
        with open_store(str(self.store)) as store:
            return sum(one.rounds for one in store.outbox_of(self._source).waiting())

    def damage(self) -> str:
        """What is wrong with the store; empty if nothing is."""
        with closing(sqlite3.connect(self.store)) as opened:
            (output,) = opened.execute("PRAGMA integrity_check").fetchone()
            (orphans,) = opened.execute(
                "SELECT count(*) FROM netkit_findings WHERE run NOT IN (SELECT id FROM netkit_runs)"
            ).fetchone()
        with open_store(str(self.store)) as store:
            runs = store.runs(self._source)
            for one in runs:
                store.judgement(one)
        wanted = self.done + self.saved_by_killed
        found = [] if output == "ok" else [str(output)]
        found += [f"{orphans} findings of no run"] if orphans else []
        return "; ".join(found + ([f"{len(runs)} runs instead of {wanted}"] if len(runs) != wanted else []))

    def _started(self) -> subprocess.Popen[bytes]:
        how = ("--since", "last", "--changes", "--notify", "--profile", "light", "--window", "1", "--deadline", "10m")
        where = ("--fabric", str(self.patient.fabric), "--lab=rounds", f"--store={self.store}")
        words = self.patient.words("check", *where, *how)
        with self._log().open("ab") as log:
            return subprocess.Popen(words, env=self.patient.environment, stdout=log, stderr=log, start_new_session=True)

    def _log(self) -> Path:
        return self.store.with_suffix(".log")

    def _runs(self) -> int:
        if not self.store.exists():
            return 0
        with open_store(str(self.store)) as store:
            return len(store.runs(self._source))

    def _look(self) -> None:
        """Record changed states: one process stores at most one run, so none is missed."""
        with open_store(str(self.store)) as store:
            states = store.states(self._source).items
        for state in states:
            known = self.seen.get(state.key, ["pass"])
            if known[-1] != state.verdict.word:
                self.seen.setdefault((state.key.check, state.key.device, state.key.place), []).append(
                    state.verdict.word
                )
