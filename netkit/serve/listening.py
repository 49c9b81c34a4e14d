"""The HTTP server: limits on connections and time, and a socket that is bound before anything else runs."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from netkit.errors import Problem, UsageError
from netkit.serve.guard import is_address

MOST_CONNECTIONS = 128
ASK_S = 10.0
"""How long a client may take to send a request."""
ANSWER_S = 60.0
"""How long it may take to send the rest and to read the answer."""
IDLE_S = 15
MOST_HEAD_BYTES = 16_384
DRAIN_S = 3


class BoundedProtocol(H11Protocol):
    """A connection that is closed when its client is too slow, or there are too many."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._arm(ASK_S)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request, but not for long."""
        super().on_response_complete()
        self._arm(ANSWER_S if self.transport.get_write_buffer_size() else IDLE_S + ASK_S)

    def _arm(self, left_s: float, cycle: object = None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(left_s, self._expire, cycle)

    def _expire(self, before: object) -> None:
        """Close the connection, unless a request came in meanwhile: it gets its own time, once."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and self.cycle is not before:
            self._arm(ANSWER_S, self.cycle)
        else:
            self.transport.abort()


class Server(uvicorn.Server):
    """A server that leaves signals to its caller, and limits TLS handshakes to the time of a request."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on bound sockets."""
        loop, config = asyncio.get_running_loop(), self.config
        longest_s = ASK_S if config.ssl else None

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(config, self.server_state, self.lifespan.state)

        self.servers = [
            await loop.create_server(
                protocol, sock=one, ssl=config.ssl, backlog=MOST_CONNECTIONS, ssl_handshake_timeout=longest_s
            )
            for one in sockets or ()
        ]
        self.started = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle no signals."""
        yield


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address to listen on."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return self.host == "localhost" or (is_address(self.host) and ip_address(self.host).is_loopback)

    @classmethod
    def of(cls, text: str, certificate: Path | None, key: Path | None) -> "ListenAddress":
        """Parse ADDRESS:PORT."""
        host, _, port = text.rpartition(":")
        if not host or not port.isdigit() or not int(port) < 65_536:
            raise UsageError(
                Problem(f"--listen {text!r} is not an address", "use ADDRESS:PORT, such as 127.0.0.1:8400")
            )
        if key is not None and certificate is None:
            raise UsageError(Problem("--key needs a certificate", "give --certificate too"))
        return cls(host.strip("[]"), int(port), certificate, key)

    def opened(self) -> socket.socket:
        """Bind the socket: a port in use is reported before anything runs."""
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            found = socket.create_server((self.host, self.port), family=family, backlog=MOST_CONNECTIONS)
        except OSError as error:
            what = f"cannot listen on {self.host}:{self.port}: {(error.strerror or str(error)).lower()}"
            raise UsageError(Problem(what, "end what uses it, or choose another address with --listen")) from None
        found.setblocking(False)
        return found

    def bound_to(self, listening: socket.socket) -> "ListenAddress":
        """The address with the port that the system chose, for port 0."""
        return replace(self, port=listening.getsockname()[1])

    def check_certificate(self) -> None:
        """Refuse an unusable certificate."""
        if self.certificate is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            what = f"the certificate cannot be used: {error.strerror or error}"
            remedy = "give a certificate and its key as PEM files"
            raise UsageError(Problem(what, remedy, file=str(self.certificate))) from None


def server(app: ASGIApp, place: ListenAddress) -> Server:
    """Configure the server, without starting it."""
    tls: dict[str, Any] = {"ssl_certfile": place.certificate, "ssl_keyfile": place.key} if place.certificate else {}
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # do not log mistakes of clients
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=DRAIN_S,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        **tls,
    )
    return Server(config)
