"""Operational QoS of EOS: PFC and its watchdog from `show priority-flow-control`, the rest from the configuration."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from netkit.errors import NetkitError
from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.qos import Ecn, PortQos, Watchdog
from netkit.platforms.config import Config, Path
from netkit.platforms.eos.dialects import ECN_UNIT_BYTES
from netkit.platforms.eos.facts.interface import PFC, RUNNING, cells, flow_control, is_port
from netkit.platforms.eos.model import FILE, MODEL
from netkit.platforms.json_access import named, parsed, whole

RECENT = 64
"""Answers kept parsed, since several views read the same: twice as many as devices are read at a time."""
TIMES = re.compile(r"The PFC watchdog (timeout|recovery-time) is (\d{1,6}(?:\.\d{1,6})?) second", re.ASCII)
ACTION = re.compile(r"The PFC watchdog action is (\S+)")
OVERRIDE = re.compile(r"The PFC watchdog override action drop is true")
UNSUPPORTED = "does not support priority flow control"
ENABLED, ACTIVE, WATCHED = "E", "A", "W"


@dataclass(frozen=True, slots=True)
class PortPfc:
    """PFC of one port; None where the table does not show it."""

    is_on: bool
    priorities: frozenset[int]
    is_watched: bool | None = None


@dataclass(frozen=True, slots=True)
class Pfc:
    """PFC of the switch. Without a timeout the watchdog is inactive."""

    ports: Mapping[str, PortPfc] = field(default_factory=dict)
    detection_ms: int | None = None
    restoration_ms: int | None = None
    action: str = ""
    is_supported: bool = True
    """Whether the chip supports it: a virtual switch accepts the configuration nevertheless."""


@lru_cache(maxsize=RECENT)
def pfc(output: str) -> Pfc:
    """Parse `show priority-flow-control`, of whose table two forms are known."""
    times = {name: round(float(seconds) * 1000) for name, seconds in TIMES.findall(output)}
    action = ACTION.search(output)
    return Pfc(
        ports={port: found for port, row in cells(output) if (found := _port(row)) is not None},
        detection_ms=times.get("timeout"),
        restoration_ms=times.get("recovery-time"),
        action="drop" if OVERRIDE.search(output) else action[1] if action else "",
        is_supported=UNSUPPORTED not in output,
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
"""Prefixes of the interface lines that are relevant here."""
Lines = Mapping[Path, str]
"""The section below a line: path → value."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A transmit queue. Strict priority is EOS's default."""

    is_strict: bool = True
    weight_percent: int | None = None
    ecn: Ecn | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """Configured QoS of one port."""

    trust: str
    has_pfc: bool = False
    no_drop: frozenset[int] = frozenset()
    is_watched: bool = True
    detection_ms: int | None = None
    restoration_ms: int | None = None
    action: str = ""
    queues: Mapping[int, Queue] = field(default_factory=dict)


def sections(config: Config) -> Mapping[str, Lines]:
    """Group a configuration by its top-level lines."""
    found: dict[str, dict[Path, str]] = {}
    for path, value in config.items():
        found.setdefault(path[0], {})[path[1:]] = value
    return found


class Profiles:
    """Configured QoS of each port, computed once for ports with the same lines."""

    def __init__(self, found: Mapping[str, Lines]) -> None:
        self._found = found
        self._by_lines: dict[tuple[tuple[Path, str], ...], Profile] = {}
        self._by_port: dict[str, Profile] = {}

    def of(self, port: str) -> Profile:
        if port not in self._by_port:
            lines = self._found.get(f"interface {port}", {})
            own = tuple((path, value) for path, value in lines.items() if path and path[0].startswith(OWN))
            if own not in self._by_lines:
                self._by_lines[own] = profile(self._found, dict(own))
            self._by_port[port] = self._by_lines[own]
        return self._by_port[port]


