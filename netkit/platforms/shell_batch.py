"""Run many commands in a device's shell at once, each with its own timeout; partial results survive a hang.

The time limit of the whole restarts when a command ends by itself: a slow device answers all of them, and one on which
they hang is left after the limit.

One script runs them all, because a channel for each would cost more than most commands. Random marks separate the
outputs, so that nothing a command prints can be mistaken for its end.
"""

import re
import secrets
import shlex
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest

from netkit.errors import AccessError
from netkit.platforms.ssh import CutShortError, Done, SshLine
from netkit.platforms.view import ENDLESS, EXITED, SHARE, Reply

LEAST_S = 2
TIMED_OUT = (124, 137)
LONGEST_REASON = 200
GARBLED = "the output is garbled"
PLAIN = re.compile(r"""(?!command |exec |type )[a-z][\w.-]*(?: +(?:[\w./:,@%+=-]|"[\w./:,@%+=* -]*")+)*""")
"""A program with plain arguments, which runs without a subshell and saves a millisecond."""
NOT_THERE = re.compile(r"timeout: failed to run command ['‘]([^'’]*)['’]: No such file or directory")
START = r"""export LC_ALL=C.UTF-8 TERM=dumb; unset LANGUAGE
run() {
    printf '\n%s %s\n' "$mark" "$1"; printf '\n%s %s\n' "$mark" "$1" >&2
    shift
    timeout -k 1 "$limit" "$@" </dev/null
    printf '\n%s = %s\n' "$mark" "$?"
}
"""


def ask(
    line: SshLine,
    commands: Sequence[str],
    *,
    shell: str = "/bin/sh",
    slowness: Callable[[str], int] = lambda _command: 0,
) -> tuple[Reply, ...]:
    """Run commands and return a reply to each, in order; duplicates run once, the slowest commands last.

    AccessError only if the connection is lost before the first reply.
    """
    unique = tuple(sorted(dict.fromkeys(commands), key=slowness))
    found = dict(zip(unique, _run_batch(line, unique, shell), strict=True)) if unique else {}
    return tuple(found[command] for command in commands)


def _run_batch(line: SshLine, commands: Sequence[str], shell: str) -> tuple[Reply, ...]:
    limit_s = line.target.timeout_s
    mark = f"@{secrets.token_hex(12)}@"
    chunks: list[tuple[float, bytes]] = []
    text = script(commands, mark, max(LEAST_S, int(limit_s / SHARE)))
    renewed = _limit_renewed_by_answers(mark.encode(), limit_s)

    def on_output(chunk: bytes) -> float | None:
        chunks.append((time.time(), chunk))
        return renewed(chunk)

    try:
        done = line.run(shell, limit_s, text, on_output)
    except AccessError as error:
        failure = error.problems[0].message.removeprefix(f"{line.target.device}: ")
        found = replies(chunks, "", mark, len(commands), failure)
        if isinstance(error, CutShortError) or any(not reply.failure for reply in found):
            return found
        raise
    complaints = "\n".join(line for line in done.stderr.splitlines() if mark not in line)
    failure = last_line(complaints) or (f"exit code {done.exit_code}" if done.exit_code else GARBLED)
    return replies(chunks, done.stderr, mark, len(commands), failure)


def _limit_renewed_by_answers(mark: bytes, limit_s: float) -> Callable[[bytes], float | None]:
    """Build a callback that returns the time limit for a chunk in which a command ends that did not hang."""
    hung = b"|".join(b"%d" % code for code in TIMED_OUT)
    end = re.compile(rb"\n" + re.escape(mark) + rb" = (?!(?:" + hung + rb")\n)\d+\n")
    tail = b""

    def on_output(chunk: bytes) -> float | None:
        nonlocal tail
        tail += chunk
        ends = [match.end() for match in end.finditer(tail)]
        tail = tail[ends[-1] if ends else 0 :][-len(mark) - 8 :]  # the rest may begin another end
        return limit_s if ends else None

    return on_output


