"""Sending what waits in the outbox. What a receiver does not take stays there for the next run."""

import time
from collections.abc import Iterator, Sequence

from netkit.errors import NetkitError
from netkit.notify.refusal import RefusedError
from netkit.notify.sender import Sender
from netkit.notify.smtp import PartlyTakenError
from netkit.report.plan_view import counted
from netkit.store.outbox import LONGEST_PAUSE_S, Claimed, Outbox

LEASE_S = 180.0
"""Longer than sending may take: who has claimed a message for so long has died."""
SHORTEST_S = 60.0
"""How long a receiver that failed is left in peace: twice as long each time, up to LONGEST_PAUSE_S."""
MOST_ATTEMPTS = 3
"""So often a message is sent that its receiver says it will not take."""


def deliver(outbox: Outbox, senders: Sequence[Sender], keep_s: float) -> Iterator[str]:
    """Send what waits, and yield what did not go well."""
    yield from _given_up(outbox, senders, keep_s)
    for sender in senders:
        yield from _to_one(outbox, sender)


def _given_up(outbox: Outbox, senders: Sequence[Sender], keep_s: float) -> Iterator[str]:
    now_s = time.time()
    lost = outbox.give_up([sender.receiver.name for sender in senders], now_s - keep_s, now_s)
    for name, rounds in lost.items():
        yield _lost(name, rounds)


def _lost(name: str, rounds: int) -> str:
    return f"{name} was not told the news of {counted(rounds, 'round')}, which are given up"


def _to_one(outbox: Outbox, sender: Sender) -> Iterator[str]:
    name = sender.receiver.name
    while claimed := outbox.claim(name, time.time(), LEASE_S, outdated=sender.outdated):
        try:
            sender.send(claimed.name, claimed.bodies)
        except PartlyTakenError as error:
            yield f"{name}: {error}"
        except Exception as error:  # one receiver must not keep the news from the others
            if is_hopeless(error) and claimed.attempts + 1 >= MOST_ATTEMPTS:
                outbox.drop(claimed)
                yield f"{_lost(name, len(claimed.rows))}: {complaint(error)}"
                continue
            outbox.failed(claimed, time.time() + pause_s(claimed))
            yield f"{name} was not told: {complaint(error)}; it is tried again"
            return
        outbox.sent(claimed, time.time())


def is_hopeless(error: Exception) -> bool:
    """Whether it is the message that cannot be told: refused, or made for a receiver of another kind."""
    return isinstance(error, RefusedError | LookupError)


def complaint(error: Exception) -> str:
    """Return why something was not told; of what nobody foresaw no words, since they may hold a secret."""
    return str(error) if isinstance(error, NetkitError) else f"{type(error).__name__}; see notify.yaml"


def pause_s(claimed: Claimed) -> float:
    """Return how long to wait before the next attempt."""
    return min(SHORTEST_S * 2.0 ** min(claimed.attempts, 10), LONGEST_PAUSE_S)