def profile(found: Mapping[str, Lines], own: Lines) -> Profile:
    """Resolve the lines of a port and its service profile. EOS silently ignores a profile that does not exist."""
    lines = {**found.get(f"qos profile {own.get(('service-profile',), '')}", {}), **own}
    names = [path[0] for path in lines if path]
    timer = TIMER.fullmatch(_rest(names, f"{WATCHDOG} port timer "))
    trust = lines.get(("qos trust",), "")
    if not trust:  # the default: a routed port trusts the DSCP, a switched one the tag
        trust = "dscp" if ("no switchport",) in own else "cos"
    return Profile(
        trust="pcp" if trust == "cos" else trust,
        has_pfc=("priority-flow-control on",) in lines and "priority-flow-control all off" not in found,
        no_drop=frozenset(int(number[1]) for name in names if (number := NO_DROP.fullmatch(name))),
        is_watched=f"no {WATCHDOG}" not in names,
        detection_ms=milliseconds(timer[1]) if timer else None,
        restoration_ms=milliseconds(timer[2] or "") if timer else None,
        action=_rest(names, f"{WATCHDOG} port action "),
        queues={int(number[1]): _queue(lines, name) for name in names if (number := QUEUE.fullmatch(name))},
    )


def milliseconds(seconds: str) -> int | None:
    """Convert a time in seconds; None for a word such as auto."""
    return round(float(seconds) * 1000) if SECONDS.fullmatch(seconds) else None


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
    """Parse marking thresholds. A threshold given as a time has no bytes."""
    low, low_unit, high, high_unit, probability = found.groups()
    return Ecn(
        is_on=True,
        min_bytes=int(low) * ECN_UNIT_BYTES[low_unit] if low_unit in ECN_UNIT_BYTES else None,
        max_bytes=int(high) * ECN_UNIT_BYTES[high_unit] if high_unit in ECN_UNIT_BYTES else None,
        probability_percent=float(probability) if probability else None,
    )


NUMBERS, CODE_POINTS = range(8), range(64)
DEFAULT_CLASS_OF_EIGHT = (1, 0, 2, 3, 4, 5, 6, 7)
"""The default traffic class of DSCP 0-7, 8-15 and so on."""
QUEUE_MAPS = ("uc-tx-queue", "tx-queue")
MMU = "platform trident mmu queue profile "
APPLY = " apply"
HEADROOM = ("ingress headroom bytes",)
BALANCE = "ip hardware fib load-balance distribution"
MODE = re.compile(r"load balance distribution:? (\w+)", re.IGNORECASE)
DYNAMIC = "dynamic"
UNREADABLE = Absent(f"{RUNNING} cannot be read")


def qos(running: str, status: str, pauses: str, in_use: Collection[str]) -> Facts:
    found, shown, whole_port = _sections(running), pfc(status), flow_control(pauses)
    if found is None:
        return Facts(qos=UNREADABLE)
    maps, profiles = _Maps(found), Profiles(found)
    known: dict[tuple[int, frozenset[int] | None, bool | None], PortQos] = {}
    """The same for ports of the same profile."""
    by_port = {}
    for port in _ports(found):
        if is_port(port, in_use):
            own, is_global_pause = profiles.of(port), whole_port.get(port)
            alike = id(own), _lossless(own, shown, port), is_global_pause
            if alike not in known:
                known[alike] = _qos_port(own, alike[1], maps, is_global_pause)
            by_port[port] = known[alike]
    return Facts(qos=by_port)


@lru_cache(maxsize=RECENT)
def _sections(running: str) -> Mapping[str, Lines] | None:
    """Parse the running configuration by section; None if it is invalid or truncated."""
    if not running.rstrip().endswith("\nend"):
        return None
    try:
        return sections(MODEL.parse({FILE: running}))
    except (NetkitError, ValueError, RecursionError):
        return None


def _ports(found: Mapping[str, Lines]) -> Iterable[str]:
    names = (name.removeprefix("interface ") for name in found if name.startswith("interface "))
    return filter(is_port, names)


