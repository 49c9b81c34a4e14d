"""`netkit plan --prove`: boot the state before in a lab, deploy the change there, and report the impact on traffic."""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from netkit import deploy
from netkit.access.secrets import SecretStore
from netkit.deploy import DeployEvent, Journal, Options, Outcome, Phase
from netkit.deploy.apply import ignore_event
from netkit.deploy.model import EventHandler
from netkit.design import Fabric
from netkit.design.expectation import expectations, has_drain
from netkit.design.select import Device
from netkit.errors import NetkitError
from netkit.lab.folder import LabFolder, ask_keeper
from netkit.lab.proof import Gap, PingResult
from netkit.plan import Plan
from netkit.plan.intent_diff import IntentDiff
from netkit.platforms.config import Files
from netkit.project.connections import Connections
from netkit.project.gate import gate_of
from netkit.project.lab import proof_lab, shortfalls
from netkit.project.planning import Planned, from_devices
from netkit.project.project import Project
from netkit.project.rendering import quietly
from netkit.prove import proof as proofs
from netkit.prove.proof import (
    MOST_DEVICES,
    NOWHERE,
    Examined,
    LabPart,
    Proof,
    ProofFlow,
    WaveStart,
    by_scope,
    by_wave,
    choose,
    cut,
    flows,
    mute,
    obstacle,
    since_the_first,
    untried,
)
from netkit.render import Engine

Display = Callable[[int, Callable[[], bool]], AbstractContextManager[EventHandler]]
"""Shows a deploy, given the number of changes and a function that reports whether to stop."""
INTERVAL_S = 0.1
QUIET_S = 2.0
"""How long hosts send probes before the first wave and after the last."""
MOST_TRIPS = 200
BOOT_S, SETTLE_S = 120.0, 90.0


@dataclass(frozen=True, slots=True)
class Wish:
    """The limits of a proof."""

    most_devices: int = MOST_DEVICES
    within_s: float = 900.0


@contextmanager
def unseen(_total: int, _is_stopping: Callable[[], bool]) -> Iterator[EventHandler]:
    """Show nothing of a deploy."""
    yield ignore_event


def prove(base: Project, project: Project, diff: IntentDiff, wish: Wish, display: Display = unseen) -> Proof:
    """Try a change in the lab; return the result, or why it could not be tried, with an exit code."""
    if diff.is_nothing:
        return Proof()
    began_s = time.monotonic()
    try:
        # New devices of one role change alike, as do those of a group.
        roles = dict.fromkeys(device.role for device in diff.added)
        added = [[device.name for device in diff.added if device.role == role] for role in roles]
        part = choose(project.fabric, [*diff.plan.groups, *added], wish.most_devices)
        found = ProofRun(base, project, part, diff.plan, began_s + wish.within_s, display).run()
    except NetkitError as error:
        return Proof(failures=tuple(map(str, error.problems)), exit_code=error.exit_code)
    except OSError as error:
        return Proof(failures=(f"this machine could not run the proof: {error}",), exit_code=NetkitError.exit_code)
    code = proofs.FAILED if found.failures else 0
    whole = proofs.booted(part, project.fabric, diff)
    return replace(found, booted=whole, exit_code=code, took_s=round(time.monotonic() - began_s, 1))


class _RandomSecrets(SecretStore):
    """Random secrets, so that the real ones never enter a lab."""

    def _fetched(self, name: str) -> str:
        return f"lab-{name}-{secrets.token_hex(12)}"


@dataclass
class _WaveRecorder:
    """Records when each wave began."""

    shown: EventHandler
    began: dict[int, tuple[float, dict[str, None]]] = field(default_factory=dict)

    def __call__(self, event: DeployEvent) -> None:
        if event.wave and event.phase is Phase.PREFLIGHT:
            _, names = self.began.setdefault(event.wave, (time.time(), {}))
            names[event.device] = None
        self.shown(event)

    def waves(self) -> tuple[WaveStart, ...]:
        return tuple(WaveStart(number, tuple(names), began_s) for number, (began_s, names) in self.began.items())


