"""Every parser of every platform with damaged answers of devices: it may find nothing, but never raises."""

import importlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.facts import Facts
from netkit.platforms.view import SubjectNic, View, ViewSubject

EXAMPLES = int(os.environ.get("NETKIT_FUZZ_EXAMPLES", "150"))
SOURCES = ("nvue", "sonic", "eos", "frr", "linux", "snmp", "napalm")
SEEDS = sorted(file for file in Path(__file__).parent.glob("*/cases/**/*") if file.suffix in {".txt", ".json"})
STRANGE = ("", "null", "NaN", "-1e999", "9" * 400, "[[]]", "{}", '"', "\x00", "\x1b[31m", "\ufffd", "|", ":", "0x", "²")
SUBJECT = ViewSubject(
    "gpu01",
    platform="nvue",
    ports=("swp1s0", "Ethernet0", "Ethernet1/1"),
    nics=(SubjectNic("rail0", "0000:18:00.0", "mlx5_0"),),
    lookups=(("10.128.0.1", "rail0", "10.0.0.1"),),
    lossless=(3,),
    probes=(("10.128.0.1", "rail0", "10.0.0.1"),),
    probe_bytes=(64, 9000),
)


def views(platform: str) -> tuple[View, ...]:
    """The views of a platform."""
    found: tuple[View, ...] = importlib.import_module(f"netkit.platforms.{platform}.facts").views(SUBJECT)
    return found


def damaged(dice: random.Random, text: str) -> str:
    """A text with a part removed, inserted, doubled or moved."""
    start, end = sorted(dice.choices(range(len(text) + 1), k=2))
    end = min(end, start + 200)
    lines = text.splitlines(keepends=True)
    dice.shuffle(lines)
    return dice.choice(
        (
            text[:start],
            text[:start] + text[end:],
            text[:start] + dice.choice(STRANGE) + text[end:],
            text[:end] + text[start:],
            "".join(lines),
            text.replace(dice.choice("0123456789{}[],:|"), dice.choice(STRANGE)),
        )
    )


def answers(dice: random.Random, count: int) -> Iterator[str]:
    """Possible answers to some commands: those of any other command, damaged up to four times."""
    for _ in range(count):
        text = dice.choice(SEEDS).read_text(encoding="utf-8", errors="surrogateescape")[:20_000]
        for _ in range(dice.randrange(5)):
            text = damaged(dice, text)
        yield text


@pytest.mark.parametrize("platform", SOURCES)
def test_no_damaged_answer_breaks_a_parser(platform: str) -> None:
    assert len(SEEDS) > 50
    found = views(platform)
    for seed in range(EXAMPLES):
        dice = random.Random(seed)  # noqa: S311 - the same damage each time; a failure names its seed
        for view in found:
            texts = tuple(answers(dice, len(view.commands)))
            facts = view.parse(*texts)
            missing = [kind for kind in view.yields if getattr(facts, kind) == getattr(Facts(), kind)]
            assert missing == [], f"seed {seed}"
