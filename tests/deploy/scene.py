"""Deploys on a fabric in memory."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from nornir.plugins.runners import SerialRunner

from netkit import deploy
from netkit.deploy import Gate, GateAnswer, GateQuestion, Journal, Options, Outcome, Provenance, SessionGate
from netkit.deploy.apply import RollbackPlan, never
from netkit.design import Fabric
from netkit.design.fabric import Switch
from netkit.plan import Plan, Running, make
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Files
from tests.deploy.fake import FakeDevice, FakeDriver, FakeHostDriver, Killed, Time
from tests.plan.scenes import Staged, staged
from tests.plan.test_order import EDITS, merged, transition

OPTIONS = Options(parallel=4, revert_s=120, settle_s=20, drain_s=5, poll_s=2, is_disruptive_allowed=True)
TWO_STAGES = {
    "summaries": (["lower ceilings"], ["higher ceilings"]),
    "timers": (["supernet", "lower ceilings"], ["supernet", "higher ceilings", "slower sessions"]),
    "numbers": ([], ["new AS numbers"]),
}
"""Changes that need two stages, since no order of devices is safe: edits of the intent before and after."""
DRAINED: dict[str, Any] = {"overrides": {name: {"drain": True} for name in ("spine01", "spine02")}}
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
"""A folder in memory, where fsync takes no time."""
Strike = Callable[[str, str], None]


def healthy(_question: GateQuestion) -> GateAnswer:
    return GateAnswer("healthy")


def no_strike(_device: str, _operation: str) -> None:
    return


def killing(device: str, operation: str = "commit_config, done") -> Strike:
    """A strike that kills the run at an operation of a device."""

    def strike(name: str, performed: str) -> None:
        if (name, performed) == (device, operation):
            raise Killed

    return strike


@lru_cache
def change(name: str) -> Staged:
    """A change: `asn` takes sessions down, by other timers; `words` only changes descriptions.

    `rails` changes hosts as well.
    `summaries` changes switches in two stages, and hosts between them; `timers` also takes sessions down.
    `drained` drains both spines, which costs no pair.
    `numbers` accepts any AS number of a neighbor between its stages.
    """
    if name in TWO_STAGES or name == "drained":
        first, last = (merged(*(EDITS[edit] for edit in edits)) for edits in TWO_STAGES.get(name, ((), ())))
        way = transition("eos", first, DRAINED if name == "drained" else last)
        found = Staged(way.fabrics[-1], {one: way.running[one] for one in way.intended}, dict(way.intended))
    else:
        found = staged("eos", "timers" if name == "asn" else "description")
    read: dict[str, Files] = {
        device: {file: text for file, text in files.items() if _is_read(found.fabric, device, file)}
        for device, files in found.intended.items()
    }
    running = {
        device: Running({file: text for file, text in one.files.items() if file in read[device]}, one.version)
        for device, one in found.running.items()
    }
    if name == "words":
        running = {
            device: Running(dict(map(_other_words, one.files.items())), one.version) for device, one in running.items()
        }
    if name == "rails":
        running = {
            device: Running(dict(map(_other_mtu, one.files.items())), one.version) for device, one in running.items()
        }
    return Staged(found.fabric, running, read)


def _is_read(fabric: Fabric, device: str, file: str) -> bool:
    found = fabric.device(device)
    return MODELS[found.platform if isinstance(found, Switch) else "linux"].reads(file)


def _other_words(item: tuple[str, str | None]) -> tuple[str, str | None]:
    return item[0], (item[1] or "").replace("description ", "description was ")


def _other_mtu(item: tuple[str, str | None]) -> tuple[str, str | None]:
    return item[0], (item[1] or "").replace("mtu: 9000", "mtu: 4200") if item[0] == "netplan.yaml" else item[1]


@dataclass
class Scene:
    """A plan, devices to deploy it to, and a folder for journals."""

    fabric: Fabric
    plan: Plan
    before: Mapping[str, Running]
    intended: Mapping[str, Files]
    devices: dict[str, FakeDevice]
    time: Time
    root: Path
    options: Options = OPTIONS
    gate: Gate = healthy
    is_stopping: Callable[[], bool] = never
    strike: Strike = no_strike
    connects: list[str] = field(default_factory=list)
    events: list[deploy.DeployEvent] = field(default_factory=list)

    def connect(self, name: str) -> FakeDriver:
        self.connects.append(name)
        kind = FakeDriver if isinstance(self.fabric.device(name), Switch) else FakeHostDriver
        return kind(name, self.devices[name], self.strike)

    def apply(
        self, journal: Journal | None = None, *, provenance: Provenance | None = None, **changes: object
    ) -> Outcome:
        return deploy.apply(
            self.plan,
            self.fabric,
            self.intended,
            connect=self.connect,
            gate=self.gate,
            options=replace(self.options, **changes),  # type: ignore[arg-type]
            journal=journal or self.journal(),
            provenance=provenance,
            on_event=self.events.append,
            runner=SerialRunner(),
            clock=self.time.clock,
            is_stopping=self.is_stopping,
        )

    def resume(
        self, journal: Journal, again: Journal | None = None, *, provenance: Provenance | None = None
    ) -> Outcome:
        return deploy.resume(
            self.fabric,
            connect=self.connect,
            gate=self.gate,
            journal=again or Journal(journal.folder, self.time.clock),
            provenance=provenance,
            on_event=self.events.append,
            runner=SerialRunner(),
            clock=self.time.clock,
            is_stopping=self.is_stopping,
        )

    def end(self, journal: Journal) -> Outcome:
        """Finish a run that was cut off."""
        return deploy.end(
            self.fabric,
            connect=self.connect,
            gate=self.gate,
            journal=Journal(journal.folder, self.time.clock),
            on_event=self.events.append,
            runner=SerialRunner(),
            clock=self.time.clock,
        )

    def plan_rollback(self, undone: Journal) -> RollbackPlan:
        return deploy.plan_rollback(Journal(undone.folder), self.fabric, self.connect)

    def undo(
        self,
        undone: Journal,
        journal: Journal | None = None,
        *,
        back: RollbackPlan | None = None,
        provenance: Provenance | None = None,
    ) -> Outcome:
        return deploy.undo(
            Journal(undone.folder),
            self.fabric,
            connect=self.connect,
            gate=self.gate,
            options=self.options,
            journal=journal or self.journal(),
            back=back,
            provenance=provenance,
            runner=SerialRunner(),
            clock=self.time.clock,
            is_stopping=self.is_stopping,
        )

    def back(self, failed: Journal, journal: Journal | None = None) -> Outcome:
        """Roll back a failed run as a deploy does by itself."""
        return deploy.undo(
            Journal(failed.folder),
            self.fabric,
            connect=self.connect,
            gate=self.gate,
            options=deploy.rollback_options(failed),
            journal=journal or self.journal(),
            on_event=self.events.append,
            runner=SerialRunner(),
            clock=self.time.clock,
            is_stopping=self.is_stopping,
        )

    def journal(self) -> Journal:
        return Journal.new(self.root, self.time.clock)

    def sessions(self) -> SessionGate:
        return SessionGate(self.fabric, self.connect, clock=self.time.clock, runner=SerialRunner())

    def replan(self) -> Plan:
        running = {name: Running(dict(device.running)) for name, device in self.devices.items()}
        return make(self.fabric, running, self.intended)

    def wait(self, seconds: float) -> None:
        """Let time pass, and every timer that is due expire."""
        self.time.wait(seconds)
        for device in self.devices.values():
            device.tick()

    def is_intended(self, name: str) -> bool:
        return self.devices[name].running == dict(self.intended[name])

    def is_as_before(self, name: str) -> bool:
        return self.devices[name].running == dict(self.before[name].files)


@contextmanager
def scene(name: str = "words", *, only: str = "") -> Iterator[Scene]:
    """`only` keeps the switches of one role."""
    found = change(name)
    kept = {device for device in found.intended if not only or _role(found.fabric, device) == only}
    intended = {device: files for device, files in found.intended.items() if device in kept}
    before = {device: running for device, running in found.running.items() if device in kept}
    time = Time()
    devices = {
        device: FakeDevice(time, dict(running.files), dict(running.files), _ports(found.fabric, device))
        for device, running in found.running.items()
    }
    with tempfile.TemporaryDirectory(prefix="nkd", dir=IN_MEMORY) as root:
        plan = scene_plan(name, only)
        yield Scene(found.fabric, plan, before, intended, devices, time, Path(root) / "runs")


@lru_cache
def scene_plan(name: str, only: str = "") -> Plan:
    found = change(name)
    kept = {
        device: files for device, files in found.intended.items() if not only or _role(found.fabric, device) == only
    }
    return make(found.fabric, {device: found.running[device] for device in kept}, kept)


def _role(fabric: Fabric, device: str) -> str:
    found = fabric.device(device)
    return found.role if isinstance(found, Switch) else "host"


def _ports(fabric: Fabric, device: str) -> tuple[str, ...]:
    found = fabric.device(device)
    return tuple(port.name for port in found.fabric_ports) if isinstance(found, Switch) else ()
