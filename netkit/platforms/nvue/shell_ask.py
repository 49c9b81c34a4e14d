"""Many `nv show` in a shell: each takes a switch the better part of a second, so that a few streams share them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from netkit.errors import AccessError
from netkit.platforms import shell_batch
from netkit.platforms.ssh import SshLine
from netkit.platforms.view import Reply

MOST_STREAMS = 4
"""As many as others poll a switch with and leave its control CPU alive; sshd takes up to ten."""
WORTH = 32
"""Below as many commands a stream of its own costs more than it saves."""
PACE_S = 0.5
"""What each command beyond that adds to the time a stream may take."""
NVUE = "nv "


def ask(line: SshLine, commands: Sequence[str]) -> tuple[Reply, ...]:
    """Return the answer to each command, in order. AccessError only when the connection is gone."""
    # What needs no nvued comes first, to be told even where nvued hangs.
    wanted = sorted(dict.fromkeys(commands), key=lambda command: command.startswith(NVUE))
    count = max(1, min(MOST_STREAMS, len(wanted) // WORTH))
    hands = [wanted[at::count] for at in range(count)]
    with ThreadPoolExecutor(count) as pool:
        answered = list(pool.map(lambda hand: _stream(line, hand), hands))
    lost = [one for one in answered if isinstance(one, AccessError)]
    if len(lost) == count:
        raise lost[0]
    told = {
        command: reply
        for hand, one in zip(hands, answered, strict=True)
        for command, reply in zip(hand, _replies(one, len(hand)), strict=True)
    }
    return tuple(told[command] for command in commands)


def _stream(line: SshLine, hand: Sequence[str]) -> tuple[Reply, ...] | AccessError:
    """Return the answers of one stream, or why there are none: the others may have theirs."""
    limit_s = line.target.timeout_s + PACE_S * max(0, len(hand) - WORTH)
    try:
        return shell_batch.ask(line, hand, timeout_s=limit_s)
    except AccessError as error:
        return error


def _replies(answered: tuple[Reply, ...] | AccessError, count: int) -> tuple[Reply, ...]:
    if isinstance(answered, AccessError):
        return (Reply("", f"not answered: {answered.problems[0].message}"),) * count
    return answered