class ProofRun:
    """One proof, from boot to the second plan."""

    def __init__(
        self, base: Project, project: Project, part: LabPart, wanted: Plan, deadline_s: float, display: Display = unseen
    ) -> None:
        self._project = replace(project, fabric=part.fabric)
        names = [name for name in part.fabric.names if base.fabric.device(name) is not None]
        self._base = replace(base, fabric=cut(base.fabric, names))
        self._obstacle = obstacle(self._base.fabric, part.fabric)
        self._wanted = wanted
        self._deadline_s, self._display = deadline_s, display
        self.is_whole = True
        """Whether the whole change was deployed."""
        self.failures: list[str] = []
        self._notes: list[str] = []

    def run(self) -> Proof:
        files, promised = self._files(), self._project.fabric if self._obstacle else self._base.fabric
        self._project.feedback.note(f"booting {len(files)} devices in the lab")
        with proof_lab(self._project, files, promised, min(BOOT_S, self._left_s())) as lab:
            lacks = shortfalls(lab, lambda step: self._project.feedback.note(f"booting: {step}"), self._deadline_s)
            if self._obstacle:
                self.failures += lacks
            elif lacks:
                more = f", and {len(lacks) - 1} more" if len(lacks) > 1 else ""
                self._notes.append(f"already missing before the change: {lacks[0]}{more}")
            devices = replace(Connections.of(replace(self._project, lab=lab.name)), secrets=_RandomSecrets())
            rolled = Proof() if self._obstacle else self._rolled(lab, devices)
            examined = self._end(lab, devices)
        failures, notes = tuple(self.failures), tuple(self._notes)
        return replace(rolled, failures=failures, notes=notes, obstacle=self._obstacle, examined=examined)

    def _end(self, lab: LabFolder, devices: Connections) -> Examined | None:
        """Examine the result; a partial change does not match the design, and is not waited for."""
        if not self.is_whole:
            self._notes.append("the final state was not examined: the deploy did not finish")
            return None
        examined = self._examined(lab)
        if examined is None:
            return None
        unsettled = self._unsettled(devices)
        self.failures += unsettled
        return replace(examined, unsettled=len(unsettled))

    def _files(self) -> Mapping[str, Files]:
        """What each device boots with: its files before the change, or for a new device its intended ones."""
        after = _rendered(self._project, self._project.fabric)
        return after if self._obstacle else {**after, **_rendered(self._base, self._base.fabric)}

    def _rolled(self, lab: LabFolder, devices: Connections) -> Proof:
        """Deploy the change while hosts send probes to each other."""
        called = flows(self._base.fabric, self._project.fabric)
        planned = from_devices(self._project, "", devices)
        if not planned.plan.changed:
            self.failures += [NOWHERE] if self._wanted.changed else []
            self._notes.append("nothing changes on the existing devices in the lab")
            return Proof()
        if not called:
            self._notes.append("no two NICs can reach each other both before and after, so no traffic was measured")
        self._project.feedback.note(f"deploying the change under {len(called)} flows")
        ask_keeper(lab, "begin-calls", interval_s=INTERVAL_S, calls=[asdict(flow.call) for flow in called])
        time.sleep(QUIET_S)
        outcome, turns = self._deployed(planned, devices)
        time.sleep(QUIET_S)
        heard = [_heard(one) for one in ask_keeper(lab, "end-calls")["heard"]]
        return self.judged(planned.plan, called, outcome, turns, heard)

    def judged(
        self,
        plan: Plan,
        called: Sequence[ProofFlow],
        outcome: Outcome | None,
        turns: Sequence[WaveStart],
        heard: Sequence[PingResult],
    ) -> Proof:
        """Evaluate what the probes saw of a deploy, and record the failures."""
        waves, scopes = by_wave(turns, heard), by_scope(called, heard)
        self.failures += mute(heard)
        against = list(proofs.of_outcome(outcome)) if outcome is not None else []
        self.is_whole = outcome is not None and not against
        self.failures += against
        if not self.failures and not self._notes:
            self.failures += proofs.of_loss(plan, called, since_the_first(turns, heard))
        missed = untried(self._wanted, plan, self._base.fabric.names)
        return Proof(devices=outcome.devices if outcome else (), waves=waves, scopes=scopes, untried=missed)

    def _deployed(self, planned: Planned, devices: Connections) -> tuple[Outcome | None, tuple[WaveStart, ...]]:
        """Deploy as `netkit deploy` does, but allow disruptive changes."""
        options = Options(is_disruptive_allowed=True, is_busy_allowed=True)
        with (
            tempfile.TemporaryDirectory(prefix="netkit-") as place,
            self._display(len(planned.plan.changed), bool) as shown,
        ):
            recorder = _WaveRecorder(shown)
            try:
                outcome = deploy.apply(
                    planned.plan,
                    self._project.fabric,
                    planned.intended,
                    connect=devices.connect,
                    gate=gate_of(self._project, devices),
                    options=options,
                    journal=Journal.new(Path(place) / "runs"),
                    on_event=recorder,
                    is_stopping=lambda: self._left_s() <= 0,
                )
            except NetkitError as error:
                self.failures += (f"the deploy is refused: {problem}" for problem in error.problems)
                return None, recorder.waves()
        return outcome, recorder.waves()

    def _examined(self, lab: LabFolder) -> Examined | None:
        """Wait until the fabric has converged, and test it in the lab."""
        if self._left_s() <= 0:
            self.failures.append("the proof exceeded its time; allow more with --prove-within")
            return None
        self._project.feedback.note("examining sessions, next hops and reachability")
        found = ask_keeper(lab, "examine", most=MOST_TRIPS, patience_s=min(SETTLE_S, self._left_s()))
        self.failures += found["shortfalls"]
        wanted = expectations(self._project.fabric).values()
        widest = max((width for one in wanted for width in one.widths.values()), default=0)
        sessions = sum(len(one.sessions) for one in wanted) // 2
        if has_drain(self._project.fabric) and not found["beyond"]:
            self._notes.append("drained: reachability across leaves was not examined")
        return measured(found, sessions, widest)

    def _unsettled(self, devices: Connections) -> list[str]:
        """The devices that would change again."""
        plan = from_devices(self._project, "", devices).plan
        unreachable = [f"{one.name} cannot be read after the deploy: {one.reason}" for one in plan.unreachable]
        changed = [f"{one.name} would change again: its second plan is not empty" for one in plan.changed]
        return unreachable + changed

    def _left_s(self) -> float:
        return self._deadline_s - time.monotonic()


def measured(found: Mapping[str, Any], sessions: int, widest: int) -> Examined:
    """Summarise the examination; pairs that the design separates count as blocked, not as reachable."""
    across, of_across = (0, 0) if found["is_blocked"] else (found["across"], found["across_trips"])
    pairs, of_pairs, lacking = found["own"] + across, found["own_trips"] + of_across, len(found["shortfalls"])
    blocked = found["across"] if found["is_blocked"] else 0
    return Examined(sessions, widest, pairs, of_pairs, found["packet_bytes"], lacking, blocked=blocked)


def _rendered(project: Project, fabric: Fabric) -> Mapping[str, Files]:
    devices: tuple[Device, ...] = (*fabric.switches, *fabric.hosts)
    return quietly(project, devices, Engine(project.template_folders))


def _heard(found: Mapping[str, object]) -> PingResult:
    gaps = found["gaps"]
    known = {**found, "gaps": tuple(Gap(**gap) for gap in gaps)} if isinstance(gaps, list) else found
    return PingResult(**known)  # type: ignore[arg-type]
