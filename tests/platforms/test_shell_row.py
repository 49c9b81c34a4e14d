"""A sequence of commands in one channel, run by a local shell."""

import subprocess

import pytest

from netkit.platforms import shell_batch
from netkit.platforms.shell_batch import ShellStep
from netkit.platforms.ssh import Done, OnOutput, SshLine, SshTarget

TARGET = SshTarget("leaf01", "127.0.0.1", "root")


class Here(SshLine):
    """A connection to a local shell whose output arrives in pieces."""

    def __init__(self, piece_bytes: int = 7) -> None:
        super().__init__(TARGET)
        self.piece_bytes = piece_bytes
        self.limits_s: list[float | None] = []
        self.name = ""

    def run(
        self,
        command: str,
        timeout_s: float | None = None,
        stdin: str = "",
        on_output: OnOutput | None = None,
        *,
        name: str = "",
    ) -> Done:
        self.name = name
        self.limits_s.append(timeout_s)
        done = subprocess.run(["/bin/sh", "-c", command], input=stdin.encode(), capture_output=True, check=False)
        for place in range(0, len(done.stdout) if on_output else 0, self.piece_bytes):
            assert on_output
            if (limit_s := on_output(done.stdout[place : place + self.piece_bytes])) is not None:
                self.limits_s.append(limit_s)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def ran(line: Here, *commands: str) -> list[tuple[int, str, str]]:
    found = shell_batch.run(line, [ShellStep(command, 10.0 + at) for at, command in enumerate(commands)])
    return [(done.exit_code, done.stdout, done.stderr) for done in found]


def test_each_command_has_its_stdout_and_stderr() -> None:
    assert ran(Here(), "echo one; echo oh >&2", "printf two", "echo three >&2; exit 4") == [
        (0, "one\n", "oh\n"),
        (0, "two", ""),
        (4, "", "three\n"),
    ]


def test_the_first_failure_is_the_last_command() -> None:
    assert ran(Here(), "echo one", "echo two; exit 7", "echo three") == [(0, "one\n", ""), (7, "two\n", "")]
    assert ran(Here(), "exit 3", "echo two") == [(3, "", "")]


def test_exit_0_does_not_end_the_sequence() -> None:
    assert ran(Here(), "exit 0; echo never", "echo two") == [(0, "", ""), (0, "two\n", "")]


@pytest.mark.parametrize("piece_bytes", [1, 5, 26, 4096])
def test_each_has_its_own_time_limit_from_the_end_of_the_previous_one(piece_bytes: int) -> None:
    line = Here(piece_bytes)
    ran(line, "echo one", "echo two", "echo three")
    # Output of several commands in one piece restarts the time of the last one.
    assert line.limits_s == ([10.0, 12.0] if piece_bytes > 100 else [10.0, 11.0, 12.0])


def test_messages_name_the_commands_and_not_their_wrapping() -> None:
    line = Here()
    ran(line, "echo one", "echo two")
    assert line.name == "echo one, then echo two"


def test_output_without_markers_belongs_to_the_first_command() -> None:
    assert shell_batch.parts(Done(0, "nonsense", "or so"), "@mark@") == (Done(0, "nonsense", "or so"),)
    assert shell_batch.parts(Done(0, "a\n@mark@\nb", ""), "@mark@") == (Done(0, "a", ""), Done(0, "b", ""))
