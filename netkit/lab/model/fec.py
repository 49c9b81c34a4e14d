"""Forward error correction: from the bit error rate of a line to the codewords it corrects.

A KP4 codeword has 544 symbols of 10 bits, of which up to 15 can be put right.
"""

import math
from functools import lru_cache

from netkit.lab.reading import FecReading

SYMBOLS = 544
SYMBOL_BITS = 10
CORRECTABLE = 15
CODEWORDS_PER_GBPS_S = 1e9 * 544 / 514 * 257 / 256 / (SYMBOLS * SYMBOL_BITS)
GIGA = 1e9
AILING_SHARE = 0.97
WITHOUT = frozenset({"", "off", "none", "disabled"})


class FecReceiver:
    """The receiving end of a way: how long it was up at which bit error rate."""

    __slots__ = ("_ber", "_lane", "_since_s", "_spans", "_speed_gbps")

    def __init__(self, speed_gbps: int, started_s: float) -> None:
        self._speed_gbps = speed_gbps
        self._since_s = started_s
        self._ber = 0.0
        self._lane = 0
        self._spans: dict[tuple[float, int], float] = {}

    def turn(self, ber: float, lane: int, now_s: float) -> None:
        """Go on at another rate of wrong bits, on one lane or, as lane 0, on all; a rate of 0 means a dead line."""
        now_s = max(now_s, self._since_s)
        self._spans = dict(self._seconds(now_s))
        self._since_s = now_s
        self._ber, self._lane = ber, lane

    def clear(self, now_s: float) -> None:
        """Forget what was counted."""
        self._spans = {}
        self._since_s = max(now_s, self._since_s)

    def reading(self, mode: str, now_s: float) -> FecReading:
        """Return what the port counted up to now."""
        if mode in WITHOUT:
            return FecReading(mode=mode)
        bins = [0.0] * (CORRECTABLE + 2)
        for (ber, _), seconds in self._seconds(now_s).items():
            codewords = seconds * self._speed_gbps * CODEWORDS_PER_GBPS_S
            bins = [so_far + codewords * share for so_far, share in zip(bins, probabilities(ber), strict=True)]
        whole = tuple(map(int, bins))
        return FecReading(
            mode=mode,
            corrected_codewords=sum(whole[1 : CORRECTABLE + 1]),
            uncorrectable_codewords=whole[-1],
            pre_fec_ber=self._ber,
            effective_ber=effective(self._ber),
            histogram=whole[: CORRECTABLE + 1],
        )

    def bits(self, now_s: float) -> int:
        """Return how many bits were received."""
        return int(sum(self._seconds(now_s).values()) * self._speed_gbps * GIGA)

    def wrong_bits(self, lanes: int, now_s: float) -> tuple[int, ...]:
        """Return how many bits were put right on each lane."""
        found = [0.0] * lanes
        for (ber, ailing), seconds in self._seconds(now_s).items():
            wrong = seconds * self._speed_gbps * GIGA * ber
            for lane in range(lanes):
                found[lane] += wrong * _share(lane + 1, ailing, lanes)
        return tuple(map(int, found))

    def _seconds(self, now_s: float) -> dict[tuple[float, int], float]:
        if not self._ber:
            return self._spans
        key = (self._ber, self._lane)
        return {**self._spans, key: self._spans.get(key, 0.0) + max(now_s - self._since_s, 0.0)}


@lru_cache(maxsize=4096)
def probabilities(ber: float) -> tuple[float, ...]:
    """Return how likely a codeword has 0, 1 … 15 wrong symbols, and last, more than can be put right."""
    wrong = -math.expm1(SYMBOL_BITS * math.log1p(-ber))
    terms = [
        math.comb(SYMBOLS, count) * wrong**count * (1 - wrong) ** (SYMBOLS - count) for count in range(CORRECTABLE + 9)
    ]
    return (*terms[: CORRECTABLE + 1], sum(terms[CORRECTABLE + 1 :]))


@lru_cache(maxsize=4096)
def effective(ber: float) -> float:
    """Return the bit error rate that is left; below what a tool can show it is none."""
    if not ber:
        return 0.0
    left = probabilities(ber)[-1] * (CORRECTABLE + 1) / (SYMBOLS * SYMBOL_BITS)
    return left if left > 1e-20 else 0.0


def _share(lane: int, ailing: int, lanes: int) -> float:
    """Return the part of the wrong bits that falls on a lane."""
    if not 1 <= ailing <= lanes or lanes == 1:
        return 1 / lanes
    return AILING_SHARE if lane == ailing else (1 - AILING_SHARE) / (lanes - 1)
