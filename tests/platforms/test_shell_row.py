"""Commands that follow each other in one channel, run by the shell of this machine."""

import subprocess

import pytest

from netkit.platforms import shell_batch
from netkit.platforms.shell_batch import ShellStep
from netkit.platforms.ssh import Done, OnOutput, SshLine, SshTarget

TARGET = SshTarget("leaf01", "127.0.0.1", "root")


class Here(SshLine):
    """A line to the shell of this machine, which hears its output in pieces."""

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


def test_each_command_has_what_it_printed_and_complained() -> None:
    assert ran(Here(), "echo one; echo oh >&2", "printf two", "echo three >&2; exit 4") == [
        (0, "one\n", "oh\n"),
        (0, "two", ""),
        (4, "", "three\n"),
    ]


def test_the_first_that_fails_is_the_last() -> None:
    assert ran(Here(), "echo one", "echo two; exit 7", "echo three") == [(0, "one\n", ""), (7, "two\n", "")]
    assert ran(Here(), "exit 3", "echo two") == [(3, "", "")]


def test_one_that_exits_well_does_not_end_the_others() -> None:
    assert ran(Here(), "exit 0; echo never", "echo two") == [(0, "", ""), (0, "two\n", "")]


@pytest.mark.parametrize("piece_bytes", [1, 5, 26, 4096])
def test_each_has_its_own_time_from_the_end_of_the_one_before(piece_bytes: int) -> None:
    line = Here(piece_bytes)
    ran(line, "echo one", "echo two", "echo three")
    # What comes in one piece has come to the last of them.
    assert line.limits_s == ([10.0, 12.0] if piece_bytes > 100 else [10.0, 11.0, 12.0])


def test_messages_name_the_commands_and_not_what_is_around_them() -> None:
    line = Here()
    ran(line, "echo one", "echo two")
    assert line.name == "echo one, then echo two"


def test_what_lacks_its_marks_is_the_first_alone() -> None:
    assert shell_batch.parts(Done(0, "nonsense", "or so"), "@mark@") == (Done(0, "nonsense", "or so"),)
    assert shell_batch.parts(Done(0, "a\n@mark@\nb", ""), "@mark@") == (Done(0, "a", ""), Done(0, "b", ""))
