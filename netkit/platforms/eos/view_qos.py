"""Values for EOS's templates: QoS profiles, maps, PFC watchdog and the packet buffer."""

from dataclasses import dataclass

from netkit.design.fabric import Switch
from netkit.design.traffic import EcnThresholds, LosslessProfile, TrafficClass, WatchdogTimers
from netkit.platforms.eos.dialects import ECN_UNIT_BYTES, WATCHDOG_ACTIONS, EosHardware, alpha_within

MMU_PROFILE = "LOSSLESS"
# Releases differ in whether the watchdog covers PFC queues without guaranteed bandwidth; one percent costs nothing.
GUARANTEED_PERCENT = 1
WATCHDOG_POLL_SHORTEST_S, WATCHDOG_POLL_LONGEST_S = 0.005, 30.0
# A lossless priority group pauses its sender at an equal share (as in public 7060 configurations). Its egress queue
# must never drop first, so it gets EOS's maximum.
LOSSLESS_INGRESS_ALPHA, LOSSLESS_EGRESS_ALPHA = "1", "8"


@dataclass(frozen=True, slots=True)
class EosQueue:
    """One transmit queue of a QoS profile: weighted or strict."""

    number: int
    weighted: bool
    weight: int | None
    guaranteed: int | None
    strict: bool
    shape_percent: int | None
    ecn: EcnThresholds | None
    ecn_minimum: str = ""
    """The lower threshold with its unit."""
    ecn_maximum: str = ""


@dataclass(frozen=True, slots=True)
class QosProfile:
    """The service-profile for ports of one speed."""

    name: str
    queues: tuple[EosQueue, ...]


@dataclass(frozen=True, slots=True)
class DscpMap:
    """The DSCPs of one class."""

    dscps: str
    traffic_class: int


@dataclass(frozen=True, slots=True)
class EosWatchdogTimes:
    """PFC watchdog timers in seconds."""

    timeout_s: str
    recovery_s: str
    polling_s: str
    action: str


@dataclass(frozen=True, slots=True)
class Mmu:
    """The packet buffer of a Strata chip: one profile for the switch, sized for its longest cable."""

    name: str
    headroom_bytes: int
    lossless_ingress_alpha: str
    egress_alphas: tuple[tuple[int, str], ...]
    headroom_pool_bytes: int | None


@dataclass(frozen=True, slots=True)
class EosQos:
    """Queues and buffers of one switch."""

    queue_keyword: str
    overshadowed: tuple[int, ...]
    profiles: tuple[QosProfile, ...]
    dscp_maps: tuple[DscpMap, ...]
    traffic_classes: tuple[int, ...]
    watchdog: EosWatchdogTimes
    mmu: Mmu | None


def build(lossless: LosslessProfile, switch: Switch, hardware: EosHardware) -> EosQos:
    """Build the QoS of a switch.

    All 64 DSCPs are mapped, even where EOS's default agrees: the intended state must not depend on a release's
    defaults. A running-config may omit such lines, so compare through a config session, never line by line.
    """
    classes = lossless.classes
    thresholds = {port.profile.speed_gbps: port.profile.ecn for port in switch.ports}
    highest_weighted = max(traffic.priority for traffic in classes if not traffic.is_strict)
    return EosQos(
        queue_keyword=hardware.queue_keyword,
        # Some chips serve every strict queue below a weighted one by weight (unverified).
        overshadowed=tuple(one.priority for one in classes if one.is_strict and one.priority < highest_weighted),
        profiles=tuple(
            QosProfile(profile_name(speed_gbps), tuple(_queue(traffic, ecn) for traffic in classes))
            for speed_gbps, ecn in sorted(thresholds.items())
        ),
        dscp_maps=tuple(
            DscpMap(" ".join(map(str, traffic.dscps)), traffic.priority) for traffic in classes if traffic.dscps
        ),
        traffic_classes=tuple(traffic.priority for traffic in classes),
        watchdog=watchdog_times(lossless.watchdog),
        mmu=_mmu(lossless, switch, hardware),
    )


def profile_name(speed_gbps: int) -> str:
    return f"ROCE-{speed_gbps}G"


def _queue(traffic: TrafficClass, ecn: EcnThresholds) -> EosQueue:
    shape = traffic.shape_percent
    return EosQueue(
        number=traffic.priority,
        weighted=not traffic.is_strict,
        weight=None if traffic.is_strict else traffic.weight or None,
        guaranteed=GUARANTEED_PERCENT if traffic.is_lossless else None,
        strict=traffic.is_strict,
        shape_percent=shape if shape is not None and shape < 100 else None,
        ecn=ecn if traffic.is_lossless else None,
        ecn_minimum=_in_unit(ecn.min_bytes, ecn.min_unit),
        ecn_maximum=_in_unit(ecn.max_bytes, ecn.max_unit),
    )


def _in_unit(count_bytes: int, unit: str) -> str:
    count, rest = divmod(count_bytes, ECN_UNIT_BYTES[unit])
    return f"{count_bytes} bytes" if rest else f"{count} {unit}"


def watchdog_times(watchdog: WatchdogTimers) -> EosWatchdogTimes:
    """Convert the timers to seconds, rounded up to 0.01 s; polling is at most half of the shorter one."""
    timeout = _hundredths_up(watchdog.detection_ms)
    recovery = _hundredths_up(watchdog.restoration_ms)
    polling = min(watchdog.poll_ms / 1000, timeout / 2, recovery / 2, WATCHDOG_POLL_LONGEST_S)
    polling = max(polling, WATCHDOG_POLL_SHORTEST_S)
    return EosWatchdogTimes(f"{timeout:g}", f"{recovery:g}", f"{polling:g}", WATCHDOG_ACTIONS[watchdog.action])


def _hundredths_up(milliseconds: int) -> float:
    return -(-milliseconds // 10) / 100


def _mmu(lossless: LosslessProfile, switch: Switch, hardware: EosHardware) -> Mmu | None:
    headrooms = [port.profile.headroom.xoff_bytes for port in switch.ports if port.profile.headroom]
    if not hardware.has_mmu_profile or not headrooms:
        return None
    # The vendor's pool for all headrooms, if EOS accepts the figure. The sum of the ports in use would change the
    # buffers of a running switch with every host that is added.
    pool = switch.model.headroom_pool_bytes
    alphas = {
        lossless.roce.priority: LOSSLESS_EGRESS_ALPHA,
        lossless.best_effort.priority: alpha_within(100 - lossless.pool_percent),
    }
    return Mmu(
        name=MMU_PROFILE,
        headroom_bytes=max(headrooms),
        lossless_ingress_alpha=LOSSLESS_INGRESS_ALPHA,
        egress_alphas=tuple(sorted(alphas.items())),
        headroom_pool_bytes=pool if pool is not None and pool <= hardware.headroom_pool_limit_max_bytes else None,
    )
