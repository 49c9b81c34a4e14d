"""Differences between EOS releases, as data."""

from dataclasses import dataclass, replace
from fractions import Fraction

from netkit.hardware import Split, SwitchModel
from netkit.platforms.platform import newest

TIMEZONES = {"Etc/UTC": "UTC"}
# EOS has no action that forwards from a stuck queue: the closest is to only report it.
WATCHDOG_ACTIONS = {"drop": "drop", "forward": "notify-only"}
# Units of ECN thresholds whose size in bytes depends on no chip and no speed. Whether a kbyte has 1000 is unverified.
ECN_UNIT_BYTES = {"bytes": 1, "kbytes": 1000, "mbytes": 1_000_000}
# Shares of the free buffer one queue may take that EOS supports.
ALPHAS = tuple(Fraction(1, 128) * 2**step for step in range(11))


@dataclass(frozen=True, slots=True)
class EosDialect:
    """Syntax of one range of releases."""

    since: str
    syslog_source: str = "source-interface"
    syslog_source_takes_tcp: bool = False
    portfast: str = "spanning-tree portfast"
    # 4.35 prints the PFC lines in one section with the QoS maps; earlier releases have a separate section.
    pfc_is_own_section: bool = True


_4_32 = EosDialect(since="4.32")
# 4.33 accepts both keywords and stores the new one; 4.35.1 deprecates the old one; 4.32 refuses the new one.
_4_33 = replace(_4_32, since="4.33", syslog_source="local-interface", syslog_source_takes_tcp=True)
_4_33_2 = replace(_4_33, since="4.33.2", portfast="spanning-tree portfast edge")
_4_35 = replace(_4_33_2, since="4.35", pfc_is_own_section=False)

DIALECTS = (_4_32, _4_33, _4_33_2, _4_35)


def dialect(version: str) -> EosDialect:
    return newest(DIALECTS, version)


@dataclass(frozen=True, slots=True)
class EosHardware:
    """Keywords and limits that depend on the chip rather than on the release."""

    queue_keyword: str
    queue_keyword_is_verified: bool
    has_mmu_profile: bool
    headroom_pool_limit_max_bytes: int
    speed_keywords: tuple[tuple[int, str], ...]
    speed_keyword_400g_8_lanes: str

    def speed_keyword(self, split: Split) -> str:
        """EOS's keyword for a speed, such as 400g-4. It also selects the breakout of the cage."""
        if (split.speed_gbps, split.lanes_per_port) == (400, 8) and self.speed_keyword_400g_8_lanes:
            return self.speed_keyword_400g_8_lanes
        return dict(self.speed_keywords).get(split.speed_gbps, f"{split.speed_gbps}g-{split.lanes_per_port}")


def hardware(model: SwitchModel) -> EosHardware:
    """Build the EOS part of a model; the default queue keyword is that of newer Broadcom chips, unverified."""
    data = model.platforms.get("eos", {})
    queue = data.get("queue_keyword") or {}
    return EosHardware(
        queue_keyword=queue.get("value") or "uc-tx-queue",
        queue_keyword_is_verified=bool(queue.get("verified")),
        has_mmu_profile=data.get("headroom_command") == "strata",
        headroom_pool_limit_max_bytes=int(data.get("headroom_pool_limit_max_bytes") or 0),
        speed_keywords=tuple((data.get("speed_keywords") or {}).items()),
        speed_keyword_400g_8_lanes=data.get("speed_keyword_400g_8_lanes") or "",
    )


def alpha_within(percent: int) -> str:
    """The largest α with which a single queue, at α ÷ (1 + α), stays within a percentage of the buffer.

    Strata has no pool per class: small best-effort queues keep the rest free for the lossless one.
    """
    limit = Fraction(percent, 100)
    fitting = [alpha for alpha in ALPHAS if alpha / (1 + alpha) <= limit]
    return str(fitting[-1] if fitting else ALPHAS[0])
