"""Two faults at once are two causes: a few pairs of the table, always the same ones; `pairs.py` runs all."""

import random

import pytest

from tests.checks.breaking import ward
from tests.checks.pairs import Bench, Pair, pairs, scored
from tests.lab.running import needs_lab

pytestmark = needs_lab
SAMPLE = 12


def drawn(column: str) -> list[Pair]:
    """Pairs that need neither load nor slow daemons."""
    quick = [one for one in pairs(column) if not one.load and not any(row.settles for row in one.rows)]
    chosen = random.Random(17).sample(quick, SAMPLE)  # noqa: S311  # the same ones each time
    return sorted(chosen, key=quick.index)


@pytest.mark.whole
def test_each_of_two_faults_is_a_cause_of_its_own_and_there_is_no_third(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with ward(tmp_path_factory.mktemp("pairs"), "nvue") as lab:
        bench, fabric, missed = Bench(lab), lab.project.fabric, list[str]()
        for pair in drawn("nvue"):
            score = scored(fabric, pair, lab.judged(bench.seen(pair), pair.limits))
            if not score.is_whole:
                missed.append(f"{pair}: {score}")
    assert missed == []
