"""Talking to one gNMI server: a gRPC channel of its own, questions that are answered once, and streams.

The messages are pygnmi's; its client is not used, for it trusts whatever certificate it is shown first.
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
from typing import Any, Self

from netkit.facts import Sample
from netkit.platforms.gnmi import message
from netkit.platforms.gnmi.facts import count
from netkit.platforms.gnmi.message import GnmiLogin, GnmiQuery, GnmiServer, Update
from netkit.platforms.view import ViewSubject


class UntrustedError(Exception):
    """The server does not show what it is trusted by; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """What is trusted: a certificate, and the name in it that gRPC compares."""

    certificate: bytes
    name: str


def shown(place: GnmiServer) -> ServerCertificate:
    """Return the pinned certificate as the server shows it. UntrustedError for another, OSError when none comes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])  # some servers hang up on those who do not speak it
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # its fingerprint is compared instead
    with (
        socket.create_connection((place.host, place.port), place.patience_s) as line,
        context.wrap_socket(line) as shielded,
    ):
        found = shielded.getpeercert(binary_form=True) or b""
    if not place.certificate:
        raise UntrustedError("its certificate is not trusted yet")
    if not hmac.compare_digest(hashlib.sha256(found).hexdigest(), place.certificate.lower()):
        raise UntrustedError("its certificate is not the trusted one")
    return ServerCertificate(ssl.DER_cert_to_PEM_cert(found).encode("ascii"), _name(found))


def _name(certificate: bytes) -> str:
    """Return a name the certificate is made out to; gRPC takes none without."""
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
"""Straight to the device, by its address; no connection is shared; one that falls silent is noticed."""
NAME_OPTION = "grpc.ssl_target_name_override"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
ENDED = "the connection was ended"
SILENT = "no answer"
REFUSED = "nobody listens there"
NO_LOGIN = "it takes no such user and password, or the user may not read this"
LACKS = "it does not have this"
REASONS = {
    "UNAUTHENTICATED": NO_LOGIN,
    "PERMISSION_DENIED": NO_LOGIN,
    "DEADLINE_EXCEEDED": SILENT,
    "CANCELLED": ENDED,
    "UNIMPLEMENTED": LACKS,
    "NOT_FOUND": LACKS,
    "INVALID_ARGUMENT": "it does not understand this",
}
EXPLAINED = {"UNIMPLEMENTED", "NOT_FOUND", "INVALID_ARGUMENT"}
"""What the server itself says more about than netkit can."""
LONGEST_DETAILS = 200
BROKEN = {"refused": REFUSED, "handshak": "it does not speak TLS as it should"}
"""What gRPC says of a connection that cannot be made → what it means."""


class MissingLibraryError(Exception):
    """What speaks gNMI is not installed."""


class RefusedStreamError(Exception):
    """A server did not answer; the text says why."""


class GnmiConnection:
    """A connection to a server. It may be closed from any thread; what is being asked ends then."""

    def __init__(self, place: GnmiServer, login: GnmiLogin) -> None:
        self._place, self._login = place, login
        self._grpc, self._messages, self._stubs = library()
        self._channel: Any = None
        self._stub: Any = None
        self._calls: set[Any] = set()
        self._is_ended = False
        self._lock = threading.Lock()

    def begin(self) -> str:
        """Connect, and return what the server speaks; raises RefusedStreamError when it does not let in."""
        with self._refusals():
            channel = self._made_channel()
            with self._lock:
                self._channel, self._stub = channel, self._stubs.gNMIStub(channel)
            asked = self._messages.CapabilityRequest()
            call = self._begun(self._stub.Capabilities.future(asked, **self._who(), timeout=self._place.patience_s))
            return str(call.result().gNMI_version)

    def once(self, question: GnmiQuery) -> tuple[Update, ...]:
        """Return all that is below a path; raises RefusedStreamError."""
        found: list[Update] = []
        paths = message.Paths()
        for notification in self._told(message.request(self._messages, (question,)), self._place.patience_s):
            if notification is None:
                break
            found += paths.updates(notification)
        return tuple(found)

    def stream(self, questions: Sequence[GnmiQuery], interval_s: float) -> Iterator[tuple[Update, ...]]:
        """Yield what the server tells, for as long as it does; raises RefusedStreamError when that ends."""
        paths = message.Paths()
        for notification in self._told(message.request(self._messages, questions, interval_s), None):
            if notification is not None:
                yield tuple(paths.updates(notification))
        raise RefusedStreamError("it ended the stream")

    def close(self) -> None:
        """Hang up."""
        with self._lock:
            self._is_ended = True
            calls, channel = tuple(self._calls), self._channel
        for call in calls:
            call.cancel()
        if channel is not None:
            channel.close()

    def _told(self, request: Any, patience_s: float | None) -> Iterator[Any]:
        """Yield notifications, and None where the server has told everything once."""
        done = threading.Event()

        def requests() -> Iterator[Any]:
            yield request
            done.wait()  # servers take a caller who has no more to say for one who has gone

        with self._refusals():
            call = self._begun(self._stub.Subscribe(requests(), **self._who(), timeout=patience_s))
            try:
                for response in call:
                    yield response.update if response.HasField("update") else None
            finally:
                done.set()
                call.cancel()
                with self._lock:
                    self._calls.discard(call)

    def _begun(self, call: Any) -> Any:
        with self._lock:
            self._calls.add(call)
            is_ended = self._is_ended
        if is_ended:
            call.cancel()
        return call

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Tell whatever goes wrong as a refusal."""
        try:
            yield
        except self._grpc.FutureCancelledError:
            raise RefusedStreamError(ENDED) from None
        except self._grpc.RpcError as error:
            raise RefusedStreamError(_reason(error)) from None
        except UntrustedError as error:
            raise RefusedStreamError(f"{error}: see netkit trust") from None
        except ssl.SSLError:
            raise RefusedStreamError("it speaks no TLS there; if it must be so, say shield: none") from None
        except TimeoutError:
            raise RefusedStreamError(SILENT) from None
        except ConnectionRefusedError:
            raise RefusedStreamError(REFUSED) from None
        except OSError as error:
            raise RefusedStreamError(error.strerror or str(error)) from None
        except ValueError:  # gRPC's own, of a channel that was closed meanwhile
            raise RefusedStreamError(ENDED) from None

    def _who(self) -> dict[str, Any]:
        login = self._login
        if not login.is_basic:
            return {"metadata": (("username", login.user), ("password", login.password))}
        word = base64.b64encode(f"{login.user}:{login.password}".encode()).decode("ascii")
        return {"metadata": (("authorization", f"Basic {word}"),)}

    def _made_channel(self) -> Any:
        place, target = self._place, _target(self._place)
        if place.shield == "none":
            return self._grpc.insecure_channel(target, options=OPTIONS)
        if place.shield == "authorities":
            certificates, name = Path(ssl.get_default_verify_paths().cafile or AUTHORITIES).read_bytes(), place.host
        else:
            trusted = shown(place)
            certificates, name = trusted.certificate, trusted.name
        shield = self._grpc.ssl_channel_credentials(certificates)
        return self._grpc.secure_channel(target, shield, options=(*OPTIONS, (NAME_OPTION, name)))


