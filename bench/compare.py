"""`scripts/bench compare`: what `netkit check --compare` of two snapshots of the superpod costs, beside reading both.

Every run is a whole process. The snapshots hold every switch and host, healthy, and differ in one link.
"""

import argparse
import gzip
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bench import healthy
from bench.measure import BenchError, Sample, run, spread
from netkit import design
from netkit.facts import Snapshot, serial
from netkit.hardware import Catalog
from netkit.intent import load

ROOT = Path(__file__).parent.parent
FABRIC, QUICK = ROOT / "inventory" / "superpod", ROOT / "inventory" / "reference"
MUST_CPU_S, MUST_MB = 30.0, 1000.0
NAMES = ("before.json.gz", "after.json.gz")
READING = f"from pathlib import Path; from netkit.facts import serial; [serial.read(Path(name)) for name in {NAMES}]"
LATER_S = 600.0


def main() -> int:
    """Measure, and return 1 when a budget is missed, 3 when something could not be measured."""
    parser = argparse.ArgumentParser(prog="scripts/bench compare", description="Compare two snapshots.")
    parser.add_argument("--quick", action="store_true", help="a small fabric, one run each, no budget")
    parser.add_argument("--runs", type=int, default=3, help="runs of each row (default 3)")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-compare.json")
    given = parser.parse_args()
    fabric, runs = (QUICK, 1) if given.quick else (FABRIC, given.runs)
    try:
        with tempfile.TemporaryDirectory(prefix="nkb") as name:
            home = Path(name)
            port = write(fabric, home)
            reading = [run((sys.executable, "-c", READING), home) for _ in range(runs)]
            words = ("from netkit.cli import main; main()", "check", "--compare", *NAMES, "--fabric", str(fabric))
            comparing = [run((sys.executable, "-c", *words), home, expected=1) for _ in range(runs)]
            if port not in (home / "output.txt").read_text(encoding="utf-8"):
                raise BenchError(f"the comparison does not name {port}, which went down")
    except (BenchError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    found = {"reading both": reading, "comparing": comparing}
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps({row: _figures(samples) for row, samples in found.items()}, indent=1) + "\n")
    for row, samples in found.items():
        sys.stdout.write(f"{row:<14}{'  '.join(f'{name} {value:.1f}' for name, value in _figures(samples).items())}\n")
    figures = _figures(comparing)
    return 0 if given.quick or (figures["cpu_s"] <= MUST_CPU_S and figures["peak_mb"] <= MUST_MB) else 1


def write(folder: Path, home: Path) -> str:
    """Write two snapshots of a fabric; return the port that is down in the second one."""
    fabric = design.build(load(folder).intent, Catalog())
    before = healthy.snapshot(fabric)
    before = replace(before, devices={**before.devices, **{host.name: healthy.host(host) for host in fabric.hosts}})
    leaf = fabric.tier("leaf")[0]
    seen, port = before.devices[leaf.name], leaf.fabric_ports[0].name
    interfaces = {name: replace(one, is_up=one.is_up and name != port) for name, one in seen.facts.interfaces.items()}  # type: ignore[union-attr]  # made by us
    broken = replace(seen, facts=replace(seen.facts, interfaces=interfaces))
    after = Snapshot(before.fabric, before.taken_s + LATER_S, {**before.devices, leaf.name: broken})
    for name, snapshot in zip(NAMES, (before, after), strict=True):
        (home / name).write_bytes(gzip.compress(serial.dump(snapshot), 1))
    return port


def _figures(samples: list[Sample]) -> dict[str, float]:
    """The figures of the least disturbed run."""
    return {name: spread([getattr(one, name) for one in samples]).min for name in ("wall_s", "cpu_s", "peak_mb")}


if __name__ == "__main__":
    sys.exit(main())
