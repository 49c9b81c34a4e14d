"""A switch whose state is read by gNMI: Subscribe ONCE for a check, STREAM for a watch."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from netkit.errors import AccessError, Problem
from netkit.platforms.agents import GnmiDialect, agents_of
from netkit.platforms.gnmi.message import (
    CAPABILITIES,
    GnmiLogin,
    GnmiServer,
    format_updates,
    parse_command,
    parse_query,
)
from netkit.platforms.gnmi.transport import (
    NO_ANSWER,
    SHORTEST_S,
    Deliver,
    GnmiConnection,
    GnmiError,
    GnmiStreamReader,
    MissingLibraryError,
    Samples,
    library,
)
from netkit.platforms.view import Reply, ViewSubject

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
