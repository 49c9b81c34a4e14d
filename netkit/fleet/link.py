"""One connection to a virtual host of the broker, as a site's worker and the coordinator use it.

Nothing here reconnects or retries: whatever goes wrong is a LinkError, after which the link is closed and a new one is
opened. Not thread-safe.
"""

import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from netkit.errors import Problem
from netkit.fleet.rabbitmq import (
    ANSWER_LIMITS,
    ANSWERS,
    ENDED_LIMITS,
    JOBS,
    ROUND_LIMITS,
    STATUS,
    answer_queue,
    ended_round_queue,
    round_queue,
)
from netkit.fleet.settings import BrokerSettings, FleetError
from netkit.fleet.signing import Credentials

try:
    import amqp
    from amqp.exceptions import AccessRefused, AMQPError, ConsumerCancelled, NotFound, PreconditionFailed
except ImportError:
    raise FleetError(
        Problem("the library of the broker is not installed", "pip install 'netkit-fabric[fleet]'")
    ) from None

HEARTBEAT_S = 30
CONNECT_S = 15
CONFIRM_S = 60
"""How long the broker may take to answer a request, or to confirm a message."""
UNACKNOWLEDGED_MS = 30_000
"""How long TCP waits for the other end before the connection counts as broken."""
RETRY_S = 1.0


class LinkError(Exception):
    """The connection to the broker is broken, or the broker refused something."""


class RoundTakenError(LinkError):
    """Another coordinator holds a round."""


class RoundEndingError(LinkError):
    """Workers may still carry out a round that its coordinator has given up."""


class InUseError(LinkError):
    """Another connection is the only one that may consume a queue."""


class UnroutableError(Exception):
    """No queue waits for a message."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message, and what acknowledges it."""

    body: bytes
    tag: int


@dataclass(frozen=True, slots=True)
class _Sent:
    """A message that the broker has not confirmed."""

    message: Any
    exchange: str
    key: str