def library() -> tuple[Any, Any, Any]:
    """Return what speaks gNMI: gRPC, its messages, and its calls; MissingLibraryError where they are not installed."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it writes to the terminal what is told better here
    try:
        grpc, messages, stubs = (importlib.import_module(name) for name in LIBRARY)
    except ImportError as error:
        raise MissingLibraryError(str(error)) from None
    return grpc, messages, stubs


def _target(place: GnmiServer) -> str:
    """Return an address for gRPC, which would look names up by its own lights."""
    host = place.host
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return f"ipv6:[{host}]:{place.port}" if ":" in host else f"ipv4:{host}:{place.port}"
    family, _, _, _, address = socket.getaddrinfo(host, place.port, type=socket.SOCK_STREAM)[0]
    found = address[0]
    return f"ipv6:[{found}]:{place.port}" if family == socket.AF_INET6 else f"ipv4:{found}:{place.port}"


def _reason(error: Any) -> str:
    word = error.code().name
    details = "".join(letter for letter in str(error.details() or "") if letter.isprintable())[:LONGEST_DETAILS]
    if word == "UNAVAILABLE":
        return next((reason for sign, reason in BROKEN.items() if sign in details.lower()), "the connection broke off")
    reason = REASONS.get(word, f"gRPC says {word}")
    return f"{reason}: {details}" if word in EXPLAINED and details else reason


QUIET_PART = 0.2
"""A sample is complete once nothing has come for this part of an interval."""
LONGEST_QUIET_S = 0.3
MISSED = 3
"""So many intervals without a word are one too many, however short the patience."""
REPEATED = 1.5
"""After so many intervals without a word a count has not changed, if the server tells the same of other places."""
LONGEST_WAIT = 2
"""For what led the sample before is waited so many intervals; then something else leads."""
MOST_WAITING = 10_000
"""Notifications that came and are not read yet."""
SHORTEST_S = 1.0
"""SONiC takes no shorter interval, and no switch counts much more often."""
Key = tuple[str, str]
"""The server's name of a count, and the place."""
Deliver = Callable[[Sample], None]
Piece = tuple[float, tuple[Update, ...]]
"""When something came, in seconds of the epoch, and what."""
Told = Callable[[float], Piece | None]
"""Patience → what came within it; None when nothing did."""


