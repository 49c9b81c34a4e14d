"""EOS: every input gets a response, and an accepted configuration can be printed and parsed again."""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.lab.personalities.eos import Eos
from netkit.lab.personalities.eos.configuration import Editor, EosSection, body, grammar_of
from netkit.lab.personalities.eos.reply import EosCommandError
from netkit.lab.personalities.eos.switch_state import switch_state
from netkit.lab.state import SwitchState
from tests.lab.personalities.eos_node import RecordedNode, config_of, eos_fabric, switch_on
from tests.lanes import examples

SWITCH = eos_fabric("vlan").switch("leaf01")
PORTS = tuple(port.name for port in SWITCH.ports)


@cache
def lines() -> tuple[str, ...]:
    """Every line of some rendered configurations, and some unusual ones."""
    texts = (config_of(eos_fabric(attachment, "4.35.1F", True), "leaf01") for attachment in ("p2p", "vlan"))
    found = {line.strip() for text in texts for line in text.splitlines() if not line.startswith("!")}
    return tuple(sorted(found | {"exit", "no", "default", "neighbor interface Et33/1,33/5 peer-group X remote-as 7"}))


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LINES = st.builds(
    lambda prefix, line, cut, extra: " ".join([*prefix, *line.split()[:cut], *extra]),
    st.sampled_from([[], [], [], ["no"], ["default"], ["no", "no"]]),
    st.deferred(lambda: st.sampled_from(lines())),
    st.integers(0, 30) | st.just(30),
    st.lists(WORDS | st.sampled_from(["0", "65536", "Ethernet1/1", "10.0.0.1/24", "100"]), max_size=1) | st.just([]),
)


@settings(max_examples=examples(150))
@given(st.lists(LINES, max_size=25))
def test_accepted_configurations_survive_a_round_trip(typed: list[str]) -> None:
    root = EosSection()
    grammar = grammar_of(SWITCH)
    editor = Editor(grammar, PORTS, root)
    for line in typed:
        with contextlib.suppress(EosCommandError):
            editor.type(line)
    text = body(root)
    again = EosSection()
    second = Editor(grammar, PORTS, again)
    for line in text.splitlines():
        if line.strip() not in {"end", "exit"}:
            second.type(line)
        elif line.strip() == "exit":
            second.leave()
    assert body(again) == text
    names = {name: name.lower() for name in PORTS}
    assert isinstance(switch_state(root, names), SwitchState)
    assert switch_state(again, names) == switch_state(root, names)


@pytest.fixture(scope="module")
def switch() -> Iterator[tuple[Eos, RecordedNode]]:
    with tempfile.TemporaryDirectory() as folder:
        yield switch_on(Path(folder))


COMMANDS = (
    LINES
    | st.text(max_size=30)
    | st.sampled_from(
        [
            "enable",
            "configure",
            "configure session a",
            "configure session b",
            "rollback clean-config",
            "commit",
            "abort",
            "end",
            "exit",
            "commit timer 01:00:00",
            "commit timer 99:99:99",
            "configure session a commit",
            "configure session a abort",
            "configure replace flash:../x",
            "copy running-config flash:x",
            "copy flash:x session-config",
            "show session-config diffs",
            "show configuration sessions",
            "show interfaces | json",
            "show interfaces | include (",
            "show running-config | section",
        ]
    )
)


@settings(max_examples=examples(60))
@given(st.lists(COMMANDS, max_size=8), st.sampled_from(["json", "text"]))
def test_every_request_gets_an_answer(switch: tuple[Eos, RecordedNode], commands: list[str], form: str) -> None:
    eos, _ = switch
    params = {"version": 1, "cmds": commands, "format": form}
    request = {"jsonrpc": "2.0", "method": "runCmds", "params": params, "id": 1}
    answer = json.loads(eos.eapi(json.dumps(request).encode()))
    assert ("result" in answer) != ("error" in answer)
    eos.stop()


@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(switch: tuple[Eos, RecordedNode], request_body: bytes) -> None:
    assert "error" in json.loads(switch[0].eapi(request_body))
