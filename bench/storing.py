"""`scripts/bench storing`: stores runs of a large fabric in parts, and measures time, memory and the size of the store.

A part is made when it is read, as a coordinator reads one that a site has sent. Its memory must not
grow with the number of devices.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netkit.facts import Facts, Observation, Sample
from netkit.facts.optic import Lane, Module
from netkit.judge import Finding, Verdict, fail
from netkit.judge.check import Layer
from netkit.judge.run import CheckResult, Judgement
from netkit.store import CheckRun, Counts, Source
from netkit.store.record import run_name
from netkit.store.store import RunPart, open_store

CHECKS, PORTS, COUNTERS, LANES = 40, 8, 20, 4
BAD = 100
"""One device of this many has a finding on a port."""
MOST_MB = 300.0


@dataclass(frozen=True, slots=True)
class Parts(Collection[RunPart]):
    """The parts of a run, each made when it is read."""

    devices: int
    size: int
    taken_s: float

    def __len__(self) -> int:
        return len(range(0, self.devices, self.size))

    def __contains__(self, one: object) -> bool:
        return False

    def __iter__(self) -> Iterator[RunPart]:
        for begin in range(0, self.devices, self.size):
            numbers = range(begin, min(begin + self.size, self.devices))
            names = {f"gpu{number:06}": number for number in numbers}
            results = [result for name, number in names.items() for result in _results(name, number)]
            observed = {name: _observed(name, self.taken_s, number) for name, number in names.items()}
            yield RunPart(Judgement(tuple(results), ()), observed)


def _results(name: str, number: int) -> Iterator[CheckResult]:
    for check in range(CHECKS):
        found: tuple[Finding, ...] = ()
        if check == 0 and number % BAD == 0:
            found = (fail("swp1", f"{name} is not well", "see its cable")._replace(device=name, check="topic.check00"),)
        verdict = Verdict.FAIL if found else Verdict.PASS
        yield CheckResult(f"topic.check{check:02}", name, verdict, PORTS, found)


def _observed(name: str, taken_s: float, number: int) -> Observation:
    ports = [f"swp{port}" for port in range(PORTS)]
    counters = {f"counter{one:02}": dict.fromkeys(ports, number * one) for one in range(COUNTERS)}
    lanes = {lane: Lane(rx_dbm=-1.0 - lane / 10, tx_dbm=1.0, bias_ma=60.0) for lane in range(LANES)}
    modules = {port: Module(kind="optic", serial=f"S{number}{port}", temperature_c=50.0, lanes=lanes) for port in ports}
    return Observation(name, "nvue", Facts(modules=modules, counters=counters), (Sample(taken_s, counters),))


def store_runs(where: str, devices: int, size: int, runs: int) -> Iterator[tuple[float, float]]:
    """Store runs; yield how long each took, and the most memory so far in MB."""
    layers: dict[str, Layer] = {f"topic.check{check:02}": "host" for check in range(CHECKS)}
    with open_store(where) as store:
        for number in range(runs):
            taken_s = time.time() - 3600.0 * (runs - number)
            counts = Counts(examined=devices * CHECKS * PORTS, failures=devices // BAD)
            source = Source("large", site="bench")
            run = CheckRun(run_name(taken_s), source, taken_s, 10.0, devices, layers, Verdict.FAIL, 1, counts, "", "")
            began_s = time.monotonic()
            store.save_parts(run, Parts(devices, size, taken_s))
            yield time.monotonic() - began_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench storing", description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=100_000)
    parser.add_argument("--part", type=int, default=1000, help="devices in a part")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--store", default="", help="URL or file; by default a file that is removed")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="netkit-bench-") as folder:
        file = Path(folder) / "store.db"
        most_mb = 0.0
        for took_s, most_mb in store_runs(asked.store or str(file), asked.devices, asked.part, asked.runs):
            speed = asked.devices / took_s
            print(f"{asked.devices:,} devices in {took_s:.0f} s ({speed:,.0f} a second), at most {most_mb:.0f} MB")
        if file.exists():
            print(f"the store has {file.stat().st_size / 1e6:,.0f} MB after {asked.runs} runs")
    return int(most_mb > MOST_MB)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