class GnmiStreamReader:
    """Reads a stream on a thread of its own, so that whoever waits for it can look at the clock meanwhile."""

    def __init__(self, line: GnmiConnection, questions: Sequence[GnmiQuery], interval_s: float) -> None:
        self._line, self._questions, self._interval_s = line, questions, interval_s
        self._come: queue.Queue[Piece | RefusedStreamError] = queue.Queue(MOST_WAITING)
        self._is_over = False
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._line.close()
        self._thread.join()

    def _read(self) -> None:
        try:
            for updates in self._line.stream(self._questions, self._interval_s):
                self._put((time.time(), updates))
        except RefusedStreamError as error:
            self._put(error)

    def _put(self, found: Piece | RefusedStreamError) -> None:
        """Hand over what came; a server that tells more than is read has to wait."""
        while not self._is_over:
            with suppress(queue.Full):
                self._come.put(found, timeout=LONGEST_QUIET_S)
                return

    def told(self, patience_s: float) -> Piece | None:
        """Return what comes next; None when nothing does in time. Raises RefusedStreamError when the stream ended."""
        try:
            found = self._come.get(timeout=patience_s)
        except queue.Empty:
            return None
        if isinstance(found, RefusedStreamError):
            raise found
        return found


class Samples:
    """Puts samples together from what a stream tells piece by piece."""

    def __init__(self, subject: ViewSubject, names: Mapping[str, str], deliver: Deliver, interval_s: float) -> None:
        self._platform, self._deliver, self._interval_s = subject.platform, deliver, interval_s
        self._counting = count.Counting(subject.platform, names, subject.ports)
        self._quiet_s = min(interval_s * QUIET_PART, LONGEST_QUIET_S)
        self._found: dict[Key, int] = {}
        self._told_s: dict[Key, float] = {}
        self._fresh: set[Key] = set()
        self._leading: frozenset[Key] = frozenset()
        """What was told last in the sample before: when it comes anew, all others have come once too."""
        self._began_s: float | None = None
        self._last_s = 0.0
        self._delivered_s = 0.0

    def fill(self, told: Told, stop: threading.Event, patience_s: float) -> None:
        """Deliver samples until told to stop; raises RefusedStreamError once nothing came for too long."""
        patience_s = max(patience_s, MISSED * self._interval_s)
        heard_s = time.monotonic()
        while not stop.is_set():
            piece = told(self._quiet_s)
            if piece is not None:
                heard_s = time.monotonic()
                self._take(*piece)
            elif time.monotonic() - heard_s > patience_s:
                raise RefusedStreamError(f"it told nothing for {patience_s:g} s")
            else:
                self._complete()

    def _take(self, at_s: float, updates: tuple[Update, ...]) -> None:
        if self._began_s is not None and not 0 <= at_s - self._began_s <= self._interval_s:
            self._complete()  # of a server that never pauses, or before the clock was set back
        self._began_s = at_s if self._began_s is None else self._began_s
        self._last_s = at_s
        counts = dict(self._counting.counts(updates))
        self._found.update(counts)
        self._told_s.update(dict.fromkeys(counts, at_s))
        self._fresh.update(counts)

    def _complete(self) -> None:
        """Deliver what came; what comes soon after a sample was only late, and is part of the next one."""
        if self._began_s is None or not self._is_due():
            return
        counters = count.counters(self._platform, self._found, self._fresh | self._unchanged())
        self._began_s, self._delivered_s = None, self._last_s
        self._leading = frozenset(key for key in self._fresh if self._last_s - self._told_s[key] <= self._quiet_s)
        self._fresh.clear()
        if counters:
            self._deliver(Sample(self._last_s, counters))

    def _is_due(self) -> bool:
        """Whether a sample is whole. Each is led by the same subscription, so that all are as old in each of them."""
        past_s = self._last_s - self._delivered_s
        if 0 <= past_s < self._interval_s / 2:
            return False
        is_led = not self._leading or not self._leading.isdisjoint(self._fresh)
        return is_led or not 0 <= past_s < LONGEST_WAIT * self._interval_s

    def _unchanged(self) -> set[Key]:
        """Return what servers leave out as it is what it was: they tell the same of other places, and did until now."""
        leaves = {leaf for leaf, _ in self._fresh}
        least_s, most_s = REPEATED * self._interval_s, MISSED * self._interval_s
        return {
            key
            for key, told_s in self._told_s.items()
            if key[0] in leaves and least_s <= self._last_s - told_s < most_s
        }
