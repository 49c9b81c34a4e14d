"""What a switch model's data file says for EOS, typed."""

from dataclasses import dataclass

from netkit.hardware import Split, SwitchModel


@dataclass(frozen=True, slots=True)
class EosHardware:
    """The words and limits that depend on the chip rather than on the release."""

    queue_keyword: str
    queue_keyword_is_verified: bool
    has_mmu_profile: bool
    headroom_pool_limit_max_bytes: int
    speed_keywords: tuple[tuple[int, str], ...]
    speed_keyword_400g_8_lanes: str

    def speed_keyword(self, split: Split) -> str:
        """Return the speed as EOS writes it: 400g-4. It also selects the breakout of the cage."""
        if (split.speed_gbps, split.lanes_per_port) == (400, 8) and self.speed_keyword_400g_8_lanes:
            return self.speed_keyword_400g_8_lanes
        return dict(self.speed_keywords).get(split.speed_gbps, f"{split.speed_gbps}g-{split.lanes_per_port}")


def hardware(model: SwitchModel) -> EosHardware:
    """Return the EOS part of a model; without a queue keyword, the one of newer Broadcom chips, unverified."""
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
