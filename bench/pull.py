"""`scripts/bench pull`: plan a pull request on the superpod, without a proof: one threshold, and the 16th unit.

Every run is a whole process of `netkit plan --against git:HEAD`, without a cache. The cost of computing the order, with
the routing model and the search in it, is measured in one more process for each.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.measure import BenchError, Sample, run, spread

ROOT = Path(__file__).parent.parent
FABRIC = "inventory/superpod"
MUST_S, MUST_MB = 5.0, 400.0
ORDER_S, ORDER_MB = 2.0, 300.0
"""The budget of computing the order: processor time, and the peak of the whole process meanwhile."""
THRESHOLD = "\nlossless:\n  ecn:\n    400: {min_bytes: 300000, max_bytes: 1500000}\n"
ORDERING = "import runpy; runpy.run_module('bench.ordering', run_name='__main__')"
UNITS = ("unit: 1-15", "unit: 1-16")
ROWS = {
    "one threshold": (("\npools:", f"{THRESHOLD}\npools:"), "152 of 632 devices change"),
    "the 16th unit": (UNITS, "40 devices are new"),
}
"""Name → the text replaced in the intent and its replacement, and a line of the resulting comment."""


def main() -> int:
    """Measure; return 1 if a budget is missed, 3 if something could not be measured."""
    given = _arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="nkb") as name:
            found = {row: _measured(Path(name) / row.replace(" ", "-"), row, given) for row in ROWS}
            orders = {row: _order(Path(name) / row.replace(" ", "-")) for row in ROWS}
    except (BenchError, subprocess.CalledProcessError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(_as_json(found) | {"order": orders}, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(_table(found) + _order_table(orders))
    is_order_kept = all(one["cpu_s"] <= ORDER_S and one["peak_mb"] <= ORDER_MB for one in orders.values())
    is_kept = all(
        min(sample.wall_s for sample in samples) <= MUST_S and max(sample.peak_mb for sample in samples) <= MUST_MB
        for samples in found.values()
    )
    return 0 if is_order_kept and is_kept else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench pull", description="Plan pull requests on the superpod.")
    parser.add_argument("--runs", type=int, default=5, help="runs of each row (default 5)")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-pull.json")
    parser.add_argument("--netkit", type=Path, default=Path(sys.executable).with_name("netkit"))
    return parser.parse_args()


def _measured(root: Path, row: str, given: argparse.Namespace) -> list[Sample]:
    """Create a repository with a change in it, and plan the change repeatedly."""
    (before, after), wanted = ROWS[row]
    shutil.copytree(ROOT / FABRIC, root / FABRIC)
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    _git(root, "commit", "-q", "-m", "as it was")
    file = root / FABRIC / "fabric.yaml"
    text = file.read_text(encoding="utf-8")
    if before not in text:
        raise BenchError(f"{FABRIC} has no {before.strip()!r} to change")
    file.write_text(text.replace(before, after, 1), encoding="utf-8")
    words = (str(given.netkit), "plan", "--fabric", FABRIC, "--against", "git:HEAD", "--format", "markdown")
    sys.stderr.write(f"planning {row}\n")
    samples = [run(words, root) for _ in range(given.runs)]
    output = (root / "output.txt").read_text(encoding="utf-8")
    if wanted not in output:
        raise BenchError(f"{row}: expected {wanted!r}, found {output[:300]}")
    return samples


def _order(root: Path) -> dict[str, float]:
    """Processor time and memory of computing a plan's order."""
    run((sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {ORDERING}", FABRIC), root)
    found: dict[str, float] = json.loads((root / "ordering.json").read_text(encoding="utf-8"))
    return found


def _git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@example.net", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, "-C", str(root), *arguments], check=True, capture_output=True)


def _as_json(found: Mapping[str, list[Sample]]) -> dict[str, object]:
    figures = ("wall_s", "cpu_s", "peak_mb")
    rows = {
        row: {figure: spread([getattr(one, figure) for one in samples]).rounded() for figure in figures}
        for row, samples in found.items()
    }
    return {"rows": rows, "budget": {"wall_s": MUST_S, "peak_mb": MUST_MB}}


def _table(found: Mapping[str, list[Sample]]) -> str:
    lines = [f"{'pull request':<16}{'wall s: min':>12}{'median':>9}{'max':>9}{'cpu s':>9}{'peak MB':>9}"]
    for row, samples in found.items():
        wall, cpu_s = spread([one.wall_s for one in samples]), min(one.cpu_s for one in samples)
        peak = max(one.peak_mb for one in samples)
        lines.append(f"{row:<16}{wall.min:>12.2f}{wall.median:>9.2f}{wall.max:>9.2f}{cpu_s:>9.2f}{peak:>9.0f}")
    lines.append(f"(must {MUST_S:g} s of the least disturbed run, and {MUST_MB:g} MB)")
    return "\n".join(lines) + "\n"


def _order_table(orders: Mapping[str, Mapping[str, float]]) -> str:
    lines = [f"{'its order alone':<16}{'cpu s':>12}{'MB more':>9}{'peak MB':>9}{'steps':>9}"]
    for row, one in orders.items():
        lines.append(f"{row:<16}{one['cpu_s']:>12.2f}{one['grown_mb']:>9.0f}{one['peak_mb']:>9.0f}{one['steps']:>9.0f}")
    lines.append(f"(must {ORDER_S:g} s of the processor, and {ORDER_MB:g} MB of the whole process)")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
