"""Shell completion of verbs and options: the script that `netkit --install-completion` installs calls netkit itself."""

from pathlib import Path

import pytest

from tests.command import run, start

TYPED: dict[str, tuple[str, list[str]]] = {
    "a verb": ("netkit pla", ["plan-capacity", "plan", "platforms"]),
    "a verb of a group": ("netkit lab br", ["break"]),
    "an option": ("netkit design --cab", ["--cabling"]),
    "devices": ("netkit check --fabric inventory/reference --limit spine", [f"spine0{slot}" for slot in range(1, 5)]),
    "a device of a lab": ("netkit lab exec --fabric inventory/reference leaf08", ["leaf08"]),
    "checks": ("netkit check --fabric inventory/reference bgp.s", ["bgp.sessions"]),
    "faults": ("netkit lab break dim", ["dim-optic"]),
    "models": ("netkit init x --model SN5", ["SN5600", "SN5610"]),
    "runs": ("netkit rollback --fabric inventory/reference la", ["last"]),
    "nothing of a fabric that is not there": ("netkit check --fabric nowhere --limit sp", []),
}


@pytest.mark.parametrize("name", TYPED)
def test_bash_completes(name: str) -> None:
    typed, offered = TYPED[name]
    last = str(len(typed.split()) - 1)
    done = run(COLUMNS="80", _NETKIT_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=last)
    assert (done.stdout.split(), done.stderr) == (offered, "")


def test_bash_completes_labs(tmp_path: Path) -> None:
    for lab in ("one", "other"):
        (tmp_path / lab).mkdir()
        (tmp_path / lab / "lab.json").write_text("{}", encoding="utf-8")
    for verb in ("lab down", "check"):
        words = f"netkit {verb} --lab on"
        last = str(len(words.split()) - 1)
        done = start(_NETKIT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=last, NETKIT_LAB_DIR=str(tmp_path))
        assert done.stdout.split() == ["one"]


def test_zsh_completes_verbs_with_their_descriptions() -> None:
    done = start(_NETKIT_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="netkit rend")
    assert '"render":"Write every configuration file' in done.stdout
