"""How commands are sent: over REST as requests, over SSH in a few streams."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import cast

import pytest

from netkit.errors import AccessError, Problem
from netkit.observe.assemble import Readings, instead
from netkit.platforms import shell_batch
from netkit.platforms.nvue import rest
from netkit.platforms.nvue.facts import views
from netkit.platforms.nvue.rest import ask as ask_by_rest
from netkit.platforms.nvue.rest import request
from netkit.platforms.nvue.shell import MOST_SESSIONS, PER_SESSION, ask
from netkit.platforms.ssh import SshLine, SshTarget
from netkit.platforms.view import Reply, ViewSubject

LINE = SshLine(SshTarget("leaf01", "192.0.2.1", "cumulus"))


@pytest.mark.parametrize(
    ("command", "place", "query"),
    [
        ("nv show system -o json", "/system", {}),
        ("nv show interface -o json", "/interface", {}),
        ("nv show interface lldp -o json", "/interface", {"view": "lldp"}),
        ("nv show interface qos-roce-counters -o json", "/interface", {"view": "qos-roce-counters"}),
        ("nv show interface swp1s0 link phy health -o json", "/interface/swp1s0/link/phy/health", {}),
        ("nv show interface a/b lldp -o json", "/interface/a%2Fb/lldp", {}),
        ("nv show router bgp --applied -o json", "/router/bgp", {"rev": "applied"}),
        (
            "nv show vrf default router bgp neighbor --view=detail -o json",
            "/vrf/default/router/bgp/neighbor",
            {"view": "detail"},
        ),
        (
            'nv show interface --view="include=/*/counters/qos" -o json',
            "/interface",
            {"include": "/*/counters/qos"},
        ),
        ("nv config show -o json", "", {}),
        ("nv show system", "", {}),
        ("ip -j nexthop show", "", {}),
        ("nv show system -o json; reboot", "", {}),
    ],
)
def test_a_command_is_a_request(command: str, place: str, query: dict[str, str]) -> None:
    assert request(command) == (place, query)


def test_every_command_of_nvue_has_a_request() -> None:
    subject = ViewSubject("leaf01", "5.16.1", ("swp1s0",), lossless=(3,))
    commands = {command for view in views(subject) for command in view.commands}
    assert {command for command in commands if not request(command)[0]} == {
        command for command in commands if not command.startswith("nv ")
    }


def answering(monkeypatch: pytest.MonkeyPatch, lost: Sequence[str] = ()) -> list[list[str]]:
    """Let each stream answer with the command itself, except those with a command that loses the connection."""
    streams: list[list[str]] = []

    def batch(_line: SshLine, commands: Sequence[str]) -> tuple[Reply, ...]:
        streams.append(list(commands))
        if set(lost) & set(commands):
            raise AccessError(Problem("leaf01: the connection is lost"))
        return tuple(Reply(command) for command in commands)

    monkeypatch.setattr(shell_batch, "ask", batch)
    return streams


@pytest.mark.parametrize(
    ("count", "streams"),
    [(0, 1), (1, 1), (2 * PER_SESSION - 1, 1), (2 * PER_SESSION, 2), (1000, MOST_SESSIONS)],
)
def test_many_commands_are_sent_in_a_few_streams(count: int, streams: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = answering(monkeypatch)
    commands = [f"nv show {number} -o json" for number in range(count)]
    assert [reply.text for reply in ask(LINE, commands)] == commands
    assert len(made) == streams


def test_commands_without_nvued_come_first_and_duplicates_are_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = answering(monkeypatch)
    commands = ["nv show a", "ip route", "nv show b", "nv show a"]
    assert [reply.text for reply in ask(LINE, commands)] == commands
    assert made == [["ip route", "nv show a", "nv show b"]]


def test_a_lost_stream_does_not_affect_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, lost=["nv show 1"])
    commands = [f"nv show {number}" for number in range(2 * PER_SESSION)]
    found = ask(LINE, commands)
    assert [reply.text for reply in found] == [text if at % 2 == 0 else "" for at, text in enumerate(commands)]
    assert {reply.failure for reply in found[1::2]} == {"not answered: leaf01: the connection is lost"}


def test_a_lost_connection_is_an_access_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, lost=["nv show 0", "nv show 1"])
    with pytest.raises(AccessError):
        ask(LINE, [f"nv show {number}" for number in range(2 * PER_SESSION)])


class PlainLine(rest.RestLine):
    """A connection to a switch that answers over plain HTTP."""

    def open(self) -> None:
        self.close()
        self._line = cast(
            "HTTPSConnection", HTTPConnection(self.target.host, self.target.port, timeout=self.target.timeout_s)
        )
        self._line.connect()


@contextmanager
def switch(answers: Sequence[tuple[int, str]]) -> Iterator[PlainLine]:
    """A switch that gives its answers in order; it never gives one that has no status."""
    over, left = Event(), list(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, text = left.pop(0)
            if not status:
                over.wait(60)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    line = PlainLine(SshTarget("leaf01", "127.0.0.1", "cumulus", server.server_port, timeout_s=0.2))
    line.open()
    try:
        yield line
    finally:
        over.set()
        line.close()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("answers", "failure"),
    [
        ([(404, "{}")], "exit code 1: the item does not exist"),
        ([(400, '{"detail": "no such view"}')], "exit code 1: refuses the query: no such view"),
        ([(500, "<p>")] * rest.TRIES, "exit code 1: answers with status 500"),
        ([(0, "")], "does not end"),
        ([(200, '{"swp1": {"other": 1}}')], ""),
    ],
)
def test_over_rest_details_missing_from_the_bulk_answer_are_requested_per_port(
    answers: list[tuple[int, str]], failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "PAUSE_S", 0)
    monkeypatch.setattr(rest, "LEAST_S", 0.1)
    found = views(ViewSubject("leaf01", "5.16.1", ("swp1",), lossless=(3,)))
    whole = next(view for view in found if view.fallback and len(view.commands) == 1)
    with switch(answers) as line:
        replies = ask_by_rest(line, whole.commands, lambda: True)
        assert [reply.failure for reply in replies] == [failure]
        assert instead((whole,), dict(zip(whole.commands, replies, strict=True)), Readings()) == (whole.fallback,)
        assert line.is_alive


def test_over_rest_a_switch_on_which_commands_in_a_row_do_not_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "LEAST_S", 0.1)
    well, hangs = (200, "{}"), (0, "")
    with switch([hangs, hangs, well, hangs, hangs, hangs, well, well]) as line:
        replies = ask_by_rest(line, [f"nv show vrf {number} -o json" for number in range(8)], lambda: True)
        endless, left = "does not end", "not answered: 3 others in a row do not end"
        assert [reply.failure for reply in replies] == [endless, endless, "", endless, endless, endless, left, left]
        assert line.is_alive


@pytest.mark.parametrize("status", [401, 502])
def test_over_rest_a_refused_login_or_an_unreachable_switch_is_not_asked_per_port(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "PAUSE_S", 0)
    with switch([(status, "")] * rest.TRIES) as line:
        (found,) = ask_by_rest(line, ["nv show interface -o json"], lambda: True)
        assert not found.has_ended
