"""Deploys on the switches of a running lab."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from netkit import deploy, design
from netkit.access.connect import connect
from netkit.access.endpoints import lab_endpoints
from netkit.access.settings import AccessSettings
from netkit.deploy import Gate, Journal, Options, Outcome, SessionGate
from netkit.deploy.apply import ignore_event
from netkit.deploy.fan_out import each, threads
from netkit.deploy.model import EventHandler
from netkit.design import Fabric
from netkit.errors import NetkitError
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.plan import Plan, Running, Unreachable, make
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Config, Files
from netkit.platforms.driver import Driver
from netkit.render import Engine, render
from tests.lab.running import RunningLab

OPTIONS = Options(revert_s=600, settle_s=120, drain_s=1, watch_s=2, poll_s=0.5, parallel=8)
TIMEOUT_S = 120.0


def secret(name: str) -> str:
    """A secret that no switch prints by chance."""
    return "$6$salt$hash" if name == "LOGIN_HASH" else f"hidden-{name.lower()}-7531"


def built(intent: Mapping[str, Any]) -> Fabric:
    return design.build(Intent.model_validate(intent), Catalog())


@dataclass
class Fleet:
    """The switches of a lab, and their intended configurations."""

    lab: RunningLab
    runs: Path
    fabric: Fabric
    impatience_s: Mapping[str, float] = field(default_factory=dict)
    """Time limits for some of the switches."""
    options: Options = OPTIONS
    gate: Gate | None = None
    on_event: EventHandler = ignore_event
    by_hand: Callable[[str, str], str] = lambda _file, text: text

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(switch.name for switch in self.fabric.switches)

    def intended(self) -> dict[str, Files]:
        rendered = render(self.fabric, self.fabric.switches, Engine())
        return {
            found.device: {
                file: self.by_hand(file, text) for file, text in found.files.items() if self._reads(found.device, file)
            }
            for found in rendered
        }

    def _reads(self, device: str, file: str) -> bool:
        return MODELS[self.fabric.switch(device).platform].reads(file)

    def connect(self, name: str) -> Driver:
        """A driver that is not open yet."""
        folder = self.lab.home / self.lab.name
        record = json.loads((folder / "lab.json").read_text(encoding="utf-8"))
        endpoint = lab_endpoints(record, folder, AccessSettings())[name]
        return connect(replace(endpoint, timeout_s=self.impatience_s.get(name, TIMEOUT_S)), secret)

    def running(self, name: str) -> Running | Unreachable:
        driver = self.connect(name)
        try:
            driver.open()
            return Running(dict(driver.running_files()))
        except NetkitError as error:
            return Unreachable(str(error))
        finally:
            driver.close()

    def configs(self) -> dict[str, Config]:
        """The running configuration of each switch, in the model of its platform."""
        return {
            name: MODELS[self.fabric.switch(name).platform].parse(
                {file: text for file, text in one.files.items() if text is not None and self._reads(name, file)}
            )
            for name, one in self._all_running().items()
            if isinstance(one, Running)
        }

    def plan(self) -> Plan:
        """The plan from the running to the intended configurations."""
        return make(self.fabric, self._all_running(), self.intended())

    def _all_running(self) -> dict[str, Running | Unreachable]:
        return each(threads(len(self.names)), self.names, self.running)

    def apply(self, plan: Plan | None = None, *, journal: Journal | None = None, **changes: Any) -> Outcome:
        return deploy.apply(
            plan or self.plan(),
            self.fabric,
            self.intended(),
            connect=self.connect,
            gate=self.gate or SessionGate(self.fabric, self.connect),
            options=replace(self.options, **changes),
            journal=journal or self.journal(),
            on_event=self.on_event,
        )

    def undo(self, journal: Journal, **changes: Any) -> Outcome:
        """Roll back a run."""
        return deploy.undo(
            journal,
            self.fabric,
            connect=self.connect,
            gate=self.gate or SessionGate(self.fabric, self.connect),
            options=replace(self.options, **changes),
            journal=self.journal(),
        )

    def resume(self, journal: Journal) -> Outcome:
        """Resume a run that was killed."""
        return deploy.resume(
            self.fabric,
            connect=self.connect,
            gate=self.gate or SessionGate(self.fabric, self.connect),
            journal=Journal(journal.folder),
        )

    def journal(self) -> Journal:
        """A folder for the journal of a new run."""
        return Journal.new(self.runs)
