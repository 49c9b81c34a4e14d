"""PFC and its watchdog as they run, in the words of `show priority-flow-control`: two forms of its table are known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from netkit.platforms.eos.facts.row import cells

TIMES = re.compile(r"The PFC watchdog (timeout|recovery-time) is (\d{1,6}(?:\.\d{1,6})?) second", re.ASCII)
ACTION = re.compile(r"The PFC watchdog action is (\S+)")
OVERRIDE = re.compile(r"The PFC watchdog override action drop is true")
UNSUPPORTED = "does not support priority flow control"
ENABLED, ACTIVE, WATCHED = "E", "A", "W"


@dataclass(frozen=True, slots=True)
class PortPfc:
    """PFC of one port; None where the table does not tell."""

    is_on: bool
    priorities: frozenset[int]
    is_watched: bool | None = None


@dataclass(frozen=True, slots=True)
class Pfc:
    """PFC of the switch. Without a timeout the watchdog looks at nothing."""

    ports: Mapping[str, PortPfc] = field(default_factory=dict)
    detection_ms: int | None = None
    restoration_ms: int | None = None
    action: str = ""
    is_supported: bool = True
    """Whether there is a chip that has it: a virtual switch takes its configuration all the same."""


def pfc(shown: str) -> Pfc:
    """Return what the command says."""
    times = {name: round(float(seconds) * 1000) for name, seconds in TIMES.findall(shown)}
    action = ACTION.search(shown)
    return Pfc(
        ports={port: found for port, row in cells(shown) if (found := _port(row)) is not None},
        detection_ms=times.get("timeout"),
        restoration_ms=times.get("recovery-time"),
        action="drop" if OVERRIDE.search(shown) else action[1] if action else "",
        is_supported=UNSUPPORTED not in shown,
    )


def _port(row: Mapping[str, str]) -> PortPfc | None:
    priorities = frozenset(
        int(word) for word in row.get("Priorities", "").replace(",", " ").split() if word in set("01234567")
    )
    if (letters := row.get("Status")) is not None:  # E A W: enabled, active, watched
        signs = letters.split()
        return PortPfc(ENABLED in signs, priorities, is_watched=WATCHED in signs)
    if (enabled := row.get("Enabled")) is not None:
        watchdog = row.get("Watchdog")
        return PortPfc(enabled == "Yes", priorities, is_watched=None if watchdog is None else watchdog == "On")
    return None
