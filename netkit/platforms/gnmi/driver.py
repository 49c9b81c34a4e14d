"""A switch whose state is read by gNMI: Subscribe ONCE for a check, STREAM for a watch; and its gRPC channel.

Only pygnmi's protocol buffers are used: its client trusts whatever certificate it sees first.
"""

import base64
import hashlib
import hmac
import importlib
import ipaddress
import os
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from netkit.errors import AccessError, Problem
from netkit.facts import Sample
from netkit.platforms.agents import GnmiDialect, agents_of
from netkit.platforms.gnmi import facts, message
from netkit.platforms.gnmi.message import (
    CAPABILITIES,
    GnmiLogin,
    GnmiQuery,
    GnmiServer,
    Update,
    format_updates,
    parse_command,
    parse_query,
)
from netkit.platforms.view import Reply, ViewSubject


class UntrustedError(Exception):
    """The server does not present the pinned certificate."""


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """A trusted certificate, and the name in it that gRPC compares."""

    certificate: bytes
    name: str


def pinned_certificate(server: GnmiServer) -> ServerCertificate:
    """Fetch the certificate of a server; raise UntrustedError if it is not the pinned one, OSError if none comes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])  # some servers close connections without it
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # its fingerprint is compared instead
    with (
        socket.create_connection((server.host, server.port), server.patience_s) as tcp,
        context.wrap_socket(tcp) as tls,
    ):
        found = tls.getpeercert(binary_form=True) or b""
    if not server.certificate:
        raise UntrustedError("its certificate is not trusted yet: run netkit trust")
    if not hmac.compare_digest(hashlib.sha256(found).hexdigest(), server.certificate.lower()):
        raise UntrustedError("its certificate is not the trusted one: find out why it changed, then run netkit trust")
    return ServerCertificate(ssl.DER_cert_to_PEM_cert(found).encode("ascii"), _name(found))


def _name(certificate: bytes) -> str:
    """A subject name; gRPC refuses a certificate without one."""
    x509: Any = importlib.import_module("cryptography.x509")
    found = x509.load_der_x509_certificate(certificate)
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return str(next(iter([*names.get_values_for_type(x509.DNSName), *names.get_values_for_type(x509.IPAddress)])))
    except (x509.ExtensionNotFound, StopIteration):
        common = found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return str(common[0].value) if common else ""


LIBRARY = ("grpc", "pygnmi.spec.v080.gnmi_pb2", "pygnmi.spec.v080.gnmi_pb2_grpc")
OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
"""No proxy, no DNS lookups of service configuration, no shared connections, and keepalives to notice a dead one."""
NAME_OPTION = "grpc.ssl_target_name_override"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
ENDED = "the connection was closed"
NO_ANSWER = "no answer"
REFUSED = "connection refused"
NO_LOGIN = "the user or password is wrong, or the user may not read this"
MISSING = "the server does not support this request"
REASONS = {
    "UNAUTHENTICATED": NO_LOGIN,
    "PERMISSION_DENIED": NO_LOGIN,
    "DEADLINE_EXCEEDED": NO_ANSWER,
    "CANCELLED": ENDED,
    "UNIMPLEMENTED": MISSING,
    "NOT_FOUND": MISSING,
    "INVALID_ARGUMENT": "the server does not accept this request",
}
EXPLAINED = {"UNIMPLEMENTED", "NOT_FOUND", "INVALID_ARGUMENT"}
"""Codes for which the server's own details help."""
LONGEST_DETAILS = 200
BROKEN = {"refused": REFUSED, "handshak": "the TLS handshake failed"}
"""Part of the details of gRPC's UNAVAILABLE → reason."""


class MissingLibraryError(Exception):
    """The gNMI library is not installed."""


class GnmiError(Exception):
    """A request failed; the text gives the reason."""


