"""The bits that arrive at each port: error rates, and what FEC counts."""

import re
from collections.abc import Iterator, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.optic import Line
from netkit.platforms.nvue.facts.part import Parts, PortPart
from netkit.platforms.nvue.facts.shown import Shown, counted, real, whole

BIN = re.compile(r"rs-num-corr-err-bin([0-9]{1,2})")
LANE_BER = re.compile(r"raw-ber-lane([0-9]{1,2})")
LANE_ERRORS = re.compile(r"phy-raw-errors-lane[0-9]{1,2}")
LEAST_BER = 1e-200
"""Below this it is how NVUE writes that there were no errors: 15E-255."""
COUNTED = {
    "received_bits": "phy-received-bits",
    "fec_uncorrectable": "effective-errors",
}


def part(path: str) -> PortPart:
    """Return what to ask; what the path is called depends on the release."""

    def parse(ports: Parts, _texts: Sequence[str]) -> Facts:
        lines = {port: line for port, shown in ports.items() if (line := _line(shown)) != Line()}
        counters: dict[str, dict[str, int]] = {}
        for port, shown in ports.items():
            for name, at, count in _counts(port, shown):
                counters.setdefault(name, {})[at] = count
        return Facts(lines=lines or Absent(f"{path}: tells no error rate"), counters=counted(path, counters))

    return PortPart(path, frozenset({"lines", "counters"}), parse)


def _line(shown: Shown) -> Line:
    lanes = ((int(sign[1]) + 1, _ber(shown[key])) for key in shown if (sign := LANE_BER.fullmatch(key)))
    return Line(
        ber=_ber(shown.get("raw-ber")),
        effective_ber=_ber(shown.get("effective-ber")),
        lane_ber={lane: ber for lane, ber in lanes if ber is not None and not _is_unused(shown, lane)},
    )


def _is_unused(shown: Shown, lane: int) -> bool:
    """Whether a lane shows a plain 0, as those do that carry nothing."""
    return str(shown.get(f"raw-ber-lane{lane - 1}")).strip() in {"0", "0.0"}


def _ber(value: object) -> float | None:
    rate = real(value)
    if rate is None or not 0 <= rate <= 1:
        return None
    return rate if rate >= LEAST_BER else 0.0


def _counts(port: str, shown: Shown) -> Iterator[tuple[str, str, int]]:
    for name, key in COUNTED.items():
        count = whole(shown.get(key))
        if count is not None:
            yield name, port, count
    errors = [whole(shown[key]) for key in shown if LANE_ERRORS.fullmatch(key)]
    if errors and None not in errors:
        yield "corrected_bits", port, sum(filter(None, errors))
    bins = {int(sign[1]): whole(shown[key]) for key in shown if (sign := BIN.fullmatch(key))}
    if bins and None not in bins.values():
        yield from (("fec_bin", place(port, number), count or 0) for number, count in bins.items())
        yield "fec_corrected", port, sum(count or 0 for number, count in bins.items() if number > 0)
