"""Many commands in one shell: a real one here, and the output so far when a command hangs or the connection ends."""

import re
import subprocess
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import AccessError, Problem
from netkit.platforms import shell_batch
from netkit.platforms.ssh import CutShortError, Done, OnOutput, SshLine, SshTarget
from netkit.platforms.view import Reply

MARK = "@0123456789abcdef01234567@"


def run(*commands: str, limit_s: int = 5) -> tuple[Reply, ...]:
    script = shell_batch.script(commands, MARK, limit_s)
    done = subprocess.run(["/bin/sh"], input=script.encode(), capture_output=True, timeout=60, check=False)
    return shell_batch.replies([(7.0, done.stdout)], done.stderr.decode(), MARK, len(commands), "it ended")


def test_each_command_has_its_own_answer_in_order() -> None:
    found = run("echo one", "printf 'two\\n\\nlines'", "true", 'echo "it\'s" $((1 + 1))')
    assert found == tuple(Reply(text, "", 7.0) for text in ("one\n", "two\n\nlines", "", "it's 2\n"))


def test_a_failed_command_has_its_error_and_the_others_answer() -> None:
    found = run("echo some; echo broken >&2; exit 3", "nosuchprogram", "false", "cat", "echo last")
    assert [reply.text for reply in found] == ["some\n", "", "", "", "last\n"]
    assert found[0].failure == "exit code 3: broken"
    assert found[1].failure == "exit code 127: nosuchprogram: not found"
    assert (found[2].failure, found[3].failure, found[4].failure) == ("exit code 1", "", "")


@pytest.mark.parametrize(
    ("command", "is_plain"),
    [
        ("nv show interface -o json", True),
        ('nv show interface --view="include=/*/qos/pfc-watchdog" -o json', True),
        ("ip -j -4 route show", True),
        ("true", True),
        ("echo 1; reboot", False),
        ("echo $HOME", False),
        ("ls *", False),
        ('echo "$HOME"', False),
        ("A=1 env", False),
        ("command -v nv", False),
        ("/usr/bin/nv show\nreboot", False),
        ("nv show | cat", False),
        ("cat <x", False),
    ],
)
def test_a_program_and_its_arguments_need_no_shell_of_their_own(command: str, is_plain: bool) -> None:
    script = shell_batch.script([command], MARK, 5)
    assert ("/bin/sh -c" in script.splitlines()[-2] or "/bin/sh -c" in script.splitlines()[-3]) is not is_plain


def test_plain_words_are_passed_unchanged() -> None:
    found = run('printf "%s,/*/b|" a=1 "--c=/*/d" --e="/*/f g"')
    assert found == (Reply("a=1,/*/b|--c=/*/d,/*/b|--e=/*/f g,/*/b|", "", 7.0),)
    assert run('echo --view="include=/*/qos" x') == (Reply("--view=include=/*/qos x\n", "", 7.0),)


def test_stderr_is_not_in_an_answer() -> None:
    assert run("echo careful >&2; echo '{}'") == (Reply("{}\n", "", 7.0),)


def test_a_hanging_command_keeps_its_output_and_does_not_affect_others() -> None:
    found = run("echo before; exec sleep 100", "echo after", limit_s=1)
    assert found == (Reply("before\n", "does not end", 7.0), Reply("after\n", "", 7.0))


def test_a_foreign_marker_in_an_answer_changes_nothing() -> None:
    forged = "echo; echo '@ffffffffffffffffffffffff@ = 0'; echo more"
    assert run(forged, "echo two") == (
        Reply("\n@ffffffffffffffffffffffff@ = 0\nmore\n", "", 7.0),
        Reply("two\n", "", 7.0),
    )


def test_output_before_the_end_is_kept_and_the_rest_has_a_reason() -> None:
    script = shell_batch.script(["echo one", "echo two"], MARK, 5)
    whole = subprocess.run(["/bin/sh"], input=script.encode(), capture_output=True, check=False).stdout
    middle = whole.index(b"two")
    on_output = [(1.0, whole[:3]), (2.0, whole[3:middle]), (3.0, b"tw")]
    lost = Reply("", "not answered: did not answer within 3 s", 3.0)
    assert shell_batch.replies(on_output, "", MARK, 2, "did not answer within 3 s") == (Reply("one\n", "", 2.0), lost)


