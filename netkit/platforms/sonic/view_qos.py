"""The QoS values that the templates of SONiC need: maps, schedulers, ECN profiles, buffers and the PFC watchdog."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.design.fabric import Port, PortProfile, Switch
from netkit.design.traffic import EcnThresholds, Headroom, LosslessProfile, WatchdogTimers
from netkit.errors import Problem, RenderError
from netkit.hardware import pfc
from netkit.platforms.sonic.dialects import SonicDialect
from netkit.platforms.sonic.hardware import BufferPools, SonicHardware

# Packets of the CPU (BGP, BFD, LLDP) use this queue whatever their DSCP.
CONTROL_QUEUE = 7
# Up to 202505 a patch may change only the green thresholds of the profile with this name. Changing the further profiles
# of port speeds with other thresholds takes a reload.
ECN_PROFILE = "AZURE_LOSSLESS"
BYTES_PER_S_PER_GBPS = 125_000_000
WATCHDOG_MIN_MS = 100

Numbers = dict[str, str]
"""A map of numbers, which are texts in CONFIG_DB."""


@dataclass(frozen=True, slots=True)
class StrictScheduler:
    """A strict queue; with a rate, in bytes a second, it is capped."""

    name: str
    rate: int | None


@dataclass(frozen=True, slots=True)
class SonicEcnProfile:
    """A WRED profile that marks and does not drop."""

    name: str
    thresholds: EcnThresholds


@dataclass(frozen=True, slots=True)
class HeadroomProfile:
    """A lossless ingress profile with explicit headroom."""

    name: str
    headroom: Headroom


@dataclass(frozen=True, slots=True)
class LosslessPort:
    """A port in use, and its profiles."""

    name: str
    ecn_profile: str
    cnp_scheduler: str
    headroom_profile: str


@dataclass(frozen=True, slots=True)
class SonicWatchdogTimes:
    """The watchdog's times within the range of PFC_WD."""

    poll_ms: int
    detection_ms: int
    restoration_ms: int
    action: str


@dataclass(frozen=True, slots=True)
class SonicQos:
    """All of a switch's QoS."""

    roce: int
    cnp: int
    best_effort: int
    best_effort_weight: int
    roce_weight: int
    dscp_to_class: Numbers
    class_to_queue: Numbers
    pfc_to_queue: Numbers
    control_queue: int | None
    strict_schedulers: tuple[StrictScheduler, ...]
    ecn_profiles: tuple[SonicEcnProfile, ...]
    ports: tuple[LosslessPort, ...]
    watchdog: SonicWatchdogTimes
    pools: BufferPools
    has_pool_shares: bool
    lossless_percent: int
    lossy_percent: int
    headroom_profiles: tuple[HeadroomProfile, ...]
    lossy_queues: tuple[str, ...]
    lossless_frame_bytes: int


def build(lossless: LosslessProfile, switch: Switch, hardware: SonicHardware, words: SonicDialect) -> SonicQos:
    profiles = _distinct(switch.ports)
    ecn_profiles = _ecn_profiles(profiles)
    roce, cnp, rest = lossless.roce, lossless.cnp, lossless.best_effort
    has_control = CONTROL_QUEUE not in {roce.priority, cnp.priority, rest.priority}
    return SonicQos(
        roce=roce.priority,
        cnp=cnp.priority,
        best_effort=rest.priority,
        # A DWRR scheduler takes 1 to 100; the intent may give all to one class.
        best_effort_weight=max(1, rest.weight),
        roce_weight=max(1, roce.weight),
        dscp_to_class=_numbers(lossless.priority_to_class[priority] for priority in lossless.dscp_to_priority),
        class_to_queue=_numbers(lossless.priority_to_class),
        pfc_to_queue=_numbers(range(8)),
        control_queue=CONTROL_QUEUE if has_control else None,
        strict_schedulers=tuple(_strict_schedulers(lossless, profiles, has_control=has_control)),
        ecn_profiles=ecn_profiles,
        ports=tuple(_ports(lossless, switch, hardware, ecn_profiles)),
        watchdog=_watchdog(lossless.watchdog),
        pools=hardware.pools,
        has_pool_shares=words.has_pool_percentage,
        lossless_percent=lossless.pool_percent,
        lossy_percent=100 - lossless.pool_percent,
        headroom_profiles=tuple(_headroom_profiles(profiles, switch, hardware)),
        lossy_queues=tuple(_ranges(queue for queue in range(8) if queue != roce.priority)),
        lossless_frame_bytes=pfc.lossless_frame_bytes(),
    )


def _distinct(ports: Iterable[Port]) -> tuple[PortProfile, ...]:
    """Return each port profile once: a switch has two or three, however many ports."""
    return tuple({id(port.profile): port.profile for port in ports}.values())


