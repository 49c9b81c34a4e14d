"""`scripts/bench planning`: plan thousands of unchanged devices from saved files, with and without a cache.

Every part is a fabric of a thousand switches of one NOS, or its GPU hosts, and every run a whole process of
`netkit plan --running`. For comparison, hier_config diffs some of the EOS switches in the same run.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import fabrics
from bench.fabrics import GROWTH, QUICK_GROWTH, Shape
from bench.measure import BenchError, Sample, run, spread
from netkit.platforms.plain_yaml import plain

ROOT = Path(__file__).parent.parent
PLATFORMS = ("nvue", "sonic", "eos", "frr")
HOSTS = "linux"
ALONE, COLD, WARM = "1,000 nvue, remembered", "all, cold", "all, remembered"
BUDGETS = {ALONE: (2.0, None), COLD: (60.0, None), WARM: (10.0, 4.0)}
"""Budget and target in seconds."""
COMPARED = "eos"


@dataclass(slots=True)
class Part:
    """Devices of one kind, and the runs of their plan."""

    platform: str
    devices: int
    command: tuple[str, ...]
    samples: dict[str, list[Sample]] = field(default_factory=lambda: {"cold": [], "remembered": []})

    def least_s(self, kind: str) -> float:
        """The wall time of the least disturbed run."""
        return min(sample.wall_s for sample in self.samples[kind])

    def cpu_s(self, kind: str) -> float:
        """The least processor time."""
        return min(sample.cpu_s for sample in self.samples[kind])


def main() -> int:
    """Measure; return 1 if a budget is missed, 3 if something could not be measured."""
    given = _arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="nkb") as name:
            parts, peer = _measure(Path(name), given)
    except BenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    totals = _totals(parts)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(_as_json(parts, totals, peer), indent=1) + "\n", encoding="utf-8")
    sys.stdout.write("\n".join(_table(parts, totals, peer)) + "\n")
    return 0 if given.quick or all(totals[name] <= must for name, (must, _) in BUDGETS.items()) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench planning", description="Plan thousands of unchanged devices.")
    parser.add_argument("--quick", action="store_true", help="small fabrics, one run each, no budgets")
    parser.add_argument("--runs", type=int, default=5, help="runs with everything remembered (default 5)")
    parser.add_argument("--cold-runs", type=int, default=2, help="runs with nothing remembered (default 2)")
    parser.add_argument("--peer-devices", type=int, default=100, help="what hier_config compares (default 100)")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="leave hier_config out")
    parser.add_argument("--platforms", default=",".join(PLATFORMS), help="the hosts are those of the first one")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-planning.json")
    parser.add_argument("--netkit", type=Path, default=Path(sys.executable).with_name("netkit"))
    parser.add_argument("--peer-python", type=Path, default=ROOT / ".bench-venv" / "bin" / "python")
    given = parser.parse_args()
    if given.quick:
        given.runs, given.cold_runs, given.peer_devices = 1, 1, 4
    return given


def _measure(home: Path, given: argparse.Namespace) -> tuple[list[Part], float | None]:
    """The parts with their runs, and the peer's processor time per device in milliseconds."""
    shape = QUICK_GROWTH[-1] if given.quick else GROWTH[2]
    platforms = given.platforms.split(",")
    parts = [_switches(home, given.netkit, shape, platform) for platform in platforms]
    parts.append(_hosts(home, given.netkit, shape, platforms[0]))
    has_peer = given.peer and given.peer_python.exists() and COMPARED in platforms
    peer: list[float] = []
    for turn in range(max(given.runs, given.cold_runs)):
        for part in parts:
            if turn < given.cold_runs:
                shutil.rmtree(home / "cache" / part.platform, ignore_errors=True)
                _take(home, part, "cold")
            if turn < given.runs:
                _take(home, part, "remembered")
        if turn < given.cold_runs and has_peer:
            peer.append(_peer_ms(home, given))
    return parts, min(peer, default=None)


def _switches(home: Path, netkit: Path, shape: Shape, platform: str) -> Part:
    """Save a rendered fabric as running configurations, NVUE as the JSON its driver reads."""
    sys.stderr.write(f"making {shape.switches} {platform} switches\n")
    fabric, saved = fabrics.write(home / f"fabric-{platform}", shape, platform), home / f"saved-{platform}"
    run((str(netkit), "render", "--fabric", str(fabric), "--out", str(saved), "--platform", platform), home)
    for file in saved.glob("*/startup.yaml"):
        document = plain(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps(document), encoding="utf-8")
    return _part(home, netkit, platform, shape.switches, platform, "!role=host")


