"""EOS, the lossless half: QoS profiles, maps, PFC watchdog and the packet buffer, decided."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from netkit.design.fabric import Switch
from netkit.design.traffic import EcnThresholds, LosslessProfile, TrafficClass, WatchdogTimers
from netkit.platforms.eos.dialects import EosHardware

MMU_PROFILE = "LOSSLESS"
# Releases differ in whether the watchdog looks at PFC queues without guaranteed bandwidth; one percent costs nothing.
GUARANTEED_PERCENT = 1
# EOS has no action that forwards out of a stuck queue: the nearest is to report and leave it alone.
WATCHDOG_ACTIONS = {"drop": "drop", "forward": "notify-only"}
WATCHDOG_POLL_SHORTEST_S, WATCHDOG_POLL_LONGEST_S = 0.005, 30.0
# Shares of the free buffer one queue may take, as EOS writes them.
ALPHAS = tuple(Fraction(1, 128) * 2**step for step in range(11))
# A lossless priority group pauses its sender at an equal share (the figure of public 7060 configurations), and the
# egress queue behind it must never drop first, so it gets all EOS can give.
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


@dataclass(frozen=True, slots=True)
class QosProfile:
    """What ports of one speed apply as service-profile."""

    name: str
    queues: tuple[EosQueue, ...]


@dataclass(frozen=True, slots=True)
class DscpMap:
    """All DSCPs of one class."""

    dscps: str
    traffic_class: int


@dataclass(frozen=True, slots=True)
class EosWatchdogTimes:
    """The PFC watchdog in EOS's unit, seconds."""

    timeout_s: str
    recovery_s: str
    polling_s: str
    action: str


@dataclass(frozen=True, slots=True)
class Mmu:
    """The packet buffer of a Strata chip: one profile for the whole switch, so for its longest cable."""

    name: str
    headroom_bytes: int
    lossless_ingress_alpha: str
    egress_alphas: tuple[tuple[int, str], ...]
    headroom_pool_bytes: int | None


@dataclass(frozen=True, slots=True)
class EosQos:
    """Everything about queues and buffers of one switch."""

    queue_keyword: str
    overshadowed: tuple[int, ...]
    profiles: tuple[QosProfile, ...]
    dscp_maps: tuple[DscpMap, ...]
    traffic_classes: tuple[int, ...]
    watchdog: EosWatchdogTimes
    mmu: Mmu | None


def build(lossless: LosslessProfile, switch: Switch, hardware: EosHardware) -> EosQos:
    """Return the QoS of a switch.

    All 64 DSCPs are mapped, also where EOS's default agrees: the intended state must not hang on a release's
    defaults. A running-config may omit such lines, so compare through a config session, never line by line.
    """
    classes = lossless.classes
    return EosQos(
        queue_keyword=hardware.queue_keyword,
        overshadowed=tuple(_overshadowed(classes)),
        profiles=tuple(_profiles(classes, switch)),
        dscp_maps=tuple(
            DscpMap(" ".join(map(str, traffic.dscps)), traffic.priority) for traffic in classes if traffic.dscps
        ),
        traffic_classes=tuple(traffic.priority for traffic in classes),
        watchdog=watchdog_times(lossless.watchdog),
        mmu=_mmu(lossless, switch, hardware),
    )


def profile_name(speed_gbps: int) -> str:
    """Return the name of the QoS profile of a port speed."""
    return f"ROCE-{speed_gbps}G"


def _profiles(classes: tuple[TrafficClass, ...], switch: Switch) -> Iterator[QosProfile]:
    thresholds = {port.profile.speed_gbps: port.profile.ecn for port in switch.ports}
    for speed_gbps, ecn in sorted(thresholds.items()):
        yield QosProfile(profile_name(speed_gbps), tuple(_queue(traffic, ecn) for traffic in classes))


def _overshadowed(classes: tuple[TrafficClass, ...]) -> Iterator[int]:
    """Yield strict queues below a weighted one: some chips then serve every lower queue by weight (unverified)."""
    highest_weighted = max(traffic.priority for traffic in classes if not traffic.is_strict)
    return (traffic.priority for traffic in classes if traffic.is_strict and traffic.priority < highest_weighted)


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
    )


def watchdog_times(watchdog: WatchdogTimers) -> EosWatchdogTimes:
    """Return the watchdog in seconds: times to 0.01 s and at most a minute, polling at most half of the shorter."""
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
    largest = max(headrooms)
    alphas = {
        lossless.roce.priority: LOSSLESS_EGRESS_ALPHA,
        lossless.best_effort.priority: alpha_within(100 - lossless.pool_percent),
    }
    return Mmu(
        name=MMU_PROFILE,
        headroom_bytes=largest,
        lossless_ingress_alpha=LOSSLESS_INGRESS_ALPHA,
        egress_alphas=tuple(sorted(alphas.items())),
        headroom_pool_bytes=_pool_limit(switch, hardware),
    )


def _pool_limit(switch: Switch, hardware: EosHardware) -> int | None:
    """Return the vendor's pool for all headrooms together, if EOS takes the figure.

    Not the sum of the ports in use: that would change the buffers of a running switch with every host that comes.
    """
    known = switch.model.headroom_pool_bytes
    return known if known is not None and known <= hardware.headroom_pool_limit_max_bytes else None


def alpha_within(percent: int) -> str:
    """Return the largest share a queue alone can take, α ÷ (1 + α), that stays within a percentage of the buffer.

    Strata has no pool per class: keeping every best-effort queue small is how the rest stays free for the lossless one.
    """
    limit = Fraction(percent, 100)
    fitting = [alpha for alpha in ALPHAS if alpha / (1 + alpha) <= limit]
    return str(fitting[-1] if fitting else ALPHAS[0])
