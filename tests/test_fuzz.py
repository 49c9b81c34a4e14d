"""Shipped fabrics with random damage: netkit refuses them in plain lines, or renders them."""

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from netkit.errors import NetkitError
from netkit.project.project import Project
from tests.command import ROOT

ROUNDS = int(os.environ.get("NETKIT_FUZZ_ROUNDS", "500"))
SOURCES = ("inventory/reference/fabric.yaml", "inventory/mixed/fabric.yaml", "tests/errors/base.yaml")
WORDS = (
    *(
        "",
        "~",
        "null",
        "true",
        "[]",
        "{}",
        "[[]]",
        "{a: {}}",
        "-1",
        "0",
        "1",
        "2",
        "3",
        "7",
        "64",
        "65535",
        "99999999999999999999",
    ),
    *(
        "1e999",
        ".nan",
        ".inf",
        "0x10",
        "1_000",
        "!!str x",
        "&a b",
        "*a",
        "'",
        '"',
        "|",
        ">",
        "%",
        "@",
        "`",
        "---",
        "...",
        "\t",
        "\r",
        "\x00",
    ),
    *(
        "é",
        "ß",
        "\u2028",
        "١",
        "1-3",
        "3-1",
        "1-65535",
        "0-0",
        "1,1",
        "2x400G",
        "8x800G",
        "10.0.0.0/8",
        "0.0.0.0/0",
        "255.255.255.255/32",
    ),
    *(
        "two-tier",
        "three-tier",
        "rail-only",
        "p2p",
        "vlan",
        "blocked",
        "nvue",
        "sonic",
        "eos",
        "frr",
        "lab",
        "unique",
        "all",
        "*",
        "leaf*",
    ),
    *(
        "units",
        "hosts",
        "spine",
        "core",
        "overrides",
        "{unit}",
        "{number:02}",
        "{x!r}",
        "{",
        "}",
        "x" * 300,
        "[" * 50,
        "{a: " * 40,
    ),
)
Mutation = Callable[[random.Random, list[str]], None]


def delete(dice: random.Random, tokens: list[str]) -> None:
    del tokens[dice.randrange(len(tokens))]


def double(dice: random.Random, tokens: list[str]) -> None:
    place = dice.randrange(len(tokens))
    tokens.insert(place, tokens[place])


def swap(dice: random.Random, tokens: list[str]) -> None:
    here, there = dice.randrange(len(tokens)), dice.randrange(len(tokens))
    tokens[here], tokens[there] = tokens[there], tokens[here]


def replace_word(dice: random.Random, tokens: list[str]) -> None:
    places = [place for place, token in enumerate(tokens) if token.strip() and token not in {":", ",", "\n"}]
    if places:
        tokens[dice.choice(places)] = dice.choice(WORDS)


def copy_from_elsewhere(dice: random.Random, tokens: list[str]) -> None:
    start = dice.randrange(len(tokens))
    tokens[dice.randrange(len(tokens)) : 0] = tokens[start : start + dice.randrange(1, 12)]


def random_characters(dice: random.Random, tokens: list[str]) -> None:
    tokens[dice.randrange(len(tokens))] = "".join(
        chr(dice.choice((dice.randrange(32, 127), dice.randrange(1, 0x300)))) for _ in range(3)
    )


def change_number(dice: random.Random, tokens: list[str]) -> None:
    places = [place for place, token in enumerate(tokens) if token.isdigit()]
    if places:
        place = dice.choice(places)
        tokens[place] = str(max(0, int(tokens[place]) + dice.choice((-1, 1, 10, -10, 1000))))


MUTATIONS: tuple[Mutation, ...] = (
    delete,
    double,
    swap,
    replace_word,
    replace_word,
    copy_from_elsewhere,
    random_characters,
    change_number,
    change_number,
)


def damaged(text: str, dice: random.Random) -> bytes:
    tokens = re.findall(r"\w+|\s+|[^\w\s]", text)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        dice.choice(MUTATIONS)(dice, tokens)
    data = "".join(tokens).encode("utf-8", "surrogatepass")
    if dice.randrange(12) == 0:
        place = dice.randrange(len(data))
        data = data[:place] + dice.randbytes(4) + data[place + 2 :]
    return data


@pytest.mark.parametrize("source", SOURCES)
def test_a_damaged_fabric_is_refused_in_plain_lines_or_rendered(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / source).read_text(encoding="utf-8")
    file = tmp_path / "fabric.yaml"
    stood = refused = 0
    for seed in range(ROUNDS):
        data = damaged(text, random.Random(f"{source} {seed}"))  # noqa: S311 (dice, not secrets)
        file.write_bytes(data)
        try:
            Project.open(tmp_path)
        except NetkitError as error:
            refused += 1
            check(error, f"seed {seed}")
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}\n{data.decode(errors='replace')}")
        else:
            stood += 1
    assert stood > ROUNDS // 50
    assert refused > ROUNDS // 3


def check(error: NetkitError, seed: str) -> None:
    assert error.exit_code == 3
    assert error.problems, seed
    for problem in error.problems:
        line = str(problem)
        assert len(line.splitlines()) == 1, (seed, line)
        assert problem.message, (seed, line)
        assert problem.remedy, (seed, line)
        assert problem.file, (seed, line)
        assert line.isprintable(), (seed, line)
        assert len(line) < 700, (seed, line)
