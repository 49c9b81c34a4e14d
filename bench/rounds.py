"""`scripts/bench rounds`: scheduled checks of a lab while faults come and go, and some checks are killed.

At the end every state change in the store must have been notified exactly once, and nothing else; the memory of a check
must not grow from round to round, and the store must be intact.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.hook import Hook, hook
from bench.measure import BenchError
from bench.patient import Checks, Patient

ROOT = Path(__file__).parent.parent
MOST_GROWTH = 1.1
"""The allowed ratio of memory between the last rounds and the first."""
MOST_FAULTS = 3
DRAIN_S = 400.0
"""Longer than the longest pause before a failed receiver is retried."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parameters of a benchmark."""

    rounds: int = 50
    seed: int = 1
    kills: float = 0.15
    """How often a check is killed before it ends and then run again."""
    trouble: tuple[float, float] = (0.1, 0.1)
    """How often the receiver refuses a message, and how often it accepts one and answers with an error."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a benchmark."""

    rounds: int
    kills: int
    saved_by_killed: int
    faults: int
    changes: int
    notified: int
    missed: int
    untrue: int
    messages: int
    repeats: int
    refused: int
    seconds: float
    first_mb: float
    last_mb: float
    store_mb: float
    damage: str

    @property
    def is_kept(self) -> bool:
        """Whether every requirement is met."""
        is_flat = self.last_mb <= self.first_mb * MOST_GROWTH
        return self.changes > 0 and not (self.missed or self.untrue or self.damage) and is_flat


def rounds(patient: Patient, wanted: Wanted, folder: Path) -> Outcome:
    """Run checks while faults come and go, and compare the notifications with the states seen."""
    chance = random.Random(wanted.seed)  # noqa: S311 (a course of events that can be had again)
    began_s = time.monotonic()
    with hook(random.Random(wanted.seed + 1), wanted.trouble) as receiver:  # noqa: S311 (the same)
        checks = Checks(patient, folder, receiver.url)
        checks.run()
        for number in range(wanted.rounds):
            patient.change(chance, MOST_FAULTS)
            if chance.random() < wanted.kills:
                checks.run_and_kill(chance.random())
            checks.run()
            sys.stderr.write(f"round {number + 1}: {checks.changes} changes, {len(receiver.messages)} messages\n")
        patient.heal_all()
        checks.run()
        _drain(checks)
        return _outcome(checks, receiver, wanted, time.monotonic() - began_s)


def _drain(checks: Checks) -> None:
    """Run checks until nothing is queued for the receiver."""
    until_s = time.monotonic() + DRAIN_S
    while checks.waiting():
        if time.monotonic() > until_s:
            raise BenchError("the receiver is up, but queued notifications are not delivered")
        time.sleep(2)
        checks.run()


def _outcome(checks: Checks, receiver: Hook, wanted: Wanted, seconds: float) -> Outcome:
    seen, notified = checks.seen, receiver.notified()
    missed = sum(1 for place, verdicts in seen.items() if notified.get(place) != verdicts)
    untrue = sum(1 for place in notified if place not in seen)
    some = max(1, min(10, len(checks.peaks_mb) // 2))
    return Outcome(
        wanted.rounds,
        checks.kills,
        checks.saved_by_killed,
        checks.patient.faults,
        checks.changes,
        len(receiver.events()),
        missed,
        untrue,
        len(receiver.messages),
        receiver.repeats,
        receiver.refused,
        round(seconds, 1),
        round(statistics.median(checks.peaks_mb[:some]), 1),
        round(statistics.median(checks.peaks_mb[-some:]), 1),
        round(checks.store.stat().st_size / 1e6, 2),
        checks.damage(),
    )


def table(found: Outcome) -> Iterator[str]:
    yield f"{found.rounds} rounds in {found.seconds:.0f} s, {found.faults} faults injected and healed"
    yield f"{found.kills} checks killed, {found.saved_by_killed} of them after their run was stored"
    yield f"{found.changes} state changes seen, {found.notified} notified, {found.missed} states notified differently"
    yield f"{found.untrue} states notified that were not in the store"
    yield f"{found.messages} messages, {found.repeats} of them repeated under the same ID; {found.refused} refused"
    yield f"memory of a check: {found.first_mb:.0f} MB in the first rounds, {found.last_mb:.0f} MB in the last"
    yield f"store: {found.store_mb:.2f} MB, {found.damage or 'intact'}"
    yield "kept" if found.is_kept else "NOT KEPT"


def main() -> int:
    """Measure; return 1 if a requirement is not met."""
    parser = argparse.ArgumentParser(prog="scripts/bench rounds", description="Check a lab while faults come and go.")
    parser.add_argument("--rounds", type=int, default=50, help="default 50")
    parser.add_argument("--seed", type=int, default=1, help="another course of events")
    parser.add_argument("--fabric", type=Path, default=ROOT / "inventory" / "reference", help="default: reference")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-rounds.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nkb") as name:
        try:
            with Patient.up(given.fabric, Path(name)) as patient:
                found = rounds(patient, Wanted(given.rounds, given.seed), Path(name))
        except BenchError as error:
            sys.stderr.write(f"error: {error}\n")
            return 3
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    sys.stdout.write("".join(f"{line}\n" for line in table(found)))
    return 0 if found.is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
