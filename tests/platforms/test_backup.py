"""Backups: the same configuration without a secret in it, whatever the order a device prints it in."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.platforms.backup import joined, separated, without_secrets
from netkit.platforms.models import MODELS
from tests.platforms.samples import samples

WORD = "hunter2-hunter2"
PLACEHOLDER = re.compile(r"@secret:\w+@")


@pytest.mark.parametrize("platform", MODELS)
def test_a_backup_means_the_same_and_holds_no_secret(platform: str) -> None:
    model = MODELS[platform]
    secrets = 0
    for files in samples(platform).values():
        running = {name: PLACEHOLDER.sub(WORD, text) for name, text in files.items() if model.reads(name)}
        secrets += sum(WORD in text for text in running.values())
        kept = joined(without_secrets(model, running, files))
        assert WORD not in kept
        again = {name: text for name, text in separated(kept).items() if text is not None}
        assert model.parse(again) == model.parse({name: text for name, text in files.items() if model.reads(name)})
        assert joined(without_secrets(model, again, files)) == kept
    assert secrets or platform == "linux"


def test_a_secret_where_only_the_intent_expects_one_is_masked_too() -> None:
    files = samples("eos")["spine01"] if "spine01" in samples("eos") else next(iter(samples("eos").values()))
    (name,) = (name for name in files if MODELS["eos"].reads(name))
    running = {name: f"{files[name]}\nbanner motd {WORD}\n"}
    intended = {name: f"{files[name]}\nbanner motd @secret:MOTD@\n"}
    assert WORD not in joined(without_secrets(MODELS["eos"], running, intended))


NAMES = st.text("abcz.-_019", min_size=1, max_size=12)
TEXTS = st.text("ab \n{}:#", max_size=40).map(lambda text: text if not text or text.endswith("\n") else f"{text}\n")


@given(st.dictionaries(NAMES, st.none() | TEXTS, min_size=1))
def test_what_is_joined_comes_apart_again(files: dict[str, str | None]) -> None:
    assert separated(joined(files)) == files


@given(st.text())
def test_any_other_text_is_no_backup(text: str) -> None:
    if not text.startswith("==> "):
        assert separated(text) == {}
