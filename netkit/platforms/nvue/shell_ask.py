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


def ask(line: SshLine, commands: Sequence[str]) -> tuple[Reply, ...]:
    """Return the answer to each command, in order. AccessError only when the connection is gone."""
    count = min(MOST_STREAMS, len(commands) // WORTH)
    if count <= 1:
        return shell_batch.ask(line, commands)
    hands = [commands[at::count] for at in range(count)]
    with ThreadPoolExecutor(count) as pool:
        answered = list(pool.map(lambda hand: _stream(line, hand), hands))
    lost = [one for one in answered if isinstance(one, AccessError)]
    if len(lost) == count:
        raise lost[0]
    return tuple(_reply(answered[at % count], at // count) for at in range(len(commands)))


def _stream(line: SshLine, hand: Sequence[str]) -> tuple[Reply, ...] | AccessError:
    """Return the answers of one stream, or why there are none: the others may have theirs."""
    try:
        return shell_batch.ask(line, hand)
    except AccessError as error:
        return error


def _reply(answered: tuple[Reply, ...] | AccessError, at: int) -> Reply:
    if isinstance(answered, AccessError):
        return Reply("", f"not answered: {answered.problems[0].message}")
    return answered[at]