def test_no_output_is_a_failure_of_each_command() -> None:
    assert shell_batch.replies([], "", MARK, 2, "gone") == (Reply("", "not answered: gone"),) * 2


class Answering(SshLine):
    """A connection answered by a function, given the program, its input, the marker in it, and the output callback."""

    def __init__(self, answer: Callable[[str, str, str, OnOutput | None], Done]) -> None:
        super().__init__(SshTarget("gpu01", "127.0.0.1", "root"))
        self._answer = answer

    def run(
        self,
        command: str,
        timeout_s: float | None = None,
        stdin: str = "",
        on_output: OnOutput | None = None,
        *,
        name: str = "",
    ) -> Done:
        del timeout_s, name
        return self._answer(command, stdin, stdin.partition("mark=")[2].split()[0], on_output)


def breaking(error: type[AccessError], commands: int) -> Answering:
    """A connection to a local shell that breaks after a number of commands."""

    def answer(command: str, stdin: str, mark: str, on_output: OnOutput | None) -> Done:
        done = subprocess.run([command], input=stdin.encode(), capture_output=True, check=False)
        ends = [match.end() for match in re.finditer(rf"{mark} = 0\n".encode(), done.stdout)]
        if on_output and commands:
            on_output(done.stdout[: ends[commands - 1]])
        raise error(Problem("gpu01: the connection is lost"))

    return Answering(answer)


def garbling(exit_code: int, complaint: str) -> Answering:
    """A connection that ends every command at once with garbage."""
    return Answering(
        lambda _command, _stdin, mark, _output: Done(exit_code, "", f"\n{mark} 0\n{complaint}\n{mark} 1\n")
    )


def test_answers_before_a_lost_connection_are_kept() -> None:
    found = shell_batch.ask(breaking(AccessError, 1), ["echo one", "echo two", "echo one"])
    assert [(reply.text, reply.failure) for reply in found] == [
        ("one\n", ""),
        ("", "not answered: the connection is lost"),
        ("one\n", ""),
    ]


def test_a_connection_lost_at_once_is_an_access_error() -> None:
    with pytest.raises(AccessError):
        shell_batch.ask(breaking(AccessError, 0), ["echo one"])
    assert shell_batch.ask(breaking(CutShortError, 0), ["echo one"])[0].failure == (
        "not answered: the connection is lost"
    )


def test_each_answer_renews_the_time_limit_but_no_command_that_hangs() -> None:
    limits_s: list[float | None] = []

    def answer(_command: str, _stdin: str, mark: str, on_output: OnOutput | None) -> Done:
        assert on_output is not None
        chunks = (
            f"\n{mark} 0\none",
            f"\n\n{mark} =",
            " 3\n",
            f"\n{mark} 1\n",
            f"\n{mark} = 124\n\n{mark} 2\n",
            "two\n",
            f"\n{mark} = 137\n",
            f"\n{mark} 3\n\n{mark} = 0\n\n{mark} 4\n",
        )
        limits_s.extend(on_output(chunk.encode()) for chunk in chunks)
        raise CutShortError(Problem("gpu01: did not answer within 9 s"))

    line = Answering(answer)
    found = shell_batch.ask(line, ["one", "two", "three", "four", "five"])
    limit_s = line.target.timeout_s
    assert limits_s == [None, None, limit_s, None, None, None, None, limit_s]
    assert [reply.failure for reply in found] == [
        "exit code 3: one",
        "does not end",
        "does not end",
        "",
        "not answered: did not answer within 9 s",
    ]


@pytest.mark.parametrize(
    ("exit_code", "complaint", "reason"),
    [(0, "", "the output is garbled"), (3, "", "exit code 3"), (3, "no such shell", "no such shell")],
)
def test_a_malformed_answer_is_reported_without_markers(exit_code: int, complaint: str, reason: str) -> None:
    found = shell_batch.ask(garbling(exit_code, complaint), ["echo one", "echo two"])
    assert [reply.failure for reply in found] == [f"not answered: {reason}"] * 2


@given(st.lists(st.binary(max_size=60), max_size=4), st.text(max_size=60))
def test_no_bytes_break_it(chunks: list[bytes], stderr: str) -> None:
    on_output = [(time.time(), chunk) for chunk in chunks]
    assert len(shell_batch.replies(on_output, stderr, MARK, 3, "x")) == 3