def script(commands: Sequence[str], mark: str, limit_s: int) -> str:
    """Build the script that runs the commands in turn; braces make the shell read all of it before the first one."""
    lines = []
    for number, command in enumerate(commands):
        words = command if PLAIN.fullmatch(command) else f"/bin/sh -c {shlex.quote(command)}"
        lines.append(f"run {number} {words}\n")
    return f"{{\nmark={mark} limit={limit_s}\n{START}{''.join(lines)}}}\n"


def replies(
    chunks: Sequence[tuple[float, bytes]], stderr: str, mark: str, count: int, failure: str
) -> tuple[Reply, ...]:
    """Parse the replies from chunks with their time of arrival, in order; missing ones get the failure."""
    data = b"".join(chunk for _, chunk in chunks)
    sign = re.escape(mark.encode())
    outputs = re.finditer(rb"\n" + sign + rb" (\d+)\n(.*?)\n" + sign + rb" = (\d+)\n", data, re.DOTALL)
    errors = re.finditer(rf"\n{re.escape(mark)} (\d+)\n(.*?)(?=\n{re.escape(mark)} |\Z)", stderr, re.DOTALL)
    complaints = {int(match[1]): last_line(match[2]) for match in errors}
    ends = list(accumulate(len(chunk) for _, chunk in chunks))
    found = {}
    for match in outputs:
        number, text, code = int(match[1]), match[2].decode("utf-8", "replace"), int(match[3])
        why = _failure(code, complaints.get(number, "") or last_line(text))
        found[number] = Reply(text, why, chunks[bisect_left(ends, match.end())][0])
    last_s = chunks[-1][0] if chunks else 0.0
    return tuple(found.get(number) or Reply("", f"not answered: {failure}", last_s) for number in range(count))


def _failure(code: int, complaint: str) -> str:
    if code in TIMED_OUT:
        return ENDLESS
    complaint = NOT_THERE.sub(r"\1: not found", complaint)
    return f"{EXITED} {code}: {complaint}".removesuffix(": ") if code else ""


def last_line(text: str) -> str:
    """The last line of a text that is not blank, truncated."""
    lines = (line.strip() for line in reversed(text.splitlines()))
    return next((line[:LONGEST_REASON] for line in lines if line), "")


@dataclass(frozen=True, slots=True)
class ShellStep:
    """A command and its time limit."""

    command: str
    timeout_s: float


def run(line: SshLine, steps: Sequence[ShellStep]) -> tuple[Done, ...]:
    """Run commands until one fails, and return the results of those that ran. AccessError as for one command."""
    mark = f"@{secrets.token_hex(12)}@"
    first, *others = steps
    name = ", then ".join(step.command for step in steps)
    on_output = _limits_by_mark(mark.encode(), iter([step.timeout_s for step in others]))
    return parts(line.run(row_script(steps, mark), first.timeout_s, on_output=on_output, name=name), mark)


def row_script(steps: Sequence[ShellStep], mark: str) -> str:
    """Build the script that runs commands until one fails; the mark separates their output."""
    between = f" || exit $?; printf '\\n%s\\n' {mark}; printf '\\n%s\\n' {mark} >&2; "
    return between.join(f"( {step.command} )" for step in steps)


def parts(done: Done, mark: str) -> tuple[Done, ...]:
    """Split the result of the script into the results of its commands."""
    sign = f"\n{mark}\n"
    printed, complained = done.stdout.split(sign), done.stderr.split(sign)
    codes = [0] * (len(printed) - 1) + [done.exit_code]
    pairs = zip_longest(printed, complained[: len(printed)], fillvalue="")
    return tuple(Done(code, out, err) for code, (out, err) in zip(codes, pairs, strict=True))


def _limits_by_mark(mark: bytes, limits_s: Iterator[float]) -> Callable[[bytes], float | None]:
    """Build a callback that sets the time limit of each command when the previous one ends."""
    tail = b""

    def on_output(chunk: bytes) -> float | None:
        nonlocal tail
        tail += chunk
        limit_s = None
        while (place := tail.find(mark)) >= 0:
            tail = tail[place + len(mark) :]
            limit_s = next(limits_s, None)
        tail = tail[-len(mark) :]
        return limit_s

    return on_output
