"""Commands over eAPI: one request for many, and what happens to those that fail, hang or are not understood."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from netkit.errors import AccessError, Problem
from netkit.platforms.eos import transport
from netkit.platforms.eos.facts.interface import BGP, RUNNING, VERSION

HOSTNAME, BOGUS, SLOW = "show hostname", "show bogus", "show slow"
TIMEOUT_S = 30.0


class Switch:
    """eAPI as EOS documents it, of different releases; it records the requests."""

    def __init__(self, *, goes_on: bool = True, knows_going_on: bool = True, lost_after: int = 99) -> None:
        self.goes_on, self.knows_going_on, self.lost_after = goes_on, knows_going_on, lost_after
        self.posted: list[list[Any]] = []
        self.limits_s: list[float] = []

    def post(self, request: str, timeout_s: float) -> Mapping[str, Any]:
        params = json.loads(request)["params"]
        self.posted.append(params["cmds"][1:])
        self.limits_s.append(timeout_s)
        if len(self.posted) > self.lost_after:
            raise AccessError(Problem("leaf01: the connection is lost"))
        if any(SLOW in command for command in params["cmds"]):
            raise TimeoutError
        if "stopOnError" in params and not self.knows_going_on:
            return {"error": {"code": -32602, "message": "unexpected keyword argument 'stopOnError'"}}
        results: list[Any] = []
        for command in params["cmds"]:
            if command == BOGUS:
                results.append({"errors": ["Invalid input (at token 1: 'bogus')"]})
                if not (self.goes_on and "stopOnError" in params):
                    break
            else:
                name = command["cmd"] if isinstance(command, dict) else command
                results.append({"output": name} if params["format"] == "text" else {"name": name})
        if {"errors": ["Invalid input (at token 1: 'bogus')"]} in results:
            return {"error": {"code": 1002, "message": "invalid command", "data": results}}
        return {"result": results}

    def ask(self, *commands: str) -> list[tuple[str, str]]:
        replies = transport.ask(self.post, commands, TIMEOUT_S, "")
        assert all(reply.at_s > 1.7e9 for reply in replies)
        return [(reply.text, reply.failure) for reply in replies]


def reported(name: str) -> tuple[str, str]:
    return json.dumps({"name": name}), ""


REFUSED = ("", "Invalid input (at token 1: 'bogus')")


def test_all_json_commands_are_one_request_and_all_text_commands_another() -> None:
    switch = Switch()
    assert switch.ask(RUNNING, VERSION, HOSTNAME) == [(RUNNING, ""), reported(VERSION), reported(HOSTNAME)]
    assert switch.posted == [[VERSION, HOSTNAME], [RUNNING]]


def test_revisions_are_pinned() -> None:
    switch = Switch()
    assert switch.ask(BGP, VERSION) == [reported(BGP), reported(VERSION)]
    assert switch.posted == [[{"cmd": BGP, "revision": 2}, VERSION]]


@pytest.mark.parametrize(
    ("make", "requests"),
    [
        (Switch, 1),
        (lambda: Switch(goes_on=False), 2),
        (lambda: Switch(knows_going_on=False), 3),
    ],
    ids=["goes on", "stops", "knows no going on"],
)
def test_a_refused_command_does_not_affect_others_on_any_release(make: Callable[[], Switch], requests: int) -> None:
    switch = make()
    found = switch.ask(VERSION, BOGUS, HOSTNAME, BOGUS, BGP)
    assert found == [reported(VERSION), REFUSED, reported(HOSTNAME), REFUSED, reported(BGP)]
    assert len(switch.posted) == requests


def test_a_command_that_never_ends_is_sent_alone_and_does_not_affect_others() -> None:
    switch = Switch()
    assert switch.ask(VERSION, SLOW, HOSTNAME) == [reported(VERSION), ("", "does not end"), reported(HOSTNAME)]
    assert switch.posted == [[VERSION, SLOW, HOSTNAME], [VERSION], [SLOW], [HOSTNAME]]
    assert switch.limits_s == [TIMEOUT_S, 10.0, 10.0, 10.0]


def test_a_switch_on_which_commands_in_a_row_do_not_end_is_left() -> None:
    switch, slow = Switch(), [f"{SLOW} {number}" for number in range(6)]
    found = switch.ask(*slow[:2], VERSION, *slow[2:], HOSTNAME)
    endless, left = ("", "does not end"), ("", "not answered: 3 others in a row do not end")
    assert found == [endless, endless, reported(VERSION), endless, endless, endless, left, left]
    assert switch.posted[1:] == [[one] for one in (*slow[:2], VERSION, *slow[2:5])]


def test_answers_before_a_lost_connection_are_kept() -> None:
    found = Switch(lost_after=1).ask(VERSION, RUNNING)
    assert found == [reported(VERSION), ("", "leaf01: the connection is lost")]
    with pytest.raises(AccessError, match="the connection is lost"):
        Switch(lost_after=0).ask(VERSION, RUNNING)


@pytest.mark.parametrize(
    "answer",
    [{}, {"error": 7}, {"result": None}, {"result": [{}]}, {"error": {"message": "no"}}, {"error": {"data": {}}}],
)
def test_a_malformed_answer_is_a_failure_of_each_command(answer: Mapping[str, Any]) -> None:
    replies = transport.ask(lambda _request, _limit_s: answer, (VERSION, HOSTNAME), TIMEOUT_S, "")
    assert [reply.text for reply in replies] == ["", ""]
    assert all(reply.failure for reply in replies)


def test_the_enable_password_is_sent_and_without_commands_nothing_is() -> None:
    posted = []

    def post(request: str, _timeout_s: float) -> Mapping[str, Any]:
        posted.append(json.loads(request)["params"]["cmds"])
        return {"result": [{}, {}]}

    assert transport.ask(post, (), TIMEOUT_S, "word") == ()
    transport.ask(post, (VERSION,), TIMEOUT_S, "word")
    assert posted == [[{"cmd": "enable", "input": "word"}, VERSION]]
