"""QoS as the running configuration has it for one port: its profile, and what the port itself says instead."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from netkit.facts.qos import Ecn
from netkit.platforms.config import Config, Path

BYTES = {"bytes": 1, "kbytes": 1000, "mbytes": 1_000_000}
NO_DROP = re.compile(r"priority-flow-control priority ([0-7]) no-drop", re.ASCII)
QUEUE = re.compile(r"(?:uc-)?tx-queue ([0-7])", re.ASCII)
THRESHOLDS = re.compile(
    r"(\d{1,12}) (\w+) maximum-threshold (\d{1,12}) (\w+)(?: max-mark-probability (\d{1,3}))?.*", re.ASCII
)
WATCHDOG = "priority-flow-control pause watchdog"
TIMER = re.compile(r"timeout (\S+)(?: polling-interval \S+)?(?: recovery-time (\S+))?.*")
SECONDS = re.compile(r"\d{1,6}(?:\.\d{1,6})?", re.ASCII)
OWN = (
    "service-profile",
    "qos ",
    "priority-flow-control",
    "no priority-flow-control",
    "tx-queue",
    "uc-tx-",
    "no switch",
)
"""How lines of a port begin that matter here."""
Lines = Mapping[Path, str]
"""What stands below a line: path → value."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A transmit queue. EOS serves each strictly unless it is told not to."""

    is_strict: bool = True
    weight_percent: int | None = None
    ecn: Ecn | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What holds on one port."""

    trust: str
    has_pfc: bool = False
    no_drop: frozenset[int] = frozenset()
    is_watched: bool = True
    detection_ms: int | None = None
    restoration_ms: int | None = None
    action: str = ""
    queues: Mapping[int, Queue] = field(default_factory=dict)


def sections(config: Config) -> Mapping[str, Lines]:
    """Return what stands below each line of a configuration."""
    found: dict[str, dict[Path, str]] = {}
    for path, value in config.items():
        found.setdefault(path[0], {})[path[1:]] = value
    return found


class Profiles:
    """What holds on each port. Most ports say the same, and that is worked out once."""

    def __init__(self, found: Mapping[str, Lines]) -> None:
        self._found = found
        self._known: dict[tuple[tuple[Path, str], ...], Profile] = {}

    def of(self, port: str) -> Profile:
        """Return what holds on a port."""
        lines = self._found.get(f"interface {port}", {})
        own = tuple((path, value) for path, value in lines.items() if path and path[0].startswith(OWN))
        if own not in self._known:
            self._known[own] = profile(self._found, dict(own))
        return self._known[own]


def profile(found: Mapping[str, Lines], own: Lines) -> Profile:
    """Return what lines of a port make of it. A profile that does not exist does nothing, and EOS does not complain."""
    lines = {**found.get(f"qos profile {own.get(('service-profile',), '')}", {}), **own}
    names = [path[0] for path in lines if path]
    timer = TIMER.fullmatch(_rest(names, f"{WATCHDOG} port timer "))
    return Profile(
        trust=_trust(lines.get(("qos trust",), ""), is_routed=("no switchport",) in own),
        has_pfc=("priority-flow-control on",) in lines and "priority-flow-control all off" not in found,
        no_drop=frozenset(int(number[1]) for name in names if (number := NO_DROP.fullmatch(name))),
        is_watched=f"no {WATCHDOG}" not in names,
        detection_ms=milliseconds(timer[1]) if timer else None,
        restoration_ms=milliseconds(timer[2] or "") if timer else None,
        action=_rest(names, f"{WATCHDOG} port action "),
        queues={int(number[1]): _queue(lines, name) for name in names if (number := QUEUE.fullmatch(name))},
    )


def milliseconds(seconds: str) -> int | None:
    """Return a time that EOS gives in seconds; None for a word such as auto."""
    return round(float(seconds) * 1000) if SECONDS.fullmatch(seconds) else None


def _trust(word: str, *, is_routed: bool) -> str:
    """Return what a port goes by: a routed one by the DSCP unless it is told otherwise, another by the tag."""
    return "pcp" if word == "cos" else word or ("dscp" if is_routed else "pcp")


def _rest(names: list[str], start: str) -> str:
    return next((name.removeprefix(start) for name in names if name.startswith(start)), "")


def _queue(lines: Lines, name: str) -> Queue:
    percent = lines.get((name, "bandwidth percent"), "")
    thresholds = THRESHOLDS.fullmatch(lines.get((name, "random-detect ecn minimum-threshold"), ""))
    return Queue(
        is_strict=(name, "no priority") not in lines,
        weight_percent=int(percent) if percent.isascii() and percent.isdecimal() and len(percent) <= 3 else None,
        ecn=_ecn(thresholds) if thresholds else None,
    )


def _ecn(found: re.Match[str]) -> Ecn:
    """Return when a queue marks. A threshold that is a time has no bytes."""
    low, low_unit, high, high_unit, probability = found.groups()
    return Ecn(
        is_on=True,
        min_bytes=int(low) * BYTES[low_unit] if low_unit in BYTES else None,
        max_bytes=int(high) * BYTES[high_unit] if high_unit in BYTES else None,
        probability_percent=float(probability) if probability else None,
    )
