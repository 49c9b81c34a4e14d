"""The bits that arrive: error correction, as the line side of each port's physical layer sees it."""

from collections.abc import Iterator

from netkit.facts import Absent, Facts
from netkit.facts.optic import Line
from netkit.platforms.eos.facts.command import PHY
from netkit.platforms.eos.facts.interface import fec_word
from netkit.platforms.eos.facts.port import is_port
from netkit.platforms.shown import Shown, named, number, parsed, rows, table, text, whole

DOWN = "linkDown"
Counts = dict[str, dict[str, int]]


def lines(phy: str, in_use: tuple[str, ...]) -> Facts:
    """Return error rates, and how often errors were corrected or not."""
    shown = dict(_line_sides(parsed(phy), in_use))
    if not shown:
        why = Absent(f"{PHY} shows no physical layer")
        return Facts(lines=why, counters=why)
    return Facts(lines={port: _line(one) for port, one in shown.items()}, counters=_counters(shown))


def _line_sides(answer: object, in_use: tuple[str, ...]) -> Iterator[tuple[str, Shown]]:
    """Yield port → the chip that faces the cable: the last one, for those before it face the next one."""
    for port, one in named(answer, "interfacePhyStatuses"):
        chips = [chip for chip in rows(one.get("phyStatuses")) if _location(chip) in {"line", ""}]
        if is_port(port, in_use) and chips:
            yield port, next((chip for chip in reversed(chips) if table(chip, "fec")), chips[-1])


def _location(chip: Shown) -> str:
    return text(table(chip, "description").get("location"))


def _line(chip: Shown) -> Line:
    """Return what arrives. A line that is down has no error rate, whatever its register still says."""
    is_down = text(table(chip, "phyState").get("value")) == DOWN
    return Line(
        fec=fec_word(table(chip, "fec").get("encoding")),
        ber=None if is_down else _ratio(table(chip, "preFecBer").get("value")),
    )


def _ratio(value: object) -> float | None:
    """Return a share of bits; what is no share is not known."""
    found = number(value)
    return found if found is not None and 0 <= found <= 1 else None


def _counters(chips: dict[str, Shown]) -> Counts:
    found: Counts = {}
    for port, chip in chips.items():
        fec = table(chip, "fec")
        for name, key in (("fec_corrected", "correctedCodewords"), ("fec_uncorrectable", "uncorrectedCodewords")):
            if (count := whole(table(fec, key).get("value"))) is not None:
                found.setdefault(name, {})[port] = count
        symbols = [whole(lane.get("value")) for _, lane in named(fec, "correctedSymbols")]
        if symbols and None not in symbols:
            found.setdefault("fec_symbol_errors", {})[port] = sum(count or 0 for count in symbols)
    return found
