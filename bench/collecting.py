"""`scripts/bench collecting`: `netkit snapshot` of 32 devices of a lab over SSH, with every fact that checks use."""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.measure import BenchError, Sample, run, spread

ROOT = Path(__file__).parent.parent
DEVICES = 32
BUDGET_S = 5.0
SECRETS = {f"NETKIT_SECRET_{name}": "bench-bench-bench" for name in ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of snapshot of 32 devices."""

    name: str
    fabric: str
    limit: str
    options: tuple[str, ...] = ()
    is_held: bool = True
    """Whether the budget applies: with hosts, the lab's own tools take most of the time."""


SWITCHES = ("--leaves", "8", "--spines", "8", "--units", "3", "--hosts-per-unit", "1")
SCAFFOLDS = {
    **{platform: (*SWITCHES, "--platform", platform) for platform in ("nvue", "sonic", "eos", "frr")},
    "mixed": ("--leaves", "8", "--spines", "4", "--units", "1", "--hosts-per-unit", "20"),
}
KINDS = (
    Kind("32 nvue, light", "nvue", "!role=host", ("--light",)),
    Kind("32 nvue, full", "nvue", "!role=host"),
    Kind("32 sonic, light", "sonic", "!role=host", ("--light",)),
    Kind("32 sonic, full", "sonic", "!role=host"),
    Kind("32 eos, full", "eos", "!role=host"),
    Kind("32 frr, full", "frr", "!role=host"),
    Kind("12 nvue and 20 hosts, light", "mixed", "", ("--light",), is_held=False),
    Kind("12 nvue and 20 hosts, full", "mixed", "", is_held=False),
)


def main() -> int:
    """Measure; return 1 if a snapshot of switches misses the budget, 3 if a device was not read."""
    parser = argparse.ArgumentParser(prog="scripts/bench collecting", description="Collect facts from 32 devices.")
    parser.add_argument("--runs", type=int, default=5, help="looks of each kind (default 5)")
    parser.add_argument("--fabrics", default=",".join(SCAFFOLDS), help=f"of {', '.join(SCAFFOLDS)}")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-collecting.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nkb") as name:
        try:
            found = {
                kind: samples
                for fabric in given.fabrics.split(",")
                for kind, samples in _measure(Path(name), fabric, given.runs)
            }
        except BenchError as error:
            sys.stderr.write(f"error: {error}\n")
            return 3
    given.json.parent.mkdir(parents=True, exist_ok=True)
    rows = {kind.name: [asdict(sample) for sample in samples] for kind, samples in found.items()}
    given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return _table(found)


def _measure(place: Path, fabric: str, runs: int) -> Sequence[tuple[Kind, Sequence[Sample]]]:
    """Take snapshots of one lab, one of each kind in turn."""
    home = place / fabric
    home.mkdir()
    folder = home / "fabric"
    _netkit(home, "init", str(folder), *SCAFFOLDS[fabric])
    _netkit(home, "lab", "up", "--fabric", str(folder), "--lab", "bench")
    try:
        kinds = [kind for kind in KINDS if kind.fabric == fabric]
        rounds = [[_look(home, folder, kind) for kind in kinds] for _ in range(runs)]
        return list(zip(kinds, zip(*rounds, strict=True), strict=True))
    finally:
        _netkit(home, "lab", "down", "--lab", "bench")


def _look(home: Path, folder: Path, kind: Kind) -> Sample:
    sys.stderr.write(f"looking at {kind.name}\n")
    file = home / "seen.json"
    limit = ("--limit", kind.limit) if kind.limit else ()
    words = ("snapshot", "--fabric", str(folder), "--lab=bench", *limit, "--window", "0", *kind.options)
    sample = _netkit(home, *words, "--out", str(file))
    seen = json.loads(file.read_text(encoding="utf-8"))["devices"]
    failed = {name: device["failure"] for name, device in seen.items() if device.get("failure")}
    if len(seen) != DEVICES or failed:
        raise BenchError(f"{kind.name}: {len(seen)} devices seen, not all whole: {failed}")
    return sample


def _netkit(home: Path, *arguments: str) -> Sample:
    settings = {"NETKIT_LAB_DIR": str(home), "NETKIT_STATE_DIR": str(home / "state"), **SECRETS}
    words = [f"{name}={value}" for name, value in settings.items()]
    return run(["env", *words, str(Path(sys.executable).with_name("netkit")), *arguments], home)


def _table(looks: Mapping[Kind, Sequence[Sample]]) -> int:
    is_kept = True
    print(f"{'what checks ask, one sample':<34} {'least':>8} {'median':>8} {'processor':>10} {'peak':>8}")
    for kind, samples in looks.items():
        wall = spread([sample.wall_s for sample in samples])
        is_kept = is_kept and (wall.min <= BUDGET_S or not kind.is_held)
        figures = f"{wall.min:>6.2f} s {wall.median:>6.2f} s {min(sample.cpu_s for sample in samples):>8.1f} s"
        print(f"{kind.name:<34} {figures} {max(sample.peak_mb for sample in samples):>5.0f} MB")
    print(f"the budget is {BUDGET_S:g} s, held against looks at switches")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