class GnmiConnection:
    """A connection to a server; it may be closed from any thread, which ends requests in progress."""

    def __init__(self, server: GnmiServer, login: GnmiLogin) -> None:
        self._server, self._login = server, login
        self._grpc, self._messages, self._stubs = library()
        self._channel: Any = None
        self._stub: Any = None
        self._calls: set[Any] = set()
        self._is_ended = False
        self._lock = threading.Lock()

    def begin(self) -> str:
        """Connect, test the login, and return the gNMI version of the server; raises GnmiError."""
        with self._refusals():
            channel = self._made_channel()
            with self._lock:
                self._channel, self._stub = channel, self._stubs.gNMIStub(channel)
            capabilities = self._messages.CapabilityRequest()
            timeout_s = self._server.patience_s
            call = self._register(self._stub.Capabilities.future(capabilities, **self._auth(), timeout=timeout_s))
            return str(call.result().gNMI_version)

    def once(self, query: GnmiQuery) -> tuple[Update, ...]:
        """Read everything below a path; raises GnmiError."""
        found: list[Update] = []
        paths = message.Paths()
        for notification in self._notifications(message.request(self._messages, (query,)), self._server.patience_s):
            if notification is None:
                break
            found += paths.updates(notification)
        return tuple(found)

    def stream(self, queries: Sequence[GnmiQuery], interval_s: float) -> Iterator[tuple[Update, ...]]:
        """Yield the updates of a subscription; raises GnmiError when the stream ends."""
        paths = message.Paths()
        for notification in self._notifications(message.request(self._messages, queries, interval_s), None):
            if notification is not None:
                yield tuple(paths.updates(notification))
        raise GnmiError("the server ended the stream")

    def close(self) -> None:
        with self._lock:
            self._is_ended = True
            calls, channel = tuple(self._calls), self._channel
        for call in calls:
            call.cancel()
        if channel is not None:
            channel.close()

    def _notifications(self, request: Any, timeout_s: float | None) -> Iterator[Any]:
        """Yield notifications, and None for sync_response, when all data was sent once."""
        done = threading.Event()

        def requests() -> Iterator[Any]:
            yield request
            done.wait()  # a half-closed request stream makes some servers end the subscription

        with self._refusals():
            call = self._register(self._stub.Subscribe(requests(), **self._auth(), timeout=timeout_s))
            try:
                for response in call:
                    yield response.update if response.HasField("update") else None
            finally:
                done.set()
                call.cancel()
                with self._lock:
                    self._calls.discard(call)

    def _register(self, call: Any) -> Any:
        """Let `close` cancel a call; cancel it at once if the connection is closed already."""
        with self._lock:
            self._calls.add(call)
            is_ended = self._is_ended
        if is_ended:
            call.cancel()
        return call

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Convert every failure to GnmiError."""
        try:
            yield
        except self._grpc.FutureCancelledError:
            raise GnmiError(ENDED) from None
        except self._grpc.RpcError as error:
            raise GnmiError(_reason(error)) from None
        except UntrustedError as error:
            raise GnmiError(str(error)) from None
        except ssl.SSLError:
            what = "the server does not use TLS: turn it on there"
            raise GnmiError(
                f"{what}; only if it must be, set shield: none, which sends the password in clear"
            ) from None
        except TimeoutError:
            raise GnmiError(NO_ANSWER) from None
        except ConnectionRefusedError:
            raise GnmiError(REFUSED) from None
        except OSError as error:
            raise GnmiError(error.strerror or str(error)) from None
        except ValueError:  # gRPC raises it for a channel that was closed meanwhile
            raise GnmiError(ENDED) from None

    def _auth(self) -> dict[str, Any]:
        login = self._login
        if not login.is_basic:
            return {"metadata": (("username", login.user), ("password", login.password))}
        encoded = base64.b64encode(f"{login.user}:{login.password}".encode()).decode("ascii")
        return {"metadata": (("authorization", f"Basic {encoded}"),)}

    def _made_channel(self) -> Any:
        server, target = self._server, _target(self._server)
        if server.shield == "none":
            return self._grpc.insecure_channel(target, options=OPTIONS)
        if server.shield == "authorities":
            certificates, name = Path(ssl.get_default_verify_paths().cafile or AUTHORITIES).read_bytes(), server.host
        else:
            pinned = pinned_certificate(server)
            certificates, name = pinned.certificate, pinned.name
        credentials = self._grpc.ssl_channel_credentials(certificates)
        return self._grpc.secure_channel(target, credentials, options=(*OPTIONS, (NAME_OPTION, name)))


def library() -> tuple[Any, Any, Any]:
    """Import gRPC, the gNMI messages and the gNMI stubs; raises MissingLibraryError."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # netkit reports errors itself
    try:
        grpc, messages, stubs = (importlib.import_module(name) for name in LIBRARY)
    except ImportError as error:
        raise MissingLibraryError(str(error)) from None
    return grpc, messages, stubs


def _target(server: GnmiServer) -> str:
    """Resolve the host here: gRPC has its own resolver, which ignores the system's."""
    host, port = server.host, server.port
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return f"ipv6:[{address[0]}]:{port}" if family == socket.AF_INET6 else f"ipv4:{address[0]}:{port}"


def _reason(error: Any) -> str:
    code = error.code().name
    details = "".join(letter for letter in str(error.details() or "") if letter.isprintable())[:LONGEST_DETAILS]
    if code == "UNAVAILABLE":
        return next((reason for sign, reason in BROKEN.items() if sign in details.lower()), "the connection was lost")
    reason = REASONS.get(code, f"gRPC reports {code}")
    return f"{reason}: {details}" if code in EXPLAINED and details else reason