class BrokerLink:
    """An open connection."""

    def __init__(
        self,
        broker: BrokerSettings,
        vhost: str,
        user: str,
        credentials: Credentials,
        *,
        patience_s: float | None = None,
    ) -> None:
        """Connect; `patience_s` is how long the broker may take to answer, by default CONFIRM_S."""
        self._received: deque[Received] = deque()
        self._consumers: dict[str, Any] = {}
        """Queue → the tag of its consumer."""
        self._tag = 0
        self._unconfirmed: dict[int, _Sent] = {}
        self._rejected: list[_Sent] = []
        self.unroutable: set[str] = set()
        """Routing keys that no queue was bound to when a message was sent there last."""
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
        # The library waits for answers without a limit; a broker that hangs is as good as none.
        self._connection.sock.settimeout(patience_s or CONFIRM_S)
        self._channel = self._guarded(self._connection.channel)
        self._channel.events["basic_return"].add(self._on_return)
        self._channel.events["basic_ack"].add(self._on_confirmed)
        self._channel.events["basic_nack"].add(partial(self._on_confirmed, is_rejected=True))
        self._guarded(self._channel.confirm_select)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # it may be broken in any way
            self._connection.close()

    def publish(self, exchange: str, key: str, body: bytes, *, until_s: float = 0, lasts_s: float = 0) -> None:
        """Send a message, and wait until the broker has it; UnroutableError if no queue waits for it."""
        self.unroutable.discard(key)
        self.send(exchange, key, body, lasts_s=lasts_s)
        self.settle(until_s=until_s)
        if key in self.unroutable:
            raise UnroutableError(f"no queue is bound to {exchange} {key}")

    def send(self, exchange: str, key: str, body: bytes, *, lasts_s: float = 0) -> None:
        """Send a message without waiting; the broker drops it when nobody has received it after `lasts_s`, if given."""
        lasting = {"expiration": str(round(lasts_s * 1000))} if lasts_s else {}
        message = amqp.Message(body, content_type="application/octet-stream", delivery_mode=2, **lasting)
        self._send(_Sent(message, exchange, key))

    def _send(self, sent: "_Sent") -> None:
        self._tag += 1
        self._unconfirmed[self._tag] = sent
        where = {"exchange": sent.exchange, "routing_key": sent.key, "mandatory": True}
        self._guarded(lambda: self._channel.basic_publish(sent.message, **where, timeout=CONFIRM_S))

    def settle(self, most: int = 0, until_s: float = 0) -> None:
        """Wait until the broker has confirmed all messages but `most`.

        Messages for a queue that is full are sent again until `until_s`, as time.time() counts.
        """
        deadline_s = time.monotonic() + CONFIRM_S
        while len(self._unconfirmed) + len(self._rejected) > most:
            if self._rejected and not self._unconfirmed:
                if time.time() > until_s:
                    raise LinkError(f"the queue of {self._rejected[0].exchange} {self._rejected[0].key} is full")
                self.wait(RETRY_S)
                deadline_s = time.monotonic() + CONFIRM_S
                again, self._rejected = self._rejected, []
                for sent in again:
                    self._send(sent)
            elif time.monotonic() > deadline_s:
                raise LinkError(f"the broker has not confirmed a message for {CONFIRM_S} s")
            else:
                self.wait(RETRY_S)

    def _on_return(self, _: Exception, __: str, key: str, ___: Any) -> None:
        self.unroutable.add(key)

    def _on_confirmed(self, tag: int, is_multiple: bool, *, is_rejected: bool = False) -> None:
        tags = [one for one in self._unconfirmed if one <= tag] if is_multiple else [tag]
        for one in tags:
            sent = self._unconfirmed.pop(one)
            if is_rejected:
                self._rejected.append(sent)

    def consume(self, queue: str, prefetch: int) -> None:
        """Have the broker deliver messages of a queue, with at most this many unacknowledged ones at a time."""
        self._guarded(lambda: self._channel.basic_qos(0, prefetch, a_global=False))
        self._consume(queue, callback=self._on_message)

    def _consume(self, queue: str, **options: Any) -> None:
        self._consumers[queue] = self._guarded(lambda: self._channel.basic_consume(queue, **options))

    def cancel(self, queue: str) -> None:
        """End what `consume` began."""
        if tag := self._consumers.pop(queue, None):
            self._guarded(lambda: self._channel.basic_cancel(tag))

    def occupy(self, queue: str) -> None:
        """Become the only consumer of a queue until this link closes; InUseError if there is another one."""
        self._consume(queue, exclusive=True)

    def consumers(self, queue: str) -> int:
        """Ask the broker how many consumers a queue has; this also proves that the link is alive."""
        return int(self._guarded(lambda: self._channel.queue_declare(queue, passive=True)).consumer_count)

    def exists(self, queue: str) -> bool:
        return self._consumers_if_any(queue) is not None

    def has_consumer(self, queue: str) -> bool:
        """Whether a queue exists and somebody consumes it."""
        return bool(self._consumers_if_any(queue))

    def _consumers_if_any(self, queue: str) -> int | None:
        """Return how many consume a queue, None if there is none; the answer may end the channel, so it has its own."""
        channel = self._guarded(self._connection.channel)
        try:
            return int(channel.queue_declare(queue, passive=True).consumer_count)
        except NotFound:
            return None
        except (AMQPError, OSError) as error:
            raise LinkError(str(error) or type(error).__name__) from None
        finally:
            with suppress(Exception):
                channel.close()

    def declare(self, name: str, bound_to: str = "", **arguments: Any) -> None:
        """Declare a queue that lasts, bound to an exchange by its name where one is given."""
        self._guarded(lambda: self._channel.queue_declare(name, durable=True, auto_delete=False, arguments=arguments))
        if bound_to:
            self._guarded(lambda: self._channel.queue_bind(name, bound_to, name))

    def _on_message(self, message: Any) -> None:
        body = message.body.encode() if isinstance(message.body, str) else bytes(message.body)
        self._received.append(Received(body, message.delivery_tag))

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
        self.delete(answer_queue(run))

    def delete(self, queue: str) -> None:
        """Delete a queue; its consumer is ended before, since the library takes its end for an error."""
        self.cancel(queue)
        self._guarded(lambda: self._channel.queue_delete(queue))

    def hold_round(self, name: str, run: str) -> None:
        """Declare the queue of a round, and keep it from expiring; RoundTakenError if another run has declared it.

        RabbitMQ refuses to declare a queue again with another limit, so the number of the run is one. RoundEndingError
        if workers may still carry out jobs of a round that was given up.
        """
        if not self._is_declared(ended_round_queue(name), run, ENDED_LIMITS):
            raise RoundEndingError("jobs of a round that was given up may still run")
        self.delete(ended_round_queue(name))
        if not self._is_declared(round_queue(name), run, ROUND_LIMITS):
            raise RoundTakenError(name)
        self._consume(round_queue(name), no_ack=True)

    def release_round(self, name: str, run: str, *, is_over: bool) -> None:
        """Let others begin the round: now, or if its jobs may still run, when workers have noticed that it is over.

        Any link may do this, for a run that may have declared the round; one of another run stays.
        """
        if not self._is_declared(round_queue(name), run, ROUND_LIMITS):
            return
        if not is_over:
            self._is_declared(ended_round_queue(name), run, ENDED_LIMITS)
        self.delete(round_queue(name))

    def _is_declared(self, queue: str, run: str, limits: Mapping[str, int]) -> bool:
        """Declare a queue of a run; false if another run has declared it, and then the link is of no further use."""
        arguments = {**limits, "x-max-length": int(run[:15], 16)}

        def declare() -> bool:
            try:
                self._channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)
            except PreconditionFailed:
                return False
            return True

        return bool(self._guarded(declare))

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
        except AccessRefused as error:
            if "exclusive" in error.reply_text:
                raise InUseError(error.reply_text) from None
            raise LinkError(f"the broker refuses: {error.reply_text}") from None
        except LinkError:
            raise
        except ConsumerCancelled:  # its text is the tag of the consumer
            raise LinkError("a queue that it consumed was deleted") from None
        except AMQPError as error:
            raise LinkError(getattr(error, "reply_text", "") or str(error) or type(error).__name__) from None
        except OSError as error:
            raise LinkError(error.strerror or str(error) or type(error).__name__) from None
        except (AttributeError, KeyError, TypeError, ValueError, AssertionError) as error:
            # The library meets its own closed connection.
            raise LinkError(f"the connection is closed: {type(error).__name__}: {error}") from None
