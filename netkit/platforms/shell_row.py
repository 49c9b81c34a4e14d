"""Commands that follow each other in one channel: each has its own time, and one that fails is the last.

A channel for each costs a device more than most of the commands themselves.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from netkit.platforms.ssh import Done, SshLine


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
    return parts(line.run(script(steps, mark), first.timeout_s, heard=heard, name=name), mark)


def script(steps: Sequence[ShellStep], mark: str) -> str:
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