QUIET_PART = 0.2
"""A sample is complete after this fraction of an interval without an update."""
LONGEST_QUIET_S = 0.3
MISSED = 3
"""The stream counts as dead after this many intervals without an update, or after the time limit if that is longer."""
REPEATED = 1.5
"""After this many intervals without an update a counter is unchanged, if the same counter of other ports is updated."""
LONGEST_WAIT = 2
"""How many intervals to wait for the counters that came last in the sample before."""
MOST_WAITING = 10_000
"""Notifications received and not processed yet."""
SHORTEST_S = 1.0
"""SONiC refuses a shorter interval, and no switch updates its counters much more often."""
Key = tuple[str, str]
"""The server's name of a count, and the place."""
Deliver = Callable[[Sample], None]
Piece = tuple[float, tuple[Update, ...]]
"""Time of arrival, in seconds of the epoch, and the updates."""
NextPiece = Callable[[float], Piece | None]
"""Time limit → the next updates; None if none arrive in time."""


class GnmiStreamReader:
    """Reads a stream in its own thread, so that its consumer can wait with a time limit."""

    def __init__(self, connection: GnmiConnection, queries: Sequence[GnmiQuery], interval_s: float) -> None:
        self._connection, self._queries, self._interval_s = connection, queries, interval_s
        self._received: queue.Queue[Piece | GnmiError] = queue.Queue(MOST_WAITING)
        self._is_over = False
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._connection.close()
        self._thread.join()

    def _read(self) -> None:
        try:
            for updates in self._connection.stream(self._queries, self._interval_s):
                self._put((time.time(), updates))
        except GnmiError as error:
            self._put(error)

    def _put(self, found: Piece | GnmiError) -> None:
        """Queue a piece; a full queue blocks the stream."""
        while not self._is_over:
            with suppress(queue.Full):
                self._received.put(found, timeout=LONGEST_QUIET_S)
                return

    def next(self, timeout_s: float) -> Piece | None:
        """The next updates; None if none arrive in time. Raises GnmiError when the stream has ended."""
        try:
            found = self._received.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(found, GnmiError):
            raise found
        return found


class Samples:
    """Assembles whole samples from the updates of a stream, which arrive in pieces."""

    def __init__(self, subject: ViewSubject, names: Mapping[str, str], deliver: Deliver, interval_s: float) -> None:
        self._platform, self._deliver, self._interval_s = subject.platform, deliver, interval_s
        self._counting = facts.Counting(subject.platform, names, subject.ports)
        self._quiet_s = min(interval_s * QUIET_PART, LONGEST_QUIET_S)
        self._found: dict[Key, int] = {}
        self._updated_s: dict[Key, float] = {}
        self._fresh: set[Key] = set()
        self._leading: frozenset[Key] = frozenset()
        """The counters that came last in the sample before: once one of them comes again, all others have come too."""
        self._began_s: float | None = None
        self._last_s = 0.0
        self._delivered_s = 0.0

    def fill(self, next_piece: NextPiece, stop: threading.Event, patience_s: float) -> None:
        """Deliver samples until `stop` is set; raises GnmiError after too long without an update."""
        patience_s = max(patience_s, MISSED * self._interval_s)
        last_update_s = time.monotonic()
        while not stop.is_set():
            piece = next_piece(self._quiet_s)
            if piece is not None:
                last_update_s = time.monotonic()
                self._take(*piece)
            elif time.monotonic() - last_update_s > patience_s:
                raise GnmiError(f"no update for {patience_s:g} s")
            else:
                self._complete()

    def _take(self, at_s: float, updates: tuple[Update, ...]) -> None:
        if self._began_s is not None and not 0 <= at_s - self._began_s <= self._interval_s:
            self._complete()  # the server never pauses, or the clock was set back
        self._began_s = at_s if self._began_s is None else self._began_s
        self._last_s = at_s
        counts = dict(self._counting.counts(updates))
        self._found.update(counts)
        self._updated_s.update(dict.fromkeys(counts, at_s))
        self._fresh.update(counts)

    def _complete(self) -> None:
        """Deliver the sample if it is whole; updates soon after a sample were late, and count for the next one."""
        if self._began_s is None:
            return
        past_s = self._last_s - self._delivered_s
        if 0 <= past_s < self._interval_s / 2:
            return
        # each sample ends with the same subscription, so that the counters in it are always equally old
        is_led = not self._leading or not self._leading.isdisjoint(self._fresh)
        if not is_led and 0 <= past_s < LONGEST_WAIT * self._interval_s:
            return
        counters = facts.counters_of(self._platform, self._found, self._fresh | self._unchanged())
        self._began_s, self._delivered_s = None, self._last_s
        self._leading = frozenset(key for key in self._fresh if self._last_s - self._updated_s[key] <= self._quiet_s)
        self._fresh.clear()
        if counters:
            self._deliver(Sample(self._last_s, counters))

    def _unchanged(self) -> set[Key]:
        """Counters that the server omits as unchanged: it updates the same ones of other ports."""
        leaves = {leaf for leaf, _ in self._fresh}
        least_s, most_s = REPEATED * self._interval_s, MISSED * self._interval_s
        return {
            key
            for key, updated_s in self._updated_s.items()
            if key[0] in leaves and least_s <= self._last_s - updated_s < most_s
        }


