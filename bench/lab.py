"""`scripts/bench lab`: time from `netkit lab up` to a converged and reachable fabric, and the memory it takes."""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Row:
    """A fabric to boot, and its budget in seconds."""

    name: str
    scaffold: tuple[str, ...]
    budget_s: float


ROWS = (
    Row("reference: 8 leaves, 4 spines, 10 hosts", (), 20),
    Row(
        "64 leaves, 16 spines, 8 hosts",
        ("--leaves", "8", "--spines", "16", "--units", "8", "--hosts-per-unit", "1"),
        90,
    ),
)


@dataclass(frozen=True)
class Result:
    """The cost of one boot."""

    name: str
    seconds: float
    devices: int
    megabytes: float


def main() -> int:
    """Measure; return 1 if the least disturbed run misses a budget."""
    parser = argparse.ArgumentParser(prog="scripts/bench lab", description="Boot fabrics and time them.")
    parser.add_argument("--runs", type=int, default=3, help="boots of each fabric (default 3)")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-lab.json", help="default out/bench-lab.json")
    given = parser.parse_args()
    results: dict[str, list[Result]] = {row.name: [] for row in ROWS}
    with tempfile.TemporaryDirectory(prefix="nkb") as home:
        for _ in range(given.runs):
            for row in ROWS:
                sys.stderr.write(f"booting {row.name}\n")
                results[row.name].append(_boot(Path(home), row))
    given.json.parent.mkdir(parents=True, exist_ok=True)
    kept = {name: [asdict(result) for result in found] for name, found in results.items()}
    given.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return _table(results)


def _boot(home: Path, row: Row) -> Result:
    fabric = ROOT / "inventory" / "reference"
    if row.scaffold:
        fabric = home / "fabric"
        shutil.rmtree(fabric, ignore_errors=True)
        _netkit(home, "init", str(fabric), *row.scaffold)
    began = time.monotonic()
    output = _netkit(home, "lab", "up", "--fabric", str(fabric), "--lab", "bench")
    seconds = time.monotonic() - began
    try:
        megabytes = _weight(int((home / "bench" / "init.pid").read_text().split()[0]))
    finally:
        _netkit(home, "lab", "down", "--lab", "bench")
    found = re.search(r"(\d+) devices", output)
    return Result(row.name, seconds, int(found[1]) if found else 0, megabytes)


def _netkit(home: Path, *arguments: str) -> str:
    words = [str(Path(sys.executable).with_name("netkit")), *arguments]
    done = subprocess.run(
        words, env={**os.environ, "NETKIT_LAB_DIR": str(home)}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def _weight(init: int) -> float:
    """The memory of all processes of a lab in MB, with shared pages counted proportionally."""
    namespace = Path(f"/proc/{init}/ns/pid").readlink()
    total = 0
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "ns/pid").readlink() == namespace:
                text = (entry / "smaps_rollup").read_text()
                total += int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1])  # type: ignore[index]
        except (OSError, TypeError):
            continue
    return total / 1024


def _table(results: dict[str, list[Result]]) -> int:
    is_met = True
    print(f"{'fabric':<42} {'least':>7} {'median':>7} {'budget':>7} {'MB':>7} {'MB a device':>12}")
    for row in ROWS:
        found: Sequence[Result] = results[row.name]
        seconds = [result.seconds for result in found]
        weight = max(result.megabytes for result in found)
        is_met = is_met and min(seconds) <= row.budget_s
        print(
            f"{row.name:<42} {min(seconds):>5.1f} s {statistics.median(seconds):>5.1f} s {row.budget_s:>5.0f} s "
            f"{weight:>7.0f} {weight / max(found[0].devices, 1):>12.0f}"
        )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