def _hosts(home: Path, netkit: Path, shape: Shape, platform: str) -> Part:
    """Save the hosts of some pods as running configurations, about as many as there are switches."""
    pods = min(shape.pods, 3)
    limit = ",".join(("role=host", *(f"pod={pod}" for pod in range(1, pods + 1))))
    places = ("--fabric", str(home / f"fabric-{platform}"), "--out", str(home / f"saved-{HOSTS}"))
    run((str(netkit), "render", *places, "--limit", limit), home)
    return _part(home, netkit, HOSTS, shape.gpu_hosts // shape.pods * pods, platform, limit)


def _part(home: Path, netkit: Path, platform: str, devices: int, fabric: str, limit: str) -> Part:
    places = ("--fabric", str(home / f"fabric-{fabric}"), "--running", str(home / f"saved-{platform}"))
    settings = ("env", f"XDG_CACHE_HOME={home / 'cache' / platform}")
    return Part(platform, devices, (*settings, str(netkit), "plan", *places, "--limit", limit))


def _take(home: Path, part: Part, kind: str) -> None:
    """Run a plan once; raise BenchError if it finds changes, since nothing was changed."""
    sys.stderr.write(f"planning {part.devices} {part.platform}, {kind}\n")
    part.samples[kind].append(run(part.command, home))
    output = (home / "output.txt").read_text(encoding="utf-8")
    if f"nothing to change on {part.devices} devices" not in output:
        raise BenchError(f"{part.platform}: expected nothing to change on {part.devices} devices, found {output[:300]}")


def _peer_ms(home: Path, given: argparse.Namespace) -> float:
    saved = str(home / f"saved-{COMPARED}")
    script = str(Path(__file__).parent / "hier_config_peer.py")
    words = (str(given.peer_python), script, "--running", saved, "--intended", saved, "--devices")
    start = run((*words, "0"), home).cpu_s
    whole = run((*words, str(given.peer_devices)), home).cpu_s
    return 1000 * (whole - start) / int(given.peer_devices)


def _totals(parts: list[Part]) -> dict[str, float]:
    return {
        ALONE: parts[0].least_s("remembered"),
        COLD: sum(part.least_s("cold") for part in parts),
        WARM: sum(part.least_s("remembered") for part in parts),
    }


def _as_json(parts: list[Part], totals: dict[str, float], peer: float | None) -> dict[str, object]:
    rows = [
        {
            "platform": part.platform,
            "devices": part.devices,
            **{
                kind: {
                    "wall_s": spread([sample.wall_s for sample in found]).rounded(),
                    "cpu_s": spread([sample.cpu_s for sample in found]).rounded(),
                    "peak_mb": spread([sample.peak_mb for sample in found]).rounded(),
                }
                for kind, found in part.samples.items()
            },
        }
        for part in parts
    ]
    return {"rows": rows, "totals_s": totals, "hier_config_ms_per_device": peer}


def _table(parts: list[Part], totals: dict[str, float], peer: float | None) -> Iterator[str]:
    paces = spread([sample.pace_s for part in parts for found in part.samples.values() for sample in found])
    yield f"pace: {paces.max / paces.min:.1f} times slower at worst than at best, {paces.median / paces.min:.1f} median"
    yield f"{'devices':<22}{'wall s: min':>12}{'median':>9}{'max':>9}{'cpu s':>9}{'peak MB':>9}"
    for part in parts:
        for kind, found in part.samples.items():
            wall, peak = spread([sample.wall_s for sample in found]), max(sample.peak_mb for sample in found)
            head = f"{part.devices:>5} {part.platform}, {kind}"
            yield f"{head:<22}{wall.min:>12.2f}{wall.median:>9.2f}{wall.max:>9.2f}{part.cpu_s(kind):>9.2f}{peak:>9.0f}"
    count = sum(part.devices for part in parts)
    for name, (must, reach) in BUDGETS.items():
        wanted = f"must {must:g} s" + (f", reach {reach:g} s" if reach else "")
        yield f"{name.replace('all', f'{count:,} devices'):<34}{totals[name]:>7.2f} s  ({wanted})"
    if peer is None:
        yield "hier_config: absent (not installed, or not wanted)"
        return
    own = next(part for part in parts if part.platform == COMPARED)
    for kind in own.samples:
        each = 1000 * own.cpu_s(kind) / own.devices
        figures = f"{each:.2f} ms, hier_config {peer:.1f} ms: {peer / each:.1f} ×"
        yield f"processor time of an {COMPARED} switch, {kind}: {figures}"


if __name__ == "__main__":
    sys.exit(main())
