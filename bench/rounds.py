"""`scripts/bench rounds`: a scheduled check over a lab while faults come and go, and checks are killed on the way.

At the end every change of state that the store has seen must have been told once, and none besides; the memory of a
check must not grow from round to round, and the store must be whole.
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
"""The checks of the last rounds may take so much more memory than those of the first."""
MOST_FAULTS = 3
DRAIN_S = 400.0
"""As long as a receiver that failed may be left in peace, and more."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to happen."""

    rounds: int = 50
    seed: int = 1
    kills: float = 0.15
    """So often a check is killed on its way, before it is run again."""
    trouble: tuple[float, float] = (0.1, 0.1)
    """So often the receiver refuses a message, and so often it takes one and answers with an error."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened."""

    rounds: int
    kills: int
    saved_by_killed: int
    faults: int
    changes: int
    told: int
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
        """Whether everything holds that must."""
        is_flat = self.last_mb <= self.first_mb * MOST_GROWTH
        return self.changes > 0 and not (self.missed or self.untrue or self.damage) and is_flat


def rounds(patient: Patient, wanted: Wanted, folder: Path) -> Outcome:
    """Check the lab round after round while it is broken and healed, and compare what was told with what was seen."""
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
    """Go on until nothing waits for the receiver."""
    until_s = time.monotonic() + DRAIN_S
    while checks.waiting():
        if time.monotonic() > until_s:
            raise BenchError("the receiver is there, and is not told what waits for it")
        time.sleep(2)
        checks.run()


def _outcome(checks: Checks, receiver: Hook, wanted: Wanted, seconds: float) -> Outcome:
    seen, told = checks.seen, receiver.told()
    missed = sum(1 for place, verdicts in seen.items() if told.get(place) != verdicts)
    untrue = sum(1 for place in told if place not in seen)
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
    """Yield what happened as lines."""
    yield f"{found.rounds} rounds in {found.seconds:.0f} s, {found.faults} faults made and healed"
    yield f"{found.kills} checks killed on the way, {found.saved_by_killed} of them after their run was stored"
    yield f"{found.changes} changes of state seen, {found.told} told, {found.missed} states told otherwise than seen"
    yield f"{found.untrue} states told that nobody saw"
    yield f"{found.messages} messages, {found.repeats} of them again under their name; {found.refused} refused"
    yield f"memory of a check: {found.first_mb:.0f} MB in the first rounds, {found.last_mb:.0f} MB in the last"
    yield f"store: {found.store_mb:.2f} MB, {found.damage or 'whole'}"
    yield "kept" if found.is_kept else "NOT KEPT"


def main() -> int:
    """Run, and return 1 when something did not hold."""
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
