"""What gNMI servers tell by OpenConfig's models of a port and its queues, whatever the NOS."""

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

from netkit.lab.node import Node
from netkit.lab.personality import Elem, Told
from netkit.lab.reading import QueueReading, SwitchPortReading
from netkit.lab.state import GnmiState, SwitchState
from netkit.lab.system.namespace_holder import ACCOUNTS

Leaves = Mapping[str, int | str]
Steps = tuple[Elem, ...]


def interface(port: str, *names: str) -> Steps:
    return (("interfaces", {}), ("interface", {"name": port}), *((name, {}) for name in names))


def qos_interface(port: str, *more: Elem) -> Steps:
    return (("qos", {}), ("interfaces", {}), ("interface", {"interface-id": port}), *more)


def queue(port: str, number: int) -> Steps:
    return qos_interface(port, ("output", {}), ("queues", {}), ("queue", {"name": str(number)}), ("state", {}))


def leaves(path: Steps, told: Leaves) -> Iterator[Told]:
    yield from (((*path, (name, {})), value) for name, value in told.items())


def state(reading: SwitchPortReading, description: str) -> Leaves:
    return {
        "oper-status": "UP" if reading.is_up else "DOWN",
        "admin-status": "UP" if reading.is_enabled else "DOWN",
        "mtu": reading.mtu_bytes,
        "description": description,
    }


def counters(reading: SwitchPortReading) -> Leaves:
    """Return the counters of a port. A veth does not count multicast apart, so all packets are unicast."""
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


def queue_counters(found: QueueReading) -> Leaves:
    return {"transmit-pkts": found.tx_packets, "transmit-octets": found.tx_bytes}


def below(told: Iterable[Told], path: Steps) -> Iterator[Told]:
    """Yield the leaves below a path; raise LookupError if there are none."""
    found = [one for one in told if _is_below(one[0], path)]
    if not found:
        raise LookupError("/".join(name for name, _ in path))
    yield from found


def _is_below(leaf: Steps, path: Steps) -> bool:
    return len(path) <= len(leaf) and all(
        name == wanted and all(value in {"*", keys.get(key)} for key, value in wanted_keys.items())
        for (name, keys), (wanted, wanted_keys) in zip(leaf, path, strict=False)
    )


LIBRARY = ("grpc", "pygnmi.spec.v080.gnmi_pb2", "pygnmi.spec.v080.gnmi_pb2_grpc")
MISSING = "gNMI is configured and not served, for pygnmi is not installed: install netkit with its extra gnmi"
MOST_CALLS = 16
SHORTEST_S, PULSE_S = 1.0, 0.2
NANO = 1_000_000_000
OPTIONS = (("grpc.so_reuseport", 0),)
Tell = Callable[[str, tuple[Elem, ...]], Iterator[Told]]
"""Target and path → what the switch tells there; LookupError when there is nothing."""
Gate = Callable[[str], float]
"""Node → seconds to wait before its answer; raises ConnectionError when it must not answer at all."""


@dataclass(frozen=True, slots=True)
class GnmiListener:
    """Address, credentials and TLS of a node's gNMI server."""

    address: str
    password: str
    gate: Gate
    certificate: Callable[[], tuple[Path, Path]]
    """Makes the node's certificate where it is not there yet; returns it and its key."""
    opened: Callable[[], None] = lambda: None
    """Called when the server began or ended, for whoever writes that down."""


class GnmiAgent:
    """The gNMI server of one switch."""

    def __init__(self, node: Node, door: GnmiListener, tell: Tell) -> None:
        self._node, self._door, self._tell = node, door, tell
        self._told: GnmiState | None = None
        self._server: Any = None
        self.port = 0
        """Where it listens; port 0 of a state is any."""

    @property
    def lack(self) -> str:
        """Why a configured server does not run; empty if it runs or none is configured."""
        return MISSING if self._told is not None and self._server is None else ""

    @property
    def state(self) -> GnmiState | None:
        """The configuration being served; None if nothing is served."""
        return self._told if self._server is not None else None

    def apply(self, state: SwitchState) -> None:
        """Start, restart or stop the server to match a switch's configuration."""
        if state.gnmi == self._told:
            return
        self.end()
        self._told = state.gnmi
        if state.gnmi is not None:
            self._begin(state.gnmi)
        self._door.opened()

    def end(self) -> None:
        """Stop the server and every stream."""
        server, self._server, self._told = self._server, None, None
        if server is not None:
            server.stop(grace=None).wait()

    def _begin(self, state: GnmiState) -> None:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        try:
            grpc, messages, stubs = (importlib.import_module(name) for name in LIBRARY)
        except ImportError:
            self._node.log(MISSING)
            return
        server = grpc.server(ThreadPoolExecutor(MOST_CALLS), options=OPTIONS)
        service = Service(grpc, messages, self._node.name, state, self._door, self._tell)
        stubs.add_gNMIServicer_to_server(service, server)
        place = f"{self._door.address}:{state.port}"
        if state.has_tls:
            certificate, key = (file.read_bytes() for file in self._door.certificate())
            self.port = server.add_secure_port(place, grpc.ssl_server_credentials(((key, certificate),)))
        else:
            self.port = server.add_insecure_port(place)
        server.start()
        self._server = server