class _Maps:
    """Switch-wide QoS: the mappings from DSCP to class to queue, and the headroom."""

    def __init__(self, found: Mapping[str, Lines]) -> None:
        self.class_of_dscp = {
            dscp: _number(found, f"qos map dscp {dscp} to traffic-class", DEFAULT_CLASS_OF_EIGHT[dscp // 8])
            for dscp in CODE_POINTS
        }
        self.queue_of_class = {}
        for number in NUMBERS:  # the default queue is the class's own number; chips differ in the keyword
            maps = (f"qos map traffic-class {number} to {keyword}" for keyword in QUEUE_MAPS)
            self.queue_of_class[number] = _number(found, next((name for name in maps if name in found), ""), number)
        names = (name.removeprefix(MMU).removesuffix(APPLY) for name in found if name.endswith(APPLY))
        applied = next(iter(names), "")
        self.headroom_bytes = whole(found.get(f"{MMU}{applied}", {}).get(HEADROOM))


def _number(found: Mapping[str, Lines], name: str, default: int) -> int:
    number = whole(found.get(name, {}).get((), ""))
    return default if number is None else number


def _qos_port(own: Profile, lossless: frozenset[int] | None, maps: _Maps, is_global_pause: bool | None) -> PortQos:
    queues, headroom_bytes = own.queues, maps.headroom_bytes
    has_headroom = lossless is not None and headroom_bytes is not None
    return PortQos(
        trust=own.trust,
        dscp_to_priority=maps.class_of_dscp if own.trust == "dscp" else None,
        pfc_rx=lossless,
        pfc_tx=lossless,
        is_global_pause=is_global_pause,
        weights={
            number: queue.weight_percent
            for number, queue in sorted(queues.items())
            if not queue.is_strict and queue.weight_percent is not None
        },
        strict=frozenset(number for number in NUMBERS if number not in queues or queues[number].is_strict),
        priority_to_class=maps.queue_of_class,
        ecn={number: queue.ecn for number, queue in sorted(queues.items()) if queue.ecn is not None},
        headroom_bytes=dict.fromkeys(sorted(lossless or ()), headroom_bytes or 0) if has_headroom else None,
    )


def _lossless(own: Profile, shown: Pfc, port: str) -> frozenset[int] | None:
    """The priorities with PFC: the operational ones where EOS shows them; None if PFC is not supported."""
    if not shown.is_supported:
        return None
    if (operational := shown.ports.get(port)) is not None:
        return operational.priorities if operational.is_on else frozenset()
    return own.no_drop if own.has_pfc else frozenset()


def watchdogs(running: str, status: str, counters: str, ports: Iterable[str], lossless: tuple[int, ...]) -> Facts:
    """Build the watchdog of each priority that is lossless, or is intended to be."""
    found, shown = _sections(running), pfc(status)
    if found is None and shown == Pfc():
        return Facts(watchdogs=Absent(f"neither {RUNNING} nor {PFC} can be read"))
    profiles = Profiles(found or {})
    stormed = {  # a storm is ongoing if more began than ended
        place(port, number): (whole(counts.get("stuckCount")) or 0) > (whole(counts.get("recoveryCount")) or 0)
        for port, one in named(parsed(counters), "interfaces")
        for number, counts in named(one, "txQueues")
    }
    return Facts(
        watchdogs={
            place(port, number): _watchdog(
                profiles.of(port),
                shown,
                shown.ports.get(port),
                is_on=number in on,
                is_stormed=stormed.get(place(port, number), False),
            )
            for port in dict.fromkeys((*filter(is_port, ports), *shown.ports))
            if found is not None or port in shown.ports
            if (on := _lossless(profiles.of(port), shown, port)) is not None
            for number in sorted(on | set(lossless))
        }
        or Absent(f"{PFC} shows no port that has PFC")
    )


def _watchdog(own: Profile, shown: Pfc, port: PortPfc | None, *, is_on: bool, is_stormed: bool) -> Watchdog:
    is_watched = own.is_watched if port is None or port.is_watched is None else port.is_watched
    detection_ms = shown.detection_ms if own.detection_ms is None else own.detection_ms
    return Watchdog(
        is_on=is_on and is_watched and detection_ms != 0,
        is_stormed=is_stormed,
        detection_ms=detection_ms or None,
        restoration_ms=(shown.restoration_ms if own.restoration_ms is None else own.restoration_ms) or None,
        action=own.action or shown.action,
    )


def adaptive_routing(running: str, balance: str) -> Facts:
    """Parse dynamic load balancing of routed ports, switch-wide unless EOS shows it by port."""
    found = _sections(running)
    if found is None:
        return Facts(adaptive_routing=UNREADABLE)
    mode = MODE.search(balance)
    is_on = (mode[1].lower() if mode else found.get(BALANCE, {}).get((), "")) == DYNAMIC
    by_port = {port: row["Mode"].lower() == DYNAMIC for port, row in cells(balance) if "Mode" in row}
    routed = [port for port in _ports(found) if ("no switchport",) in found[f"interface {port}"]]
    return Facts(adaptive_routing={port: by_port.get(port, is_on) for port in routed})
