"""`netkit plan-capacity`."""

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict

from netkit.design.planner import CapacityDesign, candidates
from netkit.errors import Problem, UsageError
from netkit.hardware import Catalog
from netkit.report.table import columns
from netkit.terminal.text import check_format, write_json

TITLES = (
    *("MODEL", "TOPOLOGY", "PLANES", "GPUS", "OVERSUBSCRIPTION", "LEAVES", "SPINES", "OPTICS", "CABLES"),
    *("SWITCHES W", "OPTICS W"),
)
UNKNOWN = "not sourced"


def run(gpus: int, *, oversubscription: str, models: Sequence[str], output: str) -> int:
    """Compare designs; exit code 1 if none holds the GPUs."""
    check_format(output)
    ratio = _ratio(oversubscription)
    catalog = Catalog()
    found = list(candidates(gpus, ratio, models or catalog.names("switches"), catalog))
    if output == "json":
        write_json([{**asdict(one), "command": one.command, "power_w": one.power_w} for one in found])
    else:
        _table(found)
    return 0 if any(one.summary for one in found) else 1


def _ratio(text: str) -> float:
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,3})?):1", text)
    if not match or float(match[1]) < 1:
        raise UsageError(Problem(f"--oversubscription {text!r} is not a ratio", "write it as 1:1 or 2:1"))
    return float(match[1])


def _table(found: Sequence[CapacityDesign]) -> None:
    fitting = [one for one in found if one.summary]
    if fitting:
        sys.stdout.write(columns(map(_row, fitting), TITLES) + "\n")
        sys.stdout.write("".join(f"{one.command}\n" for one in fitting))
    if lacking := [one for one in found if not one.summary]:
        sys.stdout.write("\n" if fitting else "")
        sys.stdout.write(columns((one.model, one.topology, _planes(one), one.reason) for one in lacking))


def _planes(one: CapacityDesign) -> str:
    return str(one.planes or "–")


def _watts(power_w: float | None) -> str:
    return UNKNOWN if power_w is None else f"{power_w:.0f}"


def _row(one: CapacityDesign) -> tuple[object, ...]:
    summary = one.summary
    if summary is None:
        raise ValueError(f"{one.model} has no design")
    tiers = {tier.role: tier for tier in summary.tiers}
    ratio = tiers["leaf"].oversubscription
    spines = tiers["spine"].switches if "spine" in tiers else 0
    optics = sum(item.count for item in summary.items if item.what.startswith("optical module"))
    cables = sum(summary.links.values())
    shown = "–" if ratio is None else f"{ratio:g} : 1"
    size = (summary.gpus, shown, tiers["leaf"].switches, spines, optics, cables)
    return one.model, one.topology, _planes(one), *size, _watts(one.switches_power_w), _watts(one.optics_power_w)
