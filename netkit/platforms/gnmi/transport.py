"""Talking to one gNMI server: a gRPC channel of its own, questions that are answered once, and streams.

The messages are pygnmi's; its client is not used, for it trusts whatever certificate it is shown first.
"""

import base64
import importlib
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from netkit.platforms.gnmi import message
from netkit.platforms.gnmi.credential import Login, Place
from netkit.platforms.gnmi.question import Question
from netkit.platforms.gnmi.transport_shield import UntrustedError, shown
from netkit.platforms.gnmi.update import Update

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


class Line:
    """A connection to a server. It may be closed from any thread; what is being asked ends then."""

    def __init__(self, place: Place, login: Login) -> None:
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

    def once(self, question: Question) -> tuple[Update, ...]:
        """Return all that is below a path; raises RefusedStreamError."""
        found: list[Update] = []
        paths = message.Paths()
        for notification in self._told(message.request(self._messages, (question,)), self._place.patience_s):
            if notification is None:
                break
            found += paths.updates(notification)
        return tuple(found)

    def stream(self, questions: Sequence[Question], interval_s: float) -> Iterator[tuple[Update, ...]]:
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


def _target(place: Place) -> str:
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
