"""Shells complete verbs and options: what `netkit --install-completion` puts in place asks netkit itself."""

import pytest

from tests.command import start

TYPED: dict[str, tuple[str, list[str]]] = {
    "a verb": ("netkit pla", ["plan", "platforms"]),
    "a verb of a group": ("netkit lab br", ["break"]),
    "an option": ("netkit design --cab", ["--cabling"]),
}


@pytest.mark.parametrize("name", TYPED)
def test_bash_completes(name: str) -> None:
    typed, offered = TYPED[name]
    last = str(len(typed.split()) - 1)
    done = start(COLUMNS="80", _NETKIT_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=last)
    assert (done.stdout.split(), done.stderr) == (offered, "")


def test_zsh_completes_with_what_a_verb_does() -> None:
    done = start(_NETKIT_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="netkit rend")
    assert '"render":"Write every configuration file' in done.stdout
