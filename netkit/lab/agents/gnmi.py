"""The gNMI server of a switch, and the OpenConfig leaves of ports and queues that every NOS shares."""

import base64
import hmac
import importlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netkit.lab.namespace_holder import ACCOUNTS
from netkit.lab.node import Node
from netkit.lab.personality import Elem, GnmiLeaf
from netkit.lab.reading import QueueReading, SwitchPortReading
from netkit.lab.state import GnmiState, SwitchState

Leaves = Mapping[str, int | str]
Steps = tuple[Elem, ...]


def interface(port: str, *names: str) -> Steps:
    return (("interfaces", {}), ("interface", {"name": port}), *((name, {}) for name in names))


def qos_interface(port: str, *more: Elem) -> Steps:
    return (("qos", {}), ("interfaces", {}), ("interface", {"interface-id": port}), *more)


def queue(port: str, number: int) -> Steps:
    return qos_interface(port, ("output", {}), ("queues", {}), ("queue", {"name": str(number)}), ("state", {}))


def leaves(path: Steps, values: Leaves) -> Iterator[GnmiLeaf]:
    yield from (((*path, (name, {})), value) for name, value in values.items())


def state(reading: SwitchPortReading, description: str) -> Leaves:
    return {
        "oper-status": "UP" if reading.is_up else "DOWN",
        "admin-status": "UP" if reading.is_enabled else "DOWN",
        "mtu": reading.mtu_bytes,
        "description": description,
    }


def counters(reading: SwitchPortReading) -> Leaves:
    """The counters of a port. A veth does not count multicast separately, so all packets are unicast."""
    traffic = reading.traffic
    return {
        "in-octets": traffic.rx_bytes,
        "in-unicast-pkts": traffic.rx_packets,
        "in-multicast-pkts": 0,
        "in-broadcast-pkts": 0,
        "in-discards": traffic.rx_dropped,
        "in-errors": traffic.rx_errors,
        "out-octets": traffic.tx_bytes,
        "out-unicast-pkts": traffic.tx_packets,
        "out-multicast-pkts": 0,
        "out-broadcast-pkts": 0,
        "out-errors": traffic.tx_errors,
    }


def queue_counters(reading: QueueReading) -> Leaves:
    return {"transmit-pkts": reading.tx_packets, "transmit-octets": reading.tx_bytes}


def below(tree: Iterable[GnmiLeaf], path: Steps) -> Iterator[GnmiLeaf]:
    """Yield the leaves below a path; raise LookupError if there are none."""
    found = [leaf for leaf in tree if _is_below(leaf[0], path)]
    if not found:
        raise LookupError("/".join(name for name, _ in path))
    yield from found


def _is_below(leaf: Steps, path: Steps) -> bool:
    return len(path) <= len(leaf) and all(
        name == wanted and all(value in {"*", keys.get(key)} for key, value in wanted_keys.items())
        for (name, keys), (wanted, wanted_keys) in zip(leaf, path, strict=False)
    )


LIBRARY = ("grpc", "pygnmi.spec.v080.gnmi_pb2", "pygnmi.spec.v080.gnmi_pb2_grpc")
MISSING = "gNMI is configured but not served, because pygnmi is not installed: install netkit with its extra gnmi"
MOST_CALLS = 16
SHORTEST_S, PULSE_S = 1.0, 0.2
NANO = 1_000_000_000
OPTIONS = (("grpc.so_reuseport", 0),)
Read = Callable[[str, tuple[Elem, ...]], Iterator[GnmiLeaf]]
"""Target and path → the leaves there; LookupError if there are none."""
Gate = Callable[[str], float]
"""Node → seconds to delay its answer; raises ConnectionError if it must not answer."""


@dataclass(frozen=True, slots=True)
class GnmiListener:
    """Address, credentials and TLS of a node's gNMI server."""

    address: str
    password: str
    gate: Gate
    certificate: Callable[[], tuple[Path, Path]]
    """Creates the node's certificate unless it exists; returns it and its key."""
    on_change: Callable[[], None] = lambda: None
    """Called after the server started or stopped."""


class GnmiAgent:
    """The gNMI server of one switch."""

    def __init__(self, node: Node, listener: GnmiListener, read: Read) -> None:
        self._node, self._listener, self._read = node, listener, read
        self._configured: GnmiState | None = None
        self._server: Any = None
        self.port = 0
        """The port in use, also if the configured one is 0."""

    @property
    def lack(self) -> str:
        """Why a configured server does not run; empty if it runs or none is configured."""
        return MISSING if self._configured is not None and self._server is None else ""

    @property
    def state(self) -> GnmiState | None:
        """The configuration being served; None if nothing is served."""
        return self._configured if self._server is not None else None

    def apply(self, state: SwitchState) -> None:
        """Start, restart or stop the server to match a switch's configuration."""
        if state.gnmi == self._configured:
            return
        self.end()
        self._configured = state.gnmi
        if state.gnmi is not None:
            self._start(state.gnmi)
        self._listener.on_change()

    def end(self) -> None:
        """Stop the server and every stream."""
        server, self._server, self._configured = self._server, None, None
        if server is not None:
            server.stop(grace=None).wait()

    def _start(self, state: GnmiState) -> None:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        try:
            grpc, messages, stubs = (importlib.import_module(name) for name in LIBRARY)
        except ImportError:
            self._node.log(MISSING)
            return
        server = grpc.server(ThreadPoolExecutor(MOST_CALLS), options=OPTIONS)
        service = Service(grpc, messages, self._node.name, state, self._listener, self._read)
        stubs.add_gNMIServicer_to_server(service, server)
        address = f"{self._listener.address}:{state.port}"
        if state.has_tls:
            certificate, key = (file.read_bytes() for file in self._listener.certificate())
            self.port = server.add_secure_port(address, grpc.ssl_server_credentials(((key, certificate),)))
        else:
            self.port = server.add_insecure_port(address)
        server.start()
        self._server = server


