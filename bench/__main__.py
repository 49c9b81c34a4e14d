"""`scripts/bench`: measure, print the table, write the JSON."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from bench import plan, report
from bench.fabrics import HARDWARE
from bench.measure import BenchError
from bench.plan import Programs
from bench.task import Task, measure_all

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Measure; return 1 if a budget is missed, 3 if something could not be measured."""
    given = _arguments()
    programs = Programs(given.netkit, given.peer_python if given.peer and given.peer_python.exists() else None)
    try:
        with tempfile.TemporaryDirectory(prefix="netkit-bench-") as name:
            return _bench(Path(name), given, programs)
    except BenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return 3


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure netkit, and pyavd beside it.")
    parser.add_argument("--quick", action="store_true", help="small fabrics, one run each, no budgets")
    parser.add_argument("--runs", type=int, default=7, help="runs of each row (default 7)")
    parser.add_argument("--growth-runs", type=int, default=3, help="runs of each size (default 3)")
    parser.add_argument("--platforms", default=",".join(HARDWARE), help="the first one is compared and grown")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench.json", help="default out/bench.json")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="leave pyavd out")
    parser.add_argument("--netkit", type=Path, default=Path(sys.executable).with_name("netkit"))
    parser.add_argument("--peer-python", type=Path, default=ROOT / ".bench-venv" / "bin" / "python")
    return parser.parse_args()


def _bench(folder: Path, given: argparse.Namespace, programs: Programs) -> int:
    platforms = tuple(given.platforms.split(","))
    runs, growth_runs = (1, 1) if given.quick else (given.runs, given.growth_runs)
    for task in plan.warm_up(folder / "warm-up", programs, platforms):
        _say(task)
        task.measure(folder)
    bench = plan.make(folder, programs, platforms, runs=runs, growth_runs=growth_runs, quick=given.quick)
    for tasks in (bench.main, (bench.start_up, *bench.growth)):
        for task in measure_all(tasks, folder):
            _say(task)
    peer = plan.peer_version(programs.peer_python) if programs.peer_python else ""
    given.json.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report.as_json(bench, peer, quick=given.quick), indent=1)
    given.json.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write("\n".join(report.table(bench, peer, quick=given.quick)) + "\n")
    return 0 if given.quick or all(report.verdict(bench).values()) else 1


def _say(task: Task) -> None:
    size = f", {task.devices} devices" if task.devices else ""
    sys.stderr.write(f"measuring {task.name}, {task.subject}{size}\n")


if __name__ == "__main__":
    sys.exit(main())
