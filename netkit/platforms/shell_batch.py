"""Many questions to a device's shell in one go: each has its own time, and what came before the line hung is kept.

One script runs them all, because a channel for each would cost more than most answers. Marks nobody can foresee stand
between the answers, so that nothing a command prints can be taken for the end of it.
"""

import re
import secrets
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from netkit.errors import AccessError
from netkit.platforms.ssh import CutShortError, Done, SshLine
from netkit.platforms.view import ENDLESS, EXITED, Reply

SHARE = 3
"""One command may take this part of the time there is for all, so that the others have theirs."""
LEAST_S = 2
TIMED_OUT = (124, 137)
LONGEST_REASON = 200
GARBLED = "what came back is no answer"
PLAIN = re.compile(r"""(?!command |exec |type )[a-z][\w.-]*(?: +(?:[\w./:,@%+=-]|"[\w./:,@%+=* -]*")+)*""")
"""A program and its words: it needs no shell of its own, which would cost a millisecond. Others may be anything."""
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
    timeout_s: float | None = None,
    slowness: Callable[[str], int] = lambda _command: 0,
) -> tuple[Reply, ...]:
    """Return the answer to each command, in order; one that stands there twice is asked once, the slowest last.

    AccessError only when the connection is gone before anything was answered.
    """
    once = tuple(sorted(dict.fromkeys(commands), key=slowness))
    told = dict(zip(once, _asked(line, once, shell, timeout_s), strict=True)) if once else {}
    return tuple(told[command] for command in commands)


def _asked(line: SshLine, commands: Sequence[str], shell: str, timeout_s: float | None) -> tuple[Reply, ...]:
    limit_s = line.target.timeout_s if timeout_s is None else timeout_s
    mark = f"@{secrets.token_hex(12)}@"
    heard: list[tuple[float, bytes]] = []
    text = script(commands, mark, max(LEAST_S, int(limit_s / SHARE)))
    try:
        done = line.run(shell, limit_s, text, lambda chunk: heard.append((time.time(), chunk)))
    except AccessError as error:
        failure = error.problems[0].message.removeprefix(f"{line.target.device}: ")
        found = replies(heard, "", mark, len(commands), failure)
        if isinstance(error, CutShortError) or any(not reply.failure for reply in found):
            return found
        raise
    failure = last_line(_without(mark, done.stderr)) or (f"exit code {done.exit_code}" if done.exit_code else GARBLED)
    return replies(heard, done.stderr, mark, len(commands), failure)


def _without(mark: str, text: str) -> str:
    return "\n".join(line for line in text.splitlines() if mark not in line)


def script(commands: Sequence[str], mark: str, limit_s: int) -> str:
    """Return the script that runs commands one after the other; it is read as a whole before the first one runs."""
    lines = (f"run {number} {_words(command)}\n" for number, command in enumerate(commands))
    return f"{{\nmark={mark} limit={limit_s}\n{START}{''.join(lines)}}}\n"


def _words(command: str) -> str:
    return command if PLAIN.fullmatch(command) else f"/bin/sh -c {shlex.quote(command)}"


def replies(
    heard: Sequence[tuple[float, bytes]], stderr: str, mark: str, count: int, failure: str
) -> tuple[Reply, ...]:
    """Return the answers in what was heard, in order; those that are not there have the failure."""
    data = b"".join(chunk for _, chunk in heard)
    sign = re.escape(mark.encode())
    found = re.finditer(rb"\n" + sign + rb" (\d+)\n(.*?)\n" + sign + rb" = (\d+)\n", data, re.DOTALL)
    complaints = _complaints(stderr, mark)
    last_s = heard[-1][0] if heard else 0.0
    told = {}
    for match in found:
        number, text, code = int(match[1]), match[2].decode("utf-8", "replace"), int(match[3])
        why = _failure(code, complaints.get(number, "") or last_line(text))
        told[number] = Reply(text, why, _when(heard, match.end()))
    return tuple(told.get(number) or Reply("", f"not answered: {failure}", last_s) for number in range(count))


def _complaints(stderr: str, mark: str) -> Mapping[int, str]:
    """Return the last thing each command complained of."""
    found = re.finditer(rf"\n{re.escape(mark)} (\d+)\n(.*?)(?=\n{re.escape(mark)} |\Z)", stderr, re.DOTALL)
    return {int(match[1]): last_line(match[2]) for match in found}


def _failure(code: int, said: str) -> str:
    if code in TIMED_OUT:
        return ENDLESS
    said = NOT_THERE.sub(r"\1: not found", said)
    return f"{EXITED} {code}: {said}".removesuffix(": ") if code else ""


def _when(heard: Sequence[tuple[float, bytes]], place: int) -> float:
    """Return when the byte before a place came."""
    size = 0
    for at_s, chunk in heard:
        size += len(chunk)
        if size >= place:
            return at_s
    return 0.0


def last_line(text: str) -> str:
    """Return the last line of a text that says anything, not at length."""
    lines = (line.strip() for line in reversed(text.splitlines()))
    return next((line[:LONGEST_REASON] for line in lines if line), "")


@dataclass(frozen=True, slots=True)
class ShellStep:
    """A command, and how long it may take."""

    command: str
    timeout_s: float


def run(line: SshLine, steps: Sequence[ShellStep]) -> tuple[Done, ...]:
    """Return what became of each command that was begun. AccessError as of one command."""
    mark = f"@{secrets.token_hex(12)}@"
    first, *others = steps
    name = ", then ".join(step.command for step in steps)
    heard = _renewed(mark.encode(), iter([step.timeout_s for step in others]))
    return parts(line.run(row_script(steps, mark), first.timeout_s, heard=heard, name=name), mark)


def row_script(steps: Sequence[ShellStep], mark: str) -> str:
    """Return what runs commands until one fails; a mark nobody can foresee stands between what they print."""
    between = f" || exit $?; printf '\\n%s\\n' {mark}; printf '\\n%s\\n' {mark} >&2; "
    return between.join(f"( {step.command} )" for step in steps)


def parts(done: Done, mark: str) -> tuple[Done, ...]:
    """Return what became of each command, given what became of all."""
    sign = f"\n{mark}\n"
    printed, complained = done.stdout.split(sign), done.stderr.split(sign)
    codes = [0] * (len(printed) - 1) + [done.exit_code]
    pairs = zip_longest(printed, complained[: len(printed)], fillvalue="")
    return tuple(Done(code, out, err) for code, (out, err) in zip(codes, pairs, strict=True))


def _renewed(mark: bytes, limits_s: Iterator[float]) -> Callable[[bytes], float | None]:
    """Return what gives each command its time once the one before has ended."""
    tail = b""

    def heard(chunk: bytes) -> float | None:
        nonlocal tail
        tail += chunk
        limit_s = None
        while (place := tail.find(mark)) >= 0:
            tail = tail[place + len(mark) :]
            limit_s = next(limits_s, None)
        tail = tail[-len(mark) :]
        return limit_s

    return heard