class Service:
    """The gNMI servicer; method names are those of the protobuf service."""

    def __init__(
        self, grpc: Any, messages: Any, name: str, state: GnmiState, listener: GnmiListener, read: Read
    ) -> None:
        self._codes, self._messages = grpc.StatusCode, messages
        self._name, self._state, self._listener, self._read = name, state, listener, read

    def Capabilities(self, _request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's names
        self._authenticate(context)
        encodings = [self._messages.Encoding.JSON, self._messages.Encoding.JSON_IETF]
        return self._messages.CapabilityResponse(gNMI_version="0.8.0", supported_encodings=encodings)

    def Get(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._authenticate(context)
        if self._state.is_cumulus:
            context.abort(self._codes.UNIMPLEMENTED, "only streams are supported")
        found = [self._notification(request.prefix.target, path, context) for path in request.path]
        return self._messages.GetResponse(notification=found)

    def Set(self, _request: Any, context: Any) -> Any:  # noqa: N802
        """Refuse: switches of the lab are not configured over gNMI."""
        context.abort(self._codes.UNIMPLEMENTED, "the lab takes no configuration by gNMI")

    def Subscribe(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:  # noqa: N802
        """Answer ONCE with one sample, STREAM with samples until the caller leaves."""
        self._authenticate(context)
        subscriptions = next(requests).subscribe
        has_left = threading.Event()
        context.add_callback(has_left.set)
        is_stream = subscriptions.mode == self._messages.SubscriptionList.STREAM
        if self._state.is_cumulus and not is_stream:
            context.abort(self._codes.UNIMPLEMENTED, "only streams are supported")
        if not self._state.is_cumulus:  # Cumulus starts with the second sample
            yield from self._sample(subscriptions, context)
        yield self._messages.SubscribeResponse(sync_response=True)
        if not is_stream:
            return
        intervals_ns = [subscription.sample_interval for subscription in subscriptions.subscription]
        interval_s = max(SHORTEST_S, min(intervals_ns, default=0) / NANO)
        next_s = time.monotonic() + interval_s
        while not has_left.wait(max(0.0, next_s - time.monotonic())):
            next_s = max(next_s + interval_s, time.monotonic())
            self._wait(context)
            yield from self._sample(subscriptions, context)

    def _sample(self, subscriptions: Any, context: Any) -> Iterator[Any]:
        for subscription in subscriptions.subscription:
            update = self._notification(subscriptions.prefix.target, subscription.path, context)
            yield self._messages.SubscribeResponse(update=update)

    def _notification(self, target: str, path: Any, context: Any) -> Any:
        messages, updates = self._messages, []
        steps = tuple((step.name, dict(step.key)) for step in path.elem)
        try:
            for leaf, value in self._read(target, steps):
                elem = [messages.PathElem(name=name, key=dict(keys)) for name, keys in leaf]
                encoded = messages.TypedValue(json_ietf_val=json.dumps(value).encode())
                updates.append(messages.Update(path=messages.Path(elem=elem), val=encoded))
        except LookupError as error:
            context.abort(self._codes.NOT_FOUND, str(error))
        return messages.Notification(timestamp=time.time_ns(), prefix=messages.Path(target=target), update=updates)

    def _authenticate(self, context: Any) -> None:
        self._wait(context)
        user, password = self._credentials(dict(context.invocation_metadata()))
        is_right = hmac.compare_digest(password.encode(), self._listener.password.encode())
        if self._state.has_authentication and not (user in ACCOUNTS and is_right):
            context.abort(self._codes.UNAUTHENTICATED, "authentication failed")

    def _credentials(self, metadata: Mapping[str, str]) -> tuple[str, str]:
        """User and password from the metadata, where each NOS expects them."""
        if not self._state.is_cumulus:
            return metadata.get("username", ""), metadata.get("password", "")
        try:
            text = base64.b64decode(metadata.get("authorization", "").removeprefix("Basic ")).decode()
        except ValueError:
            return "", ""
        user, _, password = text.partition(":")
        return user, password

    def _wait(self, context: Any) -> None:
        """Apply faults on the management plane: respond slowly, hang, or fail."""
        while context.is_active():
            try:
                time.sleep(self._listener.gate(self._name))
                return
            except ConnectionError as error:
                fault = str(error)
                if fault == "refuses-auth":
                    context.abort(self._codes.UNAUTHENTICATED, "authentication failed")
                if fault == "garbage":
                    context.abort(self._codes.DATA_LOSS, "\ufffd{{%!#")
                if fault != "hangs":
                    context.abort(self._codes.UNAVAILABLE, "")
            time.sleep(PULSE_S)
