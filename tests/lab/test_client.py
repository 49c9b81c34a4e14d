"""A command on a node: its arguments go to the keeper, which controls what happens."""

import os
import socket
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from netkit.lab.entry import HungUpError, WireCall
from tests.command import ROOT

CLIENT = ROOT / "netkit" / "lab" / "client.pl"
Act = Callable[[WireCall], int]


@dataclass
class Desk:
    """A keeper for one command, and the command."""

    folder: Path
    calls: list[WireCall] = field(default_factory=list)

    @property
    def program(self) -> Path:
        """The command, as a link like those of a node."""
        return self.folder / "nv"

    def run(self, act: Act, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run the command against a keeper that acts once."""
        with self.keeper(act):
            words = [str(self.program), *arguments]
            environment = {"PATH": os.environ["PATH"], "USER": "cumulus"}
            return subprocess.run(
                words, input=stdin, capture_output=True, cwd=self.folder, env=environment, timeout=30, check=False
            )

    def keeper(self, act: Act) -> "Keeper":
        """A keeper for the length of a block."""
        return Keeper(self, act)


class Keeper:
    """Accepts one command."""

    def __init__(self, desk: Desk, act: Act) -> None:
        self._desk, self._act = desk, act
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(desk.folder / "node.sock"))
        self._listener.listen(1)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join(30)
        self._listener.close()
        (self._desk.folder / "node.sock").unlink()

    def _serve(self) -> None:
        line, _ = self._listener.accept()
        with line:
            try:
                call = WireCall(line, self._desk.folder)
                self._desk.calls.append(call)
                call.end(self._act(call))
            except HungUpError:
                return


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    text = CLIENT.read_text(encoding="utf-8").replace("/run/netkit/node.sock", str(tmp_path / "node.sock"))
    (tmp_path / ".client").write_text(text, encoding="utf-8")
    (tmp_path / ".client").chmod(0o755)
    (tmp_path / "nv").symlink_to(".client")
    return Desk(tmp_path)


def test_arguments_reach_the_keeper_unchanged(desk: Desk) -> None:
    odd = os.fsdecode(b"\xff\xc3\xbc")
    done = desk.run(lambda _call: 0, "show", "", "two words", odd, "-o")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    call = desk.calls[0]
    assert (call.folder, call.user, call.program) == (str(desk.folder), "cumulus", "nv")
    assert call.arguments == ("show", "", "two words", odd, "-o")


def test_stdout_stderr_and_exit_code_are_those_of_the_keeper(desk: Desk) -> None:
    long = "ü\n" * 100_000

    def act(call: WireCall) -> int:
        call.out(long)
        call.err("why\n")
        return 7

    done = desk.run(act)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (7, long, b"why\n")


def test_input_is_read_only_on_request(desk: Desk) -> None:
    given = os.urandom(300_000)
    heard: list[str] = []

    def act(call: WireCall) -> int:
        heard.append(call.ask("sure? "))
        heard.append(call.stdin())
        return 0

    done = desk.run(act, stdin=b"yes\n" + given)
    assert (done.returncode, done.stdout) == (0, b"sure? ")
    assert [heard[0], os.fsencode(heard[1])] == ["yes", given]


def test_a_line_is_read_without_what_follows_it(desk: Desk) -> None:
    def act(call: WireCall) -> int:
        return 0 if call.ask("") == "mine" else 1

    with desk.keeper(act):
        words = ["sh", "-c", f"{desk.program}; cat"]
        done = subprocess.run(words, input=b"mine\nyours\n", capture_output=True, timeout=30, check=False)
    assert done.stdout == b"yours\n"


def test_input_that_ends_is_an_empty_line(desk: Desk) -> None:
    assert desk.run(lambda call: 3 if call.ask("") == "" else 4).returncode == 3


def test_a_keeper_that_disconnects_fails_the_command(desk: Desk) -> None:
    def act(_call: WireCall) -> int:
        raise HungUpError

    assert desk.run(act).returncode == 1


def test_a_lab_that_is_down_is_reported(desk: Desk) -> None:
    done = subprocess.run([str(desk.program)], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (1, b"the lab that this node belongs to has ended\n")


def test_a_closed_output_ends_the_command(desk: Desk) -> None:
    def act(call: WireCall) -> int:
        call.out("x" * 1_000_000)
        return 0

    with desk.keeper(act):
        words = ["bash", "-c", f"set -o pipefail; {desk.program} | true"]
        done = subprocess.run(words, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (130, b"")
