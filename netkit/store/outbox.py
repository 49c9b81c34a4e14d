"""The outbox: notifications are queued in the transaction of their run, and sent afterwards.

A message keeps its id and content once it was sent, so that a receiver can drop duplicates. A process claims a
message for a while before sending it; if the process dies, the next one takes over.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Integer, RowMapping, and_, delete, func, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from netkit.store import schema
from netkit.store.database import reading, rows, written
from netkit.store.record import Source, packed, short, unpacked
from netkit.store.row import of_source
from netkit.store.state import Key, SilenceEnd, States

LONGEST_PAUSE_S = 3600.0
"""The longest pause after a receiver failed."""
MOST_BYTES = 1 << 20
"""The size limit of a packed message: the rest goes into the next one."""
Memory = Mapping[Key, str]
"""The last notification of each state, as the notifier encodes it; an empty text deletes it."""


class QueuedNotification(NamedTuple):
    """A notification for one receiver, as plain values."""

    receiver: str
    body: Any


class NotifyDecision(NamedTuple):
    """The notifications of a run, and what to remember of them."""

    memory: Memory
    posts: Sequence[QueuedNotification]


Decide = Callable[[Memory, States, Sequence[SilenceEnd]], NotifyDecision]
"""Decides within the transaction of a run what to report, from what was reported before, the states that were judged,
and the silences that ended."""


@dataclass(frozen=True, slots=True)
class ClaimedMessage:
    """A message that only this process may send for a while."""

    name: str
    rows: tuple[int, ...]
    bodies: tuple[Any, ...]
    attempts: int


@dataclass(frozen=True, slots=True)
class WaitingMessages:
    """The queue of one receiver."""

    receiver: str
    rounds: int
    queued_s: float
    attempts: int


class Outbox:
    """The messages of a fabric, or of a lab of it."""

    def __init__(self, engine: Engine, source: Source) -> None:
        self._engine, self._source = engine, source

    def claim(
        self, receiver: str, now_s: float, lease_s: float, *, outdated: Callable[[Any], Any] | None = None
    ) -> ClaimedMessage | None:
        """Claim the next message for a receiver; None if there is none, or it is not due yet.

        Notifications that were never sent go into one message, up to its size limit. With `outdated`, everything goes
        into one message, sent before or not; it returns what remains of a body once a later one exists.
        """

        def claim(connection: Connection) -> ClaimedMessage | None:
            waiting = rows(connection, self._unsent(receiver))
            if not waiting or not _is_time(waiting, now_s, lease_s):
                return None
            chosen = waiting if outdated is not None else _next(waiting)
            name = chosen[0]["message"] or secrets.token_hex(8)
            ids = tuple(one["id"] for one in chosen)
            self._change(connection, ids, message=name, claimed_until_s=now_s + lease_s)
            if outdated is not None:
                self._trim(connection, ids[:-1], outdated)
            bodies = tuple(self._body(connection, row) for row in ids)
            return ClaimedMessage(name, ids, bodies, max(one["attempts"] for one in chosen))

        return written(self._engine, self._source, claim)

    def sent(self, claimed: ClaimedMessage, now_s: float) -> None:
        """Mark a message as sent."""
        self._set(claimed, sent_s=now_s, claimed_until_s=0.0, data=b"")

    def failed(self, claimed: ClaimedMessage, due_s: float) -> None:
        """Release a message for a later attempt."""
        self._set(claimed, claimed_until_s=0.0, due_s=due_s, attempts=claimed.attempts + 1)

    def _set(self, claimed: ClaimedMessage, **values: object) -> None:
        def change(connection: Connection) -> None:
            self._change(connection, claimed.rows, **values)

        written(self._engine, self._source, change)

    def drop(self, claimed: ClaimedMessage) -> None:
        """Delete a message that its receiver will never accept."""

        def drop(connection: Connection) -> None:
            connection.execute(delete(schema.outbox).where(schema.outbox.c.id.in_(claimed.rows)))

        written(self._engine, self._source, drop)

    def waiting(self) -> tuple[WaitingMessages, ...]:
        """The queue of each receiver, by name."""
        table = schema.outbox
        counts = (
            func.count().label("rounds"),
            func.min(table.c.queued_s).label("queued_s"),
            func.max(table.c.attempts).label("attempts"),
        )
        query = select(table.c.receiver, *counts).where(self._is_mine, table.c.sent_s.is_(None))
        with reading(self._engine) as connection:
            found = rows(connection, query.group_by(table.c.receiver).order_by(table.c.receiver))
        return tuple(WaitingMessages(**{str(name): value for name, value in one.items()}) for one in found)

    def give_up(self, receivers: Iterable[str], before_s: float, now_s: float) -> Mapping[str, int]:
        """Drop messages that are too old or have no receiver; return how many rounds each receiver loses.

        Sent messages are deleted after the same time.
        """
        table = schema.outbox
        is_hopeless = (table.c.queued_s < before_s) | table.c.receiver.not_in([short(name) for name in receivers])
        is_lost = and_(self._is_mine, table.c.sent_s.is_(None), table.c.claimed_until_s <= now_s, is_hopeless)

        def drop(connection: Connection) -> dict[str, int]:
            counts = select(table.c.receiver, func.count().label("rounds")).where(is_lost).group_by(table.c.receiver)
            found = {one["receiver"]: int(one["rounds"]) for one in rows(connection, counts)}
            connection.execute(delete(table).where(is_lost | and_(self._is_mine, table.c.sent_s < before_s)))
            return found

        return written(self._engine, self._source, drop)

    @property
    def _is_mine(self) -> ColumnElement[bool]:
        return schema.is_of(schema.outbox, self._source)

    def _unsent(self, receiver: str) -> Any:
        """The query for unsent messages, without their bodies: there may be many."""
        table = schema.outbox
        columns = [column for column in table.c if column.name != "data"]
        is_wanted = and_(self._is_mine, table.c.receiver == short(receiver), table.c.sent_s.is_(None))
        return (
            select(*columns, func.length(table.c.data, type_=Integer).label("size"))
            .where(is_wanted)
            .order_by(table.c.id)
        )

    def _body(self, connection: Connection, row: int) -> Any:
        (found,) = rows(connection, select(schema.outbox.c.data).where(schema.outbox.c.id == row))
        return unpacked(found["data"], Any, f"message {row} to a receiver")

    def _trim(self, connection: Connection, rows: Sequence[int], outdated: Callable[[Any], Any]) -> None:
        """Reduce bodies to what remains of them."""
        for row in rows:
            body = self._body(connection, row)
            if (left := outdated(body)) != body:
                self._change(connection, [row], data=packed(left))

    def _change(self, connection: Connection, rows: Sequence[int], **values: object) -> None:
        connection.execute(update(schema.outbox).where(schema.outbox.c.id.in_(rows)).values(**values))


def _is_time(waiting: Sequence[RowMapping], now_s: float, lease_s: float) -> bool:
    """Whether no process is sending, and the message is due; times too far ahead stem from a wrong clock."""
    is_claimed = any(now_s < one["claimed_until_s"] <= now_s + lease_s for one in waiting)
    return not is_claimed and not now_s < waiting[0]["due_s"] <= now_s + LONGEST_PAUSE_S


def _next(waiting: Sequence[RowMapping]) -> list[RowMapping]:
    """The rows of the message sent before, else as many unsent rows as fit."""
    if name := waiting[0]["message"]:
        return [one for one in waiting if one["message"] == name]
    ends = accumulate(one["size"] for one in waiting)
    return [one for one, end in zip(waiting, ends, strict=True) if end <= max(MOST_BYTES, waiting[0]["size"])]


def queue(
    connection: Connection, source: Source, states: States, decide: Decide, ends: Sequence[SilenceEnd] = ()
) -> None:
    """Queue the notifications of a run within its transaction."""
    table = schema.notified
    known = rows(connection, select(table).where(schema.is_of(table, source)))
    memory = {Key(one["check_name"], one["device"], one["place"]): one["data"] for one in known}
    decision = decide(memory, states, ends)
    _remember(connection, source, decision.memory)
    queued = [
        {
            **of_source(source),
            "receiver": short(post.receiver),
            "queued_s": time.time(),
            "message": "",
            "attempts": 0,
            "due_s": 0.0,
            "claimed_until_s": 0.0,
            "data": packed(post.body),
        }
        for post in decision.posts
    ]
    if queued:
        connection.execute(insert(schema.outbox), queued)


def _remember(connection: Connection, source: Source, memory: Memory) -> None:
    """Replace changed rows, with statements that both databases support."""
    table = schema.notified
    for key in memory:
        is_it = and_(table.c.check_name == key.check, table.c.device == key.device, table.c.place == key.place)
        connection.execute(delete(table).where(schema.is_of(table, source), is_it))
    rows = [
        {
            **of_source(source),
            "check_name": key.check,
            "device": key.device,
            "place": key.place,
            "data": data,
        }
        for key, data in memory.items()
        if data
    ]
    if rows:
        connection.execute(insert(table), rows)