def _ports(
    lossless: LosslessProfile, switch: Switch, hardware: SonicHardware, ecn_profiles: tuple[SonicEcnProfile, ...]
) -> Iterator[LosslessPort]:
    ecn_names = {profile.thresholds: profile.name for profile in ecn_profiles}
    profiles_by_id = {
        id(profile): (
            ecn_names[profile.ecn],
            _cnp_scheduler(lossless, profile.speed_gbps),
            _explicit_headroom(profile, switch, hardware) or "NULL",
        )
        for profile in _distinct(switch.ports)
    }
    for port in switch.ports:
        yield LosslessPort(port.name, *profiles_by_id[id(port.profile)])


def _numbers(values: Iterable[int]) -> Numbers:
    return {str(number): str(value) for number, value in enumerate(values)}


def cable_length(profile: PortProfile) -> str:
    """Return the CABLE_LENGTH value: the vendor's table row, so that switch and design get the same headroom."""
    room = profile.headroom
    length = room.table_cable_m if room and room.table_cable_m else profile.cable.length_m
    return f"{math.ceil(length)}m"


def _cnp_scheduler(lossless: LosslessProfile, speed_gbps: int) -> str:
    return "scheduler.cnp" if lossless.cnp.shape_percent is None else f"scheduler.cnp-{speed_gbps}g"


def _strict_schedulers(
    lossless: LosslessProfile, profiles: tuple[PortProfile, ...], *, has_control: bool
) -> Iterator[StrictScheduler]:
    """Yield the schedulers of control traffic and CNP. Rates are in bytes a second; unverified on a switch."""
    percent = lossless.cnp.shape_percent
    if has_control:
        yield StrictScheduler("scheduler.control", None)
    if percent is None:
        yield StrictScheduler("scheduler.cnp", None)
        return
    for speed in sorted({profile.speed_gbps for profile in profiles}):
        yield StrictScheduler(_cnp_scheduler(lossless, speed), speed * BYTES_PER_S_PER_GBPS * percent // 100)


def _ecn_profiles(profiles: tuple[PortProfile, ...]) -> tuple[SonicEcnProfile, ...]:
    """Return one profile per set of thresholds; the fastest ports use the one that can be patched."""
    speeds: dict[EcnThresholds, int] = {}
    for profile in profiles:
        speeds[profile.ecn] = max(profile.speed_gbps, speeds.get(profile.ecn, 0))
    fastest_first = sorted(speeds.items(), key=lambda item: -item[1])
    return tuple(
        SonicEcnProfile(f"{ECN_PROFILE}_{speed}G" if number else ECN_PROFILE, thresholds)
        for number, (thresholds, speed) in enumerate(fastest_first)
    )


def _watchdog(watchdog: WatchdogTimers) -> SonicWatchdogTimes:
    """Raise times to the shortest poll interval; the design has refused those that are too long."""
    poll = max(WATCHDOG_MIN_MS, watchdog.poll_ms)
    return SonicWatchdogTimes(
        poll_ms=poll,
        detection_ms=max(poll, watchdog.detection_ms),
        restoration_ms=max(poll, watchdog.restoration_ms),
        action=watchdog.action,
    )


def _explicit_headroom(profile: PortProfile, switch: Switch, hardware: SonicHardware) -> str:
    """Return the name of the profile with a port's explicit headroom; empty if the switch computes it."""
    room, speed, cable = profile.headroom, profile.speed_gbps, cable_length(profile)
    if hardware.is_dynamic:
        # "NULL": the switch computes the headroom from speed, cable and MTU. A value from the intent is fixed, under a
        # name that the switch does not use for computed profiles.
        return f"lossless_{speed * 1000}_{cable}_given" if room and room.origin == "intent" else ""
    if room is None:
        raise RenderError(
            Problem(
                f"no headroom is known for {switch.model.name} at {speed}G and {profile.cable.length_m:g} m",
                f"give lossless.headroom for {speed}",
            )
        )
    # buffermgrd looks for a profile with this name for each speed and cable, and uses an existing one as it is, so that
    # these values apply whether or not the lookup table of the image has them.
    return f"pg_lossless_{speed * 1000}_{cable}_profile"


def _headroom_profiles(
    profiles: tuple[PortProfile, ...], switch: Switch, hardware: SonicHardware
) -> Iterator[HeadroomProfile]:
    found: dict[str, Headroom] = {}
    for profile in profiles:
        name = _explicit_headroom(profile, switch, hardware)
        if name and profile.headroom:  # cables of almost one length share a name, and need the room of the longest
            found[name] = max(found.get(name, profile.headroom), profile.headroom, key=lambda room: room.xoff_bytes)
    for name, room in sorted(found.items()):
        yield HeadroomProfile(name, room)


def _ranges(numbers: Iterable[int]) -> Iterator[str]:
    """Yield 0-2, 4-7 for the numbers 0, 1, 2, 4, 5, 6, 7."""
    run: list[int] = []
    for number in (*numbers, -1):
        if run and number != run[-1] + 1:
            yield f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0])
            run = []
        run.append(number)
