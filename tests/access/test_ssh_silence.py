"""A device that no longer answers during a command, played by an SSH server on loopback; a slow one keeps its time."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko
import pytest
from paramiko.common import MSG_CHANNEL_OPEN

from netkit.errors import AccessError
from netkit.platforms.ssh import MOST_UNANSWERED, CutShortError, SshLine, SshTarget

TIMEOUT_S, LONGEST_S = 3.0, 60.0
LONG, LOST = "nv config apply", "try again; an unconfirmed change reverts by itself"
INPUT = "x" * (8 << 20)
ANSWERED = 2
"""Questions that are answered or refused before the long command ends."""


class Cable:
    """A socket that can be cut: from then on nothing arrives, and nothing comes back."""

    def __init__(self, line: socket.socket) -> None:
        self._line, self.is_cut, self._is_closed = line, False, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)

    def recv(self, size: int) -> bytes:
        while self.is_cut and not self._is_closed:
            threading.Event().wait(0.05)
            raise TimeoutError
        return self._line.recv(size)

    def send(self, data: bytes) -> int:
        return len(data) if self.is_cut else self._line.send(data)

    def close(self) -> None:
        self._is_closed = True
        self._line.close()


@dataclass
class Switch(paramiko.ServerInterface):  # type: ignore[misc]  # paramiko ships no types
    """A switch that runs one long command."""

    cut_at: str = ""
    """When the management network fails: at the `exec` request, while it gets its `input`, or after some `output`."""
    answer: str = ""
    """What happens to questions meanwhile: they `end`, are `refused` or `ignored`, or by default hang."""
    keepalives: int = 0
    questions: list[str] = field(default_factory=list)
    cable: Cable | None = None
    has_begun: bool = False
    on_cut: Callable[[], object] = bool

    @property
    def is_ignoring(self) -> bool:
        return self.answer == "ignored" and self.has_begun

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002 (of paramiko)
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:  # noqa: ARG002 (of paramiko)
        return int(paramiko.AUTH_SUCCESSFUL)

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002 (of paramiko)
        if self.has_begun and self.answer == "refused":
            self.questions.append(kind)
            return int(paramiko.OPEN_FAILED_RESOURCE_SHORTAGE)
        return int(paramiko.OPEN_SUCCEEDED)

    def check_global_request(self, kind: str, msg: object) -> bool:  # noqa: ARG002 (of paramiko)
        self.keepalives += kind == "keepalive@openssh.com"
        return False

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if command.decode() == LONG:
            self.has_begun = True
            if self.cut_at in {"exec", "input"}:
                self._cut()
            threading.Thread(target=self._begin, args=(channel,), daemon=True).start()
        else:
            self.questions.append(command.decode())
            if self.answer == "early":
                threading.Thread(target=self._end_early, args=(channel,), daemon=True).start()
            if self.answer in {"end", "killed"}:
                threading.Thread(target=self._end, args=(channel,), daemon=True).start()
        return True

    def _begin(self, channel: paramiko.Channel) -> None:
        with suppress(OSError):  # the caller leaves
            self._run(channel)

    def _run(self, channel: paramiko.Channel) -> None:
        channel.sendall(b"started\n")
        if self.cut_at == "output":
            self._cut()
        while not channel.closed:
            if self.answer and len(self.questions) > ANSWERED:
                channel.sendall(b"applied\n")
                self._end(channel)
            threading.Event().wait(0.05)

    @staticmethod
    def _end_early(channel: paramiko.Channel) -> None:
        channel.recv(1)
        channel.sendall_stderr(b"no space left\n")
        channel.send_exit_status(7)
        channel.close()

    def _cut(self) -> None:
        assert self.cable
        self.cable.is_cut = True
        self.on_cut()

    def _end(self, channel: paramiko.Channel) -> None:
        """End a command once its caller knows that it was begun, and has no input left."""
        while channel.recv(1 << 16):
            pass
        if self.answer != "killed":
            channel.send_exit_status(0)
        channel.close()


@pytest.fixture(scope="module")
def key() -> paramiko.PKey:
    return paramiko.ECDSAKey.generate()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


@pytest.fixture
def target(listener: socket.socket, key: paramiko.PKey, tmp_path: Path) -> SshTarget:
    port = listener.getsockname()[1]
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n", encoding="utf-8")
    return SshTarget("leaf01", "127.0.0.1", "admin", port, "known", known_hosts=known, timeout_s=TIMEOUT_S)


def serve(switch: Switch, listener: socket.socket, key: paramiko.PKey) -> None:
    """Answer the first connection."""

    def answer() -> None:
        line, _ = listener.accept()
        switch.cable = Cable(line)
        transport = paramiko.Transport(switch.cable)
        transport.add_server_key(key)
        table = transport._handler_table  # noqa: SLF001 (a server that answers all but this)
        opened = table[MSG_CHANNEL_OPEN]
        table[MSG_CHANNEL_OPEN] = lambda message: None if switch.is_ignoring else opened(message)
        transport.start_server(threading.Event(), switch)

    threading.Thread(target=answer, daemon=True).start()


@pytest.mark.parametrize("moment", ["exec", "input", "output"])
def test_a_connection_without_sign_of_life_is_lost(
    moment: str, listener: socket.socket, key: paramiko.PKey, target: SshTarget
) -> None:
    serve(Switch(cut_at=moment), listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        with pytest.raises(AccessError) as caught:
            line.run(LONG, LONGEST_S, INPUT if moment == "input" else "")
    (problem,) = caught.value.problems
    assert (problem.message, problem.remedy) == ("leaf01: gives no sign of life for 3 s", LOST)
    assert not isinstance(caught.value, CutShortError)
    assert not line.is_alive


def test_an_idle_connection_is_lost_too(listener: socket.socket, key: paramiko.PKey, target: SshTarget) -> None:
    switch = Switch()
    serve(switch, listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        assert switch.cable
        switch.cable.is_cut = True
        while line.is_alive:
            threading.Event().wait(0.05)
        with pytest.raises(AccessError, match="leaf01: gives no sign of life for 3 s"):
            line.run(LONG)


def test_a_device_that_finishes_no_command_hangs(
    listener: socket.socket, key: paramiko.PKey, target: SshTarget
) -> None:
    switch = Switch()
    serve(switch, listener, key)
    with closing(SshLine(target, "nv config revision")) as line:
        line.open()
        with pytest.raises(CutShortError) as caught:
            line.run(LONG, LONGEST_S)
        assert line.is_alive
    (problem,) = caught.value.problems
    assert problem.message == f"leaf01: hangs: nothing else is answered within 3 s either, during: {LONG}"
    assert problem.remedy == "check its log and its disk, or restart it"
    assert switch.questions == ["{ nv config revision; } </dev/null >/dev/null 2>&1"]


def test_a_device_that_begins_no_other_command_hangs(
    listener: socket.socket, key: paramiko.PKey, target: SshTarget
) -> None:
    serve(Switch(answer="ignored"), listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        with pytest.raises(CutShortError, match=f"leaf01: hangs: nothing else is answered within 3 s .*: {LONG}"):
            line.run(LONG, LONGEST_S)
        with pytest.raises(CutShortError, match="leaf01: did not answer within 1 s: date"):
            line.run("date", 1.0)
        assert line.is_alive


def test_a_command_without_a_result_is_no_lost_connection(
    listener: socket.socket, key: paramiko.PKey, target: SshTarget
) -> None:
    switch = Switch()
    serve(switch, listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        switch.answer = "killed"
        with pytest.raises(CutShortError, match="leaf01: gives no exit code: date"):
            line.run("date")
        switch.answer, switch.has_begun = "refused", True
        with pytest.raises(CutShortError, match="leaf01: refuses to run: date"):
            line.run("date")
        assert line.is_alive


def test_a_command_that_ends_before_it_has_read_its_input_keeps_its_exit_code(
    listener: socket.socket, key: paramiko.PKey, target: SshTarget
) -> None:
    serve(Switch(answer="early"), listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        done = line.run("cat >file", stdin=INPUT)
    assert (done.exit_code, done.stderr) == (7, "no space left\n")


def transport_of(line: SshLine) -> Any:
    assert line._session  # noqa: SLF001 (what happens to its keys cannot be seen elsewhere)
    return line._session.transport  # noqa: SLF001


@pytest.mark.parametrize("moment", ["exec", "input", "output"])
def test_a_connection_that_dies_when_new_keys_are_due_is_lost(
    moment: str, listener: socket.socket, key: paramiko.PKey, target: SshTarget
) -> None:
    switch = Switch(cut_at=moment)
    serve(switch, listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        switch.on_cut = transport_of(line).packetizer._trigger_rekey  # noqa: SLF001 (after 512 MB it does so itself)
        with pytest.raises(AccessError, match="leaf01: gives no sign of life for 3 s"):
            line.run(LONG, LONGEST_S, INPUT if moment == "input" else "")


def test_new_keys_do_not_disturb_a_command(listener: socket.socket, key: paramiko.PKey, target: SshTarget) -> None:
    serve(Switch(answer="end"), listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        transport = transport_of(line)
        transport.packetizer.REKEY_BYTES = len(INPUT) // 4
        assert line.run("date", stdin=INPUT).exit_code == 0
        assert transport.session_id != transport.H  # that of the first keys


@pytest.mark.parametrize("answer", ["end", "refused"])
def test_a_slow_device_that_answers_keeps_its_time(
    answer: str, listener: socket.socket, key: paramiko.PKey, target: SshTarget
) -> None:
    switch = Switch(answer=answer)
    serve(switch, listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        done = line.run(LONG, LONGEST_S)
    assert (done.exit_code, done.stdout) == (0, "started\napplied\n")


def test_an_idle_connection_is_kept_by_answers(listener: socket.socket, key: paramiko.PKey, target: SshTarget) -> None:
    switch = Switch(answer="end")
    serve(switch, listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        while switch.keepalives <= MOST_UNANSWERED + 1:
            assert line.is_alive
            threading.Event().wait(0.05)
        assert line.run("date").exit_code == 0


def test_a_short_command_is_not_accompanied(listener: socket.socket, key: paramiko.PKey, target: SshTarget) -> None:
    switch = Switch(answer="end")
    serve(switch, listener, key)
    with closing(SshLine(target)) as line:
        line.open()
        with pytest.raises(CutShortError, match="leaf01: did not answer within 3 s: nv config apply"):
            line.run(LONG, TIMEOUT_S)
    assert switch.questions == []
