"""`scripts/bench judging`: checks on facts in memory, compared with ANTA in the same run."""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import fabrics
from bench.measure import BenchError, run, spread
from netkit import design
from netkit.hardware import Catalog
from netkit.intent import load

ROOT = Path(__file__).parent.parent
PLATFORM = "eos"
BUDGET_PER_S, REACH_PER_S = 100_000, 300_000
ALIKE = (
    *("links.up", "links.cabling", "pfc.rate", "optics.light"),
    *("optics.heat", "load.errors", "load.lossless", "bgp.sessions"),
)
"""netkit's equivalents of the peer's tests."""
WHOLE = ("bgp", "links", "load", "optics", "pfc", "routes", "watchdog")
"""Every check that needs no facts of hosts."""


@dataclass(slots=True)
class Row:
    """One program judging one fabric, with its runs."""

    name: str
    command: tuple[str, ...]
    runs: int
    rates: list[float] = field(default_factory=list)
    """Things judged per second of processor time."""
    peaks_mb: list[float] = field(default_factory=list)
    judged: int = 0
    results: int = 0

    @property
    def best_per_s(self) -> float:
        """The rate of the least disturbed run."""
        return max(self.rates)


def main() -> int:
    """Measure; return 1 if the budget is missed, 3 if something could not be measured."""
    given = _arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="nkb") as name:
            rows = _rows(Path(name), given)
            for turn in range(max(row.runs for row in rows)):
                for row in rows:
                    if turn < row.runs:
                        _take(row, Path(name))
    except BenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(_as_json(rows), indent=1) + "\n", encoding="utf-8")
    sys.stdout.write("\n".join(_table(rows)) + "\n")
    return 0 if given.quick or all(row.best_per_s >= BUDGET_PER_S for row in rows[:2]) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench judging", description="Judge facts that are there.")
    parser.add_argument("--quick", action="store_true", help="a small fabric, one run each, no budget")
    parser.add_argument("--runs", type=int, default=5, help="runs of each row (default 5)")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="leave ANTA out")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-judging.json")
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--peer-python", type=Path, default=ROOT / ".bench-venv" / "bin" / "python")
    given = parser.parse_args()
    if given.quick:
        given.runs = 1
    return given


def _rows(home: Path, given: argparse.Namespace) -> list[Row]:
    """Write the fabric and its cabling, and return the programs to measure."""
    folder = fabrics.write(home / "fabric", fabrics.QUICK if given.quick else fabrics.SPEED, PLATFORM)
    fabric = design.build(load(folder).intent, Catalog())
    links = home / "links.json"
    ports = {
        switch.name: [(port.name, port.peer, port.peer_port, port.role != "host") for port in switch.ports]
        for switch in fabric.switches
    }
    links.write_text(json.dumps(ports), encoding="utf-8")
    shutil.copytree(ROOT / "bench", home / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    own = (str(given.python), "-m", "bench.judging_work", "--fabric", str(folder), "--checks")
    rows = [
        Row("netkit, the same eight", (*own, ",".join(ALIKE)), given.runs),
        Row("netkit, all checks", (*own, ",".join(WHOLE)), given.runs),
    ]
    if given.peer and given.peer_python.exists():
        peer = (str(given.peer_python), str(ROOT / "bench" / "anta_peer.py"), "--links", str(links))
        rows += [Row("ANTA, a test a device", peer, given.runs), Row("ANTA, a test a port", (*peer, "--apart"), 1)]
    return rows


def _take(row: Row, home: Path) -> None:
    """Run once. A run that reports a finding on the healthy fabric exits with an error."""
    sys.stderr.write(f"judging: {row.name}\n")
    sample = run(row.command, home)
    output = json.loads((home / "output.txt").read_text(encoding="utf-8").splitlines()[-1])
    row.judged, row.results = output["judged"], output["results"]
    row.rates.append(output["judged"] / output["cpu_s"])
    row.peaks_mb.append(sample.peak_mb)


def _as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    return [
        {
            "name": row.name,
            "judged": row.judged,
            "results": row.results,
            "judged_per_cpu_s": spread(row.rates).rounded(),
            "peak_mb": spread(row.peaks_mb).rounded(),
        }
        for row in rows
    ]


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield f"{'':<26}{'judged':>9}{'results':>9}{'judged/s: best':>16}{'median':>9}{'results/s':>11}{'peak MB':>9}"
    for row in rows:
        rates, results = spread(row.rates), row.best_per_s * row.results / row.judged
        figures = f"{rates.max:>16,.0f}{rates.median:>9,.0f}{results:>11,.0f}{max(row.peaks_mb):>9.0f}"
        yield f"{row.name:<26}{row.judged:>9,}{row.results:>9,}{figures}"
    yield f"netkit must judge {BUDGET_PER_S:,} things in a second of processor time (reach {REACH_PER_S:,})"
    for peer in rows[2:]:
        ratio, memory = rows[0].best_per_s / peer.best_per_s, max(peer.peaks_mb) / max(rows[0].peaks_mb)
        yield f"beside {peer.name}: {ratio:.1f} × as fast, {memory:.1f} × less memory"
    if len(rows) == 2:
        yield "ANTA: absent (not installed, or not wanted)"


if __name__ == "__main__":
    sys.exit(main())