class Service:
    """The gNMI servicer; method names are those of the protobuf service."""

    def __init__(self, grpc: Any, messages: Any, name: str, state: GnmiState, door: GnmiListener, tell: Tell) -> None:
        self._codes, self._messages = grpc.StatusCode, messages
        self._name, self._state, self._door, self._tell = name, state, door, tell

    def Capabilities(self, _request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's names
        self._let_in(context)
        encodings = [self._messages.Encoding.JSON, self._messages.Encoding.JSON_IETF]
        return self._messages.CapabilityResponse(gNMI_version="0.8.0", supported_encodings=encodings)

    def Get(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._let_in(context)
        if self._state.is_cumulus:
            context.abort(self._codes.UNIMPLEMENTED, "only streams are supported")
        found = [self._notification(request.prefix.target, path, context) for path in request.path]
        return self._messages.GetResponse(notification=found)

    def Set(self, _request: Any, context: Any) -> Any:  # noqa: N802
        """Refuse: switches of the lab are not configured over gNMI."""
        context.abort(self._codes.UNIMPLEMENTED, "the lab takes no configuration by gNMI")

    def Subscribe(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:  # noqa: N802
        """Answer ONCE with one sample, STREAM with samples until the caller leaves."""
        self._let_in(context)
        asked = next(requests).subscribe
        gone = threading.Event()
        context.add_callback(gone.set)
        is_stream = asked.mode == self._messages.SubscriptionList.STREAM
        if self._state.is_cumulus and not is_stream:
            context.abort(self._codes.UNIMPLEMENTED, "only streams are supported")
        if not self._state.is_cumulus:  # that one begins with the second sample
            yield from self._sample(asked, context)
        yield self._messages.SubscribeResponse(sync_response=True)
        if not is_stream:
            return
        interval_s = max(SHORTEST_S, min((one.sample_interval for one in asked.subscription), default=0) / NANO)
        next_s = time.monotonic() + interval_s
        while not gone.wait(max(0.0, next_s - time.monotonic())):
            next_s = max(next_s + interval_s, time.monotonic())
            self._wait(context)
            yield from self._sample(asked, context)

    def _sample(self, asked: Any, context: Any) -> Iterator[Any]:
        for one in asked.subscription:
            update = self._notification(asked.prefix.target, one.path, context)
            yield self._messages.SubscribeResponse(update=update)

    def _notification(self, target: str, path: Any, context: Any) -> Any:
        wanted = tuple((one.name, dict(one.key)) for one in path.elem)
        try:
            found = [self._update(*one) for one in self._tell(target, wanted)]
        except LookupError as error:
            context.abort(self._codes.NOT_FOUND, str(error))
        prefix = self._messages.Path(target=target)
        return self._messages.Notification(timestamp=time.time_ns(), prefix=prefix, update=found)

    def _update(self, path: tuple[Elem, ...], value: object) -> Any:
        elem = [self._messages.PathElem(name=name, key=dict(keys)) for name, keys in path]
        told = self._messages.TypedValue(json_ietf_val=json.dumps(value).encode())
        return self._messages.Update(path=self._messages.Path(elem=elem), val=told)

    def _let_in(self, context: Any) -> None:
        self._wait(context)
        user, password = self._who(dict(context.invocation_metadata()))
        is_right = hmac.compare_digest(password.encode(), self._door.password.encode())
        if self._state.asks_who and not (user in ACCOUNTS and is_right):
            context.abort(self._codes.UNAUTHENTICATED, "authentication failed")

    def _who(self, told: Mapping[str, str]) -> tuple[str, str]:
        """Return user and password from the metadata, where each NOS expects them."""
        if not self._state.is_cumulus:
            return told.get("username", ""), told.get("password", "")
        try:
            text = base64.b64decode(told.get("authorization", "").removeprefix("Basic ")).decode()
        except ValueError:
            return "", ""
        user, _, password = text.partition(":")
        return user, password

    def _wait(self, context: Any) -> None:
        """Apply faults on the management plane: respond slowly, hang, or fail."""
        while context.is_active():
            try:
                time.sleep(self._door.gate(self._name))
                return
            except ConnectionError as error:
                # Fail as a fault of the lab has it; one that hangs goes on to be silent.
                fault = str(error)
                if fault == "refuses-auth":
                    context.abort(self._codes.UNAUTHENTICATED, "authentication failed")
                if fault == "garbage":
                    context.abort(self._codes.DATA_LOSS, "\ufffd{{%!#")
                if fault != "hangs":
                    context.abort(self._codes.UNAVAILABLE, "")
            time.sleep(PULSE_S)
