"""Options, events and outcomes of a deploy: frozen, and the same after a round trip through a file."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from netkit.errors import DeployError, Problem

EXIT_CODES_BY_WEIGHT = (3, 4, 1, 2)
"""Of several exit codes, the first of these counts."""
FAILED = 1
LONGEST_S = 100_000_000_000
Seconds = Annotated[float, Field(ge=0, lt=LONGEST_S, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0, lt=LONGEST_S)]
WallTime = Annotated[float, Field(gt=-LONGEST_S, lt=LONGEST_S, allow_inf_nan=False)]
"""Seconds since the epoch by the wall clock, which may have been wrong; a date can be written of it."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a deploy proceeds."""

    limit: tuple[str, ...] | None = None
    """Names of the devices to change; None for all of the plan."""
    is_disruptive_allowed: bool = False
    is_busy_allowed: bool = False
    """Whether a disruptive change proceeds while lossless traffic still flows."""
    is_taking_over: bool = False
    """Whether the first contact with a device may remove what the intent does not explain."""
    has_canary: bool = True
    has_drain: bool = True
    """Whether a device whose traffic has another path is drained first."""
    is_together: bool = False
    """Whether devices that are redundant to each other may change at the same time."""
    parallel: Annotated[int, Field(ge=1, le=10_000)] = 20
    max_fail: Whole = 0
    revert_s: Whole = 120
    """A device reverts by itself what is not confirmed within this time."""
    settle_s: Seconds = 60.0
    """How long sessions may take to come back, and a device to answer again."""
    drain_s: Seconds = 10.0
    """How long traffic may take to leave a drained device."""
    watch_s: Seconds = 10.0
    """How long a drained device is watched with its traffic back, before its change is confirmed."""
    poll_s: Seconds = 1.0
    on_failure: Literal["stop", "rollback"] = "stop"
    """Whether a run that stops after a failure is rolled back automatically."""
    is_backward: bool = False
    """Whether this is such a rollback: a failure does not hold up the other devices."""


def weightiest(*codes: int) -> int:
    """The most important of several exit codes."""
    return next((code for code in EXIT_CODES_BY_WEIGHT if code in codes), 0)


class Phase(StrEnum):
    """The phases of a device's rollout, in order. Each is journalled before it happens."""

    PREFLIGHT = "preflight"
    DRAIN = "drain"
    LOAD = "load"
    COMMIT = "commit"
    CONNECT = "connect"
    VERIFY = "verify"
    GATE = "gate"
    UNDRAIN = "undrain"
    WATCH = "watch"
    CONFIRM = "confirm"
    SETTLE = "settle"
    ROLLBACK = "rollback"
    END = "end"


class ConfigState(StrEnum):
    """What a device runs in the end, as far as this deploy is concerned."""

    INTENDED = "intended"
    AS_BEFORE = "as before"
    BOTH = "both"
    """It runs what is intended and keeps the old beside it: the first of two stages."""
    UNKNOWN = "unknown"


class DeviceResult(StrEnum):
    """The result for one device."""

    DONE = "done"
    UNCHANGED = "unchanged"
    READY = "ready"
    """Dry run: nothing prevents the change."""
    REVERTED = "reverted"
    FAILED = "failed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    NOT_STARTED = "not started"
    EXCLUDED = "excluded"


GOOD = frozenset({DeviceResult.DONE, DeviceResult.UNCHANGED, DeviceResult.READY, DeviceResult.EXCLUDED})


@dataclass(frozen=True, slots=True)
class DeviceOutcome:
    """The outcome for one device."""

    device: str
    result: DeviceResult
    state: ConfigState
    reasons: tuple[str, ...] = ()
    wave: Whole = 0
    exit_code: Annotated[int, Field(ge=0, le=255)] = 0
    stops_all: bool = False
    """Whether no other device may be changed after this, whatever the failure budget."""

    @property
    def is_failure(self) -> bool:
        """Whether it counts against the failure budget."""
        return self.result not in GOOD and self.result is not DeviceResult.NOT_STARTED


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a whole deploy."""

    run: str
    fabric: str
    devices: tuple[DeviceOutcome, ...]
    stopped: str = ""
    """Why it ended before every device was changed."""
    is_dry_run: bool = False
    rollback: "Outcome | None" = None
    """The outcome of the automatic rollback."""
    undoes: str = ""
    """The run that this one rolls back; what is intended is then the earlier configuration."""

    @property
    def exit_code(self) -> int:
        codes = [device.exit_code for device in self.devices]
        return weightiest(FAILED if self.stopped else 0, *codes, *([self.rollback.exit_code] if self.rollback else []))

    @property
    def failures(self) -> tuple[DeviceOutcome, ...]:
        return tuple(device for device in self.devices if device.is_failure)

    @property
    def has_changes(self) -> bool:
        """Whether the run has changed a device, or may have: there is something to roll back."""
        return any(
            one.state is ConfigState.BOTH or (one.wave > 0 and one.state is not ConfigState.AS_BEFORE)
            for one in self.devices
        )

    def device(self, name: str) -> DeviceOutcome | None:
        return next((device for device in self.devices if device.device == name), None)


@dataclass(frozen=True, slots=True)
class DeployEvent:
    """A change of phase, for a display to show."""

    phase: Phase
    device: str
    wave: int
    waves: int
    at_s: float
    """Seconds since the deploy began."""
    outcome: DeviceOutcome | None = None
    is_back: bool = False
    """Whether the run rolls another one back."""


EventHandler = Callable[[DeployEvent], None]


@cache
def _adapter() -> TypeAdapter[Outcome]:
    """Build the adapter on first use: that is slow, and a deploy only writes."""
    return TypeAdapter(Outcome)


def write(outcome: Outcome) -> str:
    return json.dumps(plain(outcome), indent=1) + "\n"


def plain(outcome: Outcome) -> dict[str, Any]:
    found = {**asdict(outcome), "exit_code": outcome.exit_code}
    del found["rollback"]
    return found if outcome.rollback is None else {**found, "rollback": plain(outcome.rollback)}


def read(text: str, file: str = "") -> Outcome:
    try:
        document = json.loads(text)
        document.pop("exit_code")
        return _adapter().validate_python(document)
    except (ValueError, ValidationError, LookupError, AttributeError, TypeError, RecursionError):
        raise DeployError(Problem("is not the outcome of a deploy", "deploy again", file=file)) from None
