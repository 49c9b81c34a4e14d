"""Lanes of light, whoever told of them: which are in use, and which of their readings are none."""

from collections.abc import Mapping
from dataclasses import replace

from netkit.facts.optic import Lane, Limits

DARK_DBM = -40.0


def is_lit(lane: Lane) -> bool:
    """Whether anything goes in or out of a lane."""
    lights = (lane.rx_dbm, lane.tx_dbm)
    return bool(lane.bias_ma) or any(light is not None and light > DARK_DBM for light in lights)


def in_use(lanes: Mapping[int, Lane], count: int | None = None) -> Mapping[int, Lane]:
    """Return the lanes a port uses: as many as its media says, or those up to the last that is lit.

    A DR4 module in a cage of eight lanes uses four. A dead lane among them still counts: there are 1, 2, 4 or 8. While
    all are dark nobody can tell, and all stay.
    """
    last = max((number for number, lane in lanes.items() if is_lit(lane)), default=0)
    wanted = max(last, count or 0) or max(lanes, default=0)
    most = next((size for size in (1, 2, 4, 8, 16) if size >= wanted), wanted)
    return {number: lane for number, lane in sorted(lanes.items()) if number <= most}


def measured(lanes: Mapping[int, Lane]) -> Mapping[int, Lane]:
    """Return lanes without what no lane has any of: cables of a kind that does not measure say so with zeros."""
    lights = [light for lane in lanes.values() for light in (lane.rx_dbm, lane.tx_dbm)]
    has_light = any(light is not None and light != 0 and light > DARK_DBM for light in lights)
    has_current = any(lane.bias_ma for lane in lanes.values())
    unlit = {} if has_light else {"rx_dbm": None, "tx_dbm": None, "has_rx_loss": None}
    dead = {} if has_current else {"bias_ma": None}
    return {number: replace(lane, **unlit, **dead) for number, lane in lanes.items()}


def limits(low: float | None, high: float | None) -> Limits | None:
    """Return alarm limits; bounds that leave nothing between them are none."""
    return Limits(low_alarm=low, high_alarm=high) if low is not None and high is not None and low < high else None
