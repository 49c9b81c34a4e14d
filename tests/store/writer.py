"""A process that stores runs until it is killed, and prints the name of each before and after."""

from pathlib import Path

from netkit.facts import Observation, Snapshot
from netkit.judge import fail
from netkit.store import Source
from netkit.store.store import open_store
from tests.store.runs import BEGAN_S, judgement, result, run

PORTS = 400


def store_runs(where: str, log: Path, source: str, runs: int) -> None:
    """Store runs: run n has the number n in everything it contains."""
    with open_store(where) as store, log.open("a", encoding="utf-8", buffering=1) as reported:
        for number in range(runs):
            taken_s = BEGAN_S + number
            findings = (fail(f"swp{port}", str(number)) for port in range(PORTS))
            saved = run(taken_s, source=Source(source))
            reported.write(f"begins {saved.name}\n")
            store.save(saved, judgement(result("leaf01", *findings)), snapshot_of(taken_s))
            reported.write(f"stored {saved.name}\n")


def snapshot_of(taken_s: float) -> Snapshot:
    """Return a snapshot."""
    return Snapshot("small", taken_s, {"leaf01": Observation("leaf01", "nvue")})
