"""`scripts/bench adopting`: what `netkit adopt` of 512 switches and 224 hosts costs, beside rendering them.

Every run is a whole process. The configurations are those that netkit renders, so the plan must be empty.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import yaml

from bench.measure import BenchError, Sample, run, spread

ROOT = Path(__file__).parent.parent
MUST_WALL_S, MUST_MB = 30.0, 500.0
SWITCH = {"model": "SN5600", "platform": "sonic", "version": 202411}
EMPTY = "a plan against these configurations is empty\n"
MAIN = "from netkit.cli import main; main()"


def intent(pods: int, units: int) -> dict[str, object]:
    """A three-tier fabric of pods with 8 spines, and units with 8 leaves and 4 hosts."""
    return {
        "name": "bench",
        "topology": "three-tier",
        "rails": 8,
        "ceilings": {"pods": pods, "units": units, "hosts_per_unit": 4, "spines": 8, "cores": 8},
        "switches": {
            "leaf": {**SWITCH, "host_breakout": "2x400G", "uplink_breakout": "2x400G"},
            "spine": {**SWITCH, "breakout": "2x400G", "uplink_breakout": "2x400G", "slots": 8, "first_uplink_cage": 57},
            "core": {**SWITCH, "breakout": "2x400G", "slots": 8, "planes": 4},
        },
        "hosts": {"model": "dgx-h100"},
        "units": [{"pod": f"1-{pods}", "unit": f"1-{units}", "hosts": 4}],
        "cables": {
            kind: {"media": "800G-2xDR4", "length_m": length}
            for kind, length in (("host", 30), ("spine", 100), ("core", 100))
        },
        "pools": {"loopbacks": "10.255.0.0/20", "hosts": "10.128.0.0/10"},
    }


def main() -> int:
    """Measure, and return 1 when a budget is missed, 3 when something could not be measured."""
    parser = argparse.ArgumentParser(prog="scripts/bench adopting", description="Adopt a fabric of 512 switches.")
    parser.add_argument("--quick", action="store_true", help="a small fabric, one run each, no budget")
    parser.add_argument("--runs", type=int, default=3, help="runs of each row (default 3)")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-adopting.json")
    given = parser.parse_args()
    (pods, units), runs = ((2, 1), 1) if given.quick else ((4, 14), given.runs)
    found: dict[str, list[Sample]] = {"rendering": [], "adopting": []}
    try:
        with tempfile.TemporaryDirectory(prefix="nkb") as name:
            home = Path(name)
            (home / "fabric").mkdir()
            (home / "fabric" / "fabric.yaml").write_text(yaml.safe_dump(intent(pods, units)), encoding="utf-8")
            for number in range(runs):
                saved, own = f"saved{number}", f"own{number}"
                rendering = (sys.executable, "-c", MAIN, "render", "--fabric", "fabric", "--out", saved)
                found["rendering"].append(run(rendering, home))
                found["adopting"].append(run((sys.executable, "-c", MAIN, "adopt", saved, "--out", own), home))
                if EMPTY not in (home / "output.txt").read_text(encoding="utf-8"):
                    raise BenchError("the plan of the adopted fabric is not empty")
    except (BenchError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps({row: _figures(samples) for row, samples in found.items()}, indent=1) + "\n")
    for row, samples in found.items():
        sys.stdout.write(f"{row:<14}{'  '.join(f'{name} {value:.1f}' for name, value in _figures(samples).items())}\n")
    figures = _figures(found["adopting"])
    return 0 if given.quick or (figures["wall_s"] <= MUST_WALL_S and figures["peak_mb"] <= MUST_MB) else 1


def _figures(samples: list[Sample]) -> dict[str, float]:
    """The figures of the least disturbed run."""
    return {name: spread([getattr(one, name) for one in samples]).min for name in ("wall_s", "cpu_s", "peak_mb")}


if __name__ == "__main__":
    sys.exit(main())
