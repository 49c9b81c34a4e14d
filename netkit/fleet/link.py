"""One connection to a virtual host of the broker, as a site's worker and the coordinator use it.

Nothing here reconnects or retries: whatever goes wrong is a LinkError, after which the link is closed and a new one is
opened. Not thread-safe.
"""

import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from netkit.errors import Problem
from netkit.fleet.credentials import Credentials
from netkit.fleet.rabbitmq import ANSWER_LIMITS, ANSWERS, JOBS, STATUS, answer_queue
from netkit.fleet.settings import BrokerSettings, FleetError

try:
    import amqp
    from amqp.exceptions import AccessRefused, AMQPError, MessageNacked
except ImportError:
    raise FleetError(
        Problem("the library of the broker is not installed", "pip install 'netkit-fabric[fleet]'")
    ) from None

HEARTBEAT_S = 30
CONNECT_S = 15
CONFIRM_S = 60
"""How long the broker may take to confirm a message."""
UNACKNOWLEDGED_MS = 30_000
"""How long TCP waits for the other end before the connection counts as broken."""
RETRY_S = 1.0


class LinkError(Exception):
    """The connection to the broker is broken, or the broker refused something."""


class UnroutableError(Exception):
    """No queue waits for a message."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message, and what acknowledges it."""

    body: bytes
    tag: int
    is_redelivered: bool


class BrokerLink:
    """An open connection."""

    def __init__(self, broker: BrokerSettings, vhost: str, user: str, credentials: Credentials) -> None:
        self._received: deque[Received] = deque()
        self._returned: list[str] = []
        self._vhost = vhost
        self._connection = amqp.Connection(
            f"{broker.host}:{broker.port}",
            userid=user,
            password=credentials.password,
            login_method="PLAIN",
            virtual_host=vhost,
            connect_timeout=CONNECT_S,
            heartbeat=HEARTBEAT_S,
            socket_settings={socket.TCP_USER_TIMEOUT: UNACKNOWLEDGED_MS},
            ssl={
                "ca_certs": str(credentials.authority),
                "certfile": str(credentials.certificate),
                "keyfile": str(credentials.key),
                "cert_reqs": ssl.CERT_REQUIRED,
                "server_hostname": broker.host,
                "tls_minimum_version": ssl.TLSVersion.TLSv1_2,
            },
        )
        self._guarded(self._connection.connect)
        self._channel = self._guarded(self._connection.channel)
        self._channel.events["basic_return"].add(self._on_return)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # it may be broken in any way
            self._connection.close()

    def publish(self, exchange: str, key: str, body: bytes, *, until_s: float = 0, lasts_s: float = 0) -> None:
        """Publish a message, and wait until the broker has it; UnroutableError if no queue waits for it.

        If its queue is full, try again until `until_s`, as time.time() counts. The broker drops the message when nobody
        has received it after `lasts_s`; 0: never.
        """
        lasting = {"expiration": str(round(lasts_s * 1000))} if lasts_s else {}
        message = amqp.Message(body, content_type="application/octet-stream", delivery_mode=2, **lasting)
        while not self._is_published(message, exchange, key):
            if time.time() > until_s:
                raise LinkError(f"the queue of {exchange} {key} is full")
            self.wait(RETRY_S)

    def _is_published(self, message: Any, exchange: str, key: str) -> bool:
        self._returned.clear()
        where = {"exchange": exchange, "routing_key": key, "mandatory": True}
        limits = {"timeout": CONFIRM_S, "confirm_timeout": CONFIRM_S}
        try:
            self._guarded(lambda: self._channel.basic_publish_confirm(message, **where, **limits))
        except MessageNacked:
            return False
        if self._returned:
            raise UnroutableError(self._returned[0])
        return True

    def _on_return(self, error: Exception, *_: Any) -> None:
        self._returned.append(str(error))

    def consume(self, queue: str, prefetch: int) -> None:
        """Have the broker deliver messages of a queue, no more than so many unacknowledged ones at a time."""
        self._guarded(lambda: self._channel.basic_qos(0, prefetch, a_global=False))
        self._guarded(lambda: self._channel.basic_consume(queue, callback=self._on_message))

    def _on_message(self, message: Any) -> None:
        body = message.body.encode() if isinstance(message.body, str) else bytes(message.body)
        self._received.append(Received(body, message.delivery_tag, message.delivery_info["redelivered"]))

    def received(self, timeout_s: float) -> Received | None:
        """Return the next message, or None if none comes in time."""
        while not self._received:
            if not self.wait(timeout_s):
                return None
        return self._received.popleft()

    def wait(self, timeout_s: float) -> bool:
        """Handle the next thing that the broker sends, if it does in time; keep the connection alive."""
        self._guarded(self._connection.heartbeat_tick)
        return bool(self._guarded(lambda: self._has_drained(max(timeout_s, 0.001))))

    def _has_drained(self, timeout_s: float) -> bool:
        try:
            self._connection.drain_events(timeout=timeout_s)
        except TimeoutError as error:
            if error.errno is not None:  # of the connection, not of this wait
                raise
            return False
        return True

    def acknowledge(self, received: Received) -> None:
        self._guarded(lambda: self._channel.basic_ack(received.tag))

    def declare_answers(self, run: str) -> str:
        """Declare the queue of a coordinator's run, and return its name."""
        name = answer_queue(run)
        self._guarded(
            lambda: self._channel.queue_declare(name, durable=True, auto_delete=False, arguments=dict(ANSWER_LIMITS))
        )
        self._guarded(lambda: self._channel.queue_bind(name, ANSWERS, run))
        return name

    def delete_answers(self, run: str) -> None:
        self._guarded(lambda: self._channel.queue_delete(answer_queue(run)))

    def waiting_jobs(self) -> tuple[int, int]:
        """Return how many jobs wait, and how many workers receive."""
        found = self._guarded(lambda: self._channel.queue_declare(JOBS, passive=True))
        return found.message_count, found.consumer_count

    def peek_status(self) -> list[bytes]:
        """Return the messages in the queue of the status; they stay there."""
        found: list[Any] = []
        while (message := self._guarded(lambda: self._channel.basic_get(STATUS))) is not None:
            found.append(message)
        for message in found:
            self._guarded(partial(self._channel.basic_reject, message.delivery_tag, requeue=True))
        return [bytes(message.body) for message in found]

    def detach(self) -> None:
        """Give up the connection in a process that inherited it, without a word to the broker."""
        os.close(self._connection.sock.detach())

    def fileno(self) -> int:
        return int(self._connection.sock.fileno())

    def _guarded(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except MessageNacked:
            raise
        except AccessRefused as error:
            raise LinkError(f"the broker refuses: {error.reply_text}") from None
        except AMQPError as error:
            raise LinkError(getattr(error, "reply_text", "") or str(error) or type(error).__name__) from None
        except OSError as error:
            raise LinkError(error.strerror or str(error) or type(error).__name__) from None
        except (AttributeError, KeyError, TypeError, ValueError, AssertionError) as error:
            # The library meets its own closed connection.
            raise LinkError(f"the connection is closed: {type(error).__name__}: {error}") from None