INSTALL = "install netkit with its extra gnmi: pip install '.[gnmi]' in its checkout"
REMEDY = "check gnmi in access.yaml, and whether the switch runs a gNMI server at this address and port"


def require_library(device: str) -> None:
    """Raise AccessError if the gNMI library is not installed: a permanent failure, for every device."""
    try:
        library()
    except MissingLibraryError as error:
        raise _no_library(device, error) from None


def _no_library(device: str, error: MissingLibraryError) -> AccessError:
    return AccessError(Problem(f"{device}: gNMI needs a library that is not installed: {error}", INSTALL))


class GnmiViewer:
    """Reads what is below paths of a gNMI server, once or as a stream."""

    def __init__(self, device: str, server: GnmiServer, login: GnmiLogin, paths: Sequence[str] = ()) -> None:
        self._device, self._server, self._login, self._paths = device, server, login, tuple(paths)
        self._connection: GnmiConnection | None = None
        self._version = ""

    def open(self) -> None:
        """Connect and test the login; raises AccessError."""
        login = self._login
        sent = login.user if login.is_basic else f"{login.user}{login.password}"
        if not (sent.isascii() and sent.isprintable()):  # gRPC metadata is printable ASCII
            self._fail("the user or password holds characters other than printable ASCII, which gNMI cannot send")
        try:
            self._connection = GnmiConnection(self._server, login)
            self._version = self._connection.begin()
        except MissingLibraryError as error:
            raise _no_library(self._device, error) from None
        except GnmiError as error:
            self.close()
            self._fail(str(error))

    def close(self) -> None:
        """Close the connection, which ends requests and streams in progress."""
        if self._connection is not None:
            self._connection.close()

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Read what is below each path; after a timeout, skip the rest."""
        replies: list[Reply] = []
        for command in commands:
            is_silent = any(reply.failure == NO_ANSWER for reply in replies)
            replies.append(
                Reply("", "not queried: another path was not answered") if is_silent else self._reply(command)
            )
        return tuple(replies)

    def _reply(self, command: str) -> Reply:
        if command == CAPABILITIES:
            return Reply(f"{self._version}\n", at_s=time.time())
        query = parse_command(command)
        if query is None:
            return Reply("", "not a gNMI query")
        try:
            return Reply(format_updates(self._connected().once(query)), at_s=time.time())
        except GnmiError as error:
            return Reply("", str(error))

    def stream(self, subject: ViewSubject, interval_s: float, deliver: Deliver, stop: threading.Event) -> None:
        """Deliver a sample of the counters each interval until `stop` is set; raises AccessError if the stream ends."""
        known = agents_of(subject.platform)
        own = known.gnmi if known else None
        paths = self._paths or (own.streamed if own else ())
        queries = [query for query in map(parse_query, paths) if query is not None]
        if not queries:
            self._fail("netkit knows no counter paths of this platform: set paths under gnmi in access.yaml")
        try:
            names, interval_s = self._port_aliases(own), max(interval_s, SHORTEST_S)
            with GnmiStreamReader(self._connected(), queries, interval_s) as reader:
                Samples(subject, names, deliver, interval_s).fill(reader.next, stop, self._server.patience_s)
        except GnmiError as error:
            if not stop.is_set():
                self._fail(str(error))

    def _port_aliases(self, own: GnmiDialect | None) -> Mapping[str, str]:
        database = own.database if own else None
        query = parse_query(database.ports) if database else None
        return database.aliases(self._connected().once(query)) if database and query else {}

    def running_files(self) -> Mapping[str, str | None]:
        """Raise AccessError: netkit does not read configurations by gNMI."""
        self._fail("netkit reads no configuration by gNMI")

    def os_version(self) -> str:
        """Raise AccessError: the version is only needed along with the configuration."""
        self._fail("netkit reads no configuration by gNMI")

    def _connected(self) -> GnmiConnection:
        if self._connection is None:
            self._fail("the connection is closed")
        return self._connection

    def _fail(self, what: str) -> NoReturn:
        where = f"{self._server.host} port {self._server.port}"
        raise AccessError(Problem(f"{self._device}: gNMI at {where}: {what}", REMEDY))
