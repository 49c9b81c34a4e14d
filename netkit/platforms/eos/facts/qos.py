"""QoS of the ports: what the running configuration makes of them, and PFC and its watchdog as they run."""

import re
from collections.abc import Iterable, Mapping

from netkit.errors import NetkitError
from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.qos import PortQos, Watchdog
from netkit.platforms.eos.facts.command import PFC, RUNNING
from netkit.platforms.eos.facts.interface import flow_control
from netkit.platforms.eos.facts.pfc import Pfc, PortPfc, pfc
from netkit.platforms.eos.facts.port import is_port
from netkit.platforms.eos.facts.profile import Lines, Profile, Profiles, sections
from netkit.platforms.eos.facts.row import cells
from netkit.platforms.eos.model import FILE, MODEL
from netkit.platforms.shown import named, parsed, whole

NUMBERS, CODE_POINTS = range(8), range(64)
DEFAULT_CLASS_OF_EIGHT = (1, 0, 2, 3, 4, 5, 6, 7)
"""The traffic class of DSCP 0-7, 8-15 and so on, where no line says another."""
QUEUE_MAPS = ("uc-tx-queue", "tx-queue")
MMU = "platform trident mmu queue profile "
APPLY = " apply"
HEADROOM = ("ingress headroom bytes",)
BALANCE = "ip hardware fib load-balance distribution"
MODE = re.compile(r"load balance distribution:? (\w+)", re.IGNORECASE)
DYNAMIC = "dynamic"
NOT_TOLD = Absent(f"{RUNNING} cannot be read")


def qos(running: str, status: str, pauses: str, in_use: tuple[str, ...]) -> Facts:
    """Return QoS by port."""
    found, told, whole_port = _sections(running), pfc(status), flow_control(pauses)
    if found is None:
        return Facts(qos=NOT_TOLD)
    maps, profiles = _Maps(found), Profiles(found)
    return Facts(
        qos={
            port: _port(profiles.of(port), _lossless(profiles.of(port), told, port), maps, whole_port.get(port))
            for port in _ports(found)
            if is_port(port, in_use)
        }
    )


def _sections(running: str) -> Mapping[str, Lines] | None:
    """Return the running configuration by its sections; None when it is none, or not whole."""
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
    """What holds on all ports: where traffic goes by its marks, and how much headroom it has."""

    def __init__(self, found: Mapping[str, Lines]) -> None:
        self.class_of_dscp = {
            dscp: _number(found, f"qos map dscp {dscp} to traffic-class", DEFAULT_CLASS_OF_EIGHT[dscp // 8])
            for dscp in CODE_POINTS
        }
        self.queue_of_class = {number: self._queue(found, number) for number in NUMBERS}
        names = (name.removeprefix(MMU).removesuffix(APPLY) for name in found if name.endswith(APPLY))
        applied = next(iter(names), "")
        self.headroom_bytes = whole(found.get(f"{MMU}{applied}", {}).get(HEADROOM))

    @staticmethod
    def _queue(found: Mapping[str, Lines], number: int) -> int:
        """Return the queue of a class: its own number, unless a line says another. Chips differ in the keyword."""
        maps = (f"qos map traffic-class {number} to {keyword}" for keyword in QUEUE_MAPS)
        return _number(found, next((name for name in maps if name in found), ""), number)


def _number(found: Mapping[str, Lines], name: str, default: int) -> int:
    number = whole(found.get(name, {}).get((), ""))
    return default if number is None else number


def _port(own: Profile, lossless: frozenset[int] | None, maps: _Maps, is_global_pause: bool | None) -> PortQos:
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


def _lossless(own: Profile, told: Pfc, port: str) -> frozenset[int] | None:
    """Return the priorities PFC is on for: as it runs, where EOS shows that. None where there is no PFC to be on."""
    if not told.is_supported:
        return None
    if (shown := told.ports.get(port)) is not None:
        return shown.priorities if shown.is_on else frozenset()
    return own.no_drop if own.has_pfc else frozenset()


def watchdogs(running: str, status: str, counters: str, ports: tuple[str, ...], lossless: tuple[int, ...]) -> Facts:
    """Return the watchdog of each priority that is, or is to be, lossless."""
    found, told = _sections(running), pfc(status)
    if found is None and told == Pfc():
        return Facts(watchdogs=Absent(f"neither {RUNNING} nor {PFC} can be read"))
    stormed, profiles = dict(_stormed(counters)), Profiles(found or {})
    return Facts(
        watchdogs={
            place(port, number): _watchdog(
                profiles.of(port),
                told,
                told.ports.get(port),
                is_on=number in on,
                is_stormed=stormed.get(place(port, number), False),
            )
            for port in dict.fromkeys((*filter(is_port, ports), *told.ports))
            if found is not None or port in told.ports
            if (on := _lossless(profiles.of(port), told, port)) is not None
            for number in sorted(on | set(lossless))
        }
        or Absent(f"{PFC} shows no port that has PFC")
    )


def _watchdog(own: Profile, told: Pfc, port: PortPfc | None, *, is_on: bool, is_stormed: bool) -> Watchdog:
    is_watched = own.is_watched if port is None or port.is_watched is None else port.is_watched
    detection_ms = told.detection_ms if own.detection_ms is None else own.detection_ms
    return Watchdog(
        is_on=is_on and is_watched and detection_ms != 0,
        is_stormed=is_stormed,
        detection_ms=detection_ms or None,
        restoration_ms=(told.restoration_ms if own.restoration_ms is None else own.restoration_ms) or None,
        action=own.action or told.action,
    )


def _stormed(counters: str) -> Iterable[tuple[str, bool]]:
    """Yield whether a storm goes on: it began once more often than it ended."""
    for port, one in named(parsed(counters), "interfaces"):
        for number, counts in named(one, "txQueues"):
            yield (
                place(port, number),
                (whole(counts.get("stuckCount")) or 0) > (whole(counts.get("recoveryCount")) or 0),
            )


def adaptive_routing(running: str, balance: str) -> Facts:
    """Return where packets choose equal paths by load: on all routed ports or none, unless EOS shows it by port."""
    found = _sections(running)
    if found is None:
        return Facts(adaptive_routing=NOT_TOLD)
    mode = MODE.search(balance)
    is_on = (mode[1].lower() if mode else found.get(BALANCE, {}).get((), "")) == DYNAMIC
    by_port = {port: row["Mode"].lower() == DYNAMIC for port, row in cells(balance) if "Mode" in row}
    routed = [port for port in _ports(found) if ("no switchport",) in found[f"interface {port}"]]
    return Facts(adaptive_routing={port: by_port.get(port, is_on) for port in routed})
