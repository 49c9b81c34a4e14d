"""A switch that is looked at by gNMI: asked once, or listened to."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from netkit.errors import AccessError, Problem
from netkit.platforms.agents import GnmiDialect, agents_of
from netkit.platforms.gnmi.message import CAPABILITIES, GnmiLogin, GnmiQuery, GnmiServer, asked, question, written
from netkit.platforms.gnmi.transport import (
    SHORTEST_S,
    SILENT,
    Deliver,
    GnmiConnection,
    GnmiStreamReader,
    MissingLibraryError,
    RefusedStreamError,
    Samples,
    library,
)
from netkit.platforms.view import Reply, ViewSubject

INSTALL = "install netkit with its extra gnmi: pip install '.[gnmi]' in its checkout"
REMEDY = "see gnmi in access.yaml, and whether the switch offers gNMI where netkit asks it"


def require_library(device: str) -> None:
    """Raise AccessError when gNMI cannot be spoken to any device, so that trying again helps nobody."""
    try:
        library()
    except MissingLibraryError as error:
        raise _no_library(device, error) from None


def _no_library(device: str, error: MissingLibraryError) -> AccessError:
    return AccessError(Problem(f"{device}: gNMI needs a library that is not installed: {error}", INSTALL))


class GnmiViewer:
    """Asks a gNMI server for what is below paths, or has it stream them."""

    def __init__(self, device: str, place: GnmiServer, login: GnmiLogin, paths: Sequence[str] = ()) -> None:
        self._device, self._place, self._login, self._paths = device, place, login, tuple(paths)
        self._line: GnmiConnection | None = None
        self._version = ""

    def open(self) -> None:
        """See that the server answers; AccessError says why it does not."""
        try:
            self._login_sent()
            self._line = GnmiConnection(self._place, self._login)
            self._version = self._line.begin()
        except MissingLibraryError as error:
            raise _no_library(self._device, error) from None
        except RefusedStreamError as error:
            self.close()
            self._fail(str(error))

    def _login_sent(self) -> None:
        """Refuse what cannot be sent: a header holds printable ASCII."""
        login = self._login
        word = login.user if login.is_basic else f"{login.user}{login.password}"
        if not (word.isascii() and word.isprintable()):
            self._fail("its user or password holds other letters than printable ASCII, which gNMI cannot send")

    def close(self) -> None:
        """Hang up; what is being asked, and every stream, ends."""
        if self._line is not None:
            self._line.close()

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return what there is below paths. Once the server falls silent it is not asked for the others."""
        replies: list[Reply] = []
        for command in commands:
            is_silent = any(reply.failure == SILENT for reply in replies)
            replies.append(Reply("", "was not asked, as another got no answer") if is_silent else self._reply(command))
        return tuple(replies)

    def _reply(self, command: str) -> Reply:
        if command == CAPABILITIES:
            return Reply(f"{self._version}\n", at_s=time.time())
        wanted = asked(command)
        if wanted is None:
            return Reply("", "is no question for gNMI")
        try:
            return Reply(written(self._connected().once(wanted)), at_s=time.time())
        except RefusedStreamError as error:
            return Reply("", str(error))

    def stream(self, subject: ViewSubject, interval_s: float, deliver: Deliver, stop: threading.Event) -> None:
        """Deliver a sample of the counters each interval, until told to stop; AccessError when the stream ends."""
        known = agents_of(subject.platform)
        own = known.gnmi if known else None
        questions = _questions(self._paths or (own.streamed if own else ()))
        if not questions:
            self._fail("netkit knows no counters to be streamed by it; name paths in access.yaml")
        try:
            names, interval_s = self._names(own), max(interval_s, SHORTEST_S)
            with GnmiStreamReader(self._connected(), questions, interval_s) as reader:
                Samples(subject, names, deliver, interval_s).fill(reader.told, stop, self._place.patience_s)
        except RefusedStreamError as error:
            if not stop.is_set():
                self._fail(str(error))

    def _names(self, own: GnmiDialect | None) -> Mapping[str, str]:
        """Return what the server calls ports → the ports, where it has names of its own."""
        database = own.database if own else None
        wanted = question(database.ports) if database else None
        return database.aliases(self._connected().once(wanted)) if database and wanted else {}

    def running_files(self) -> Mapping[str, str | None]:
        """Refuse: netkit does not ask gNMI for configurations."""
        self._fail("netkit reads no configuration by gNMI")

    def os_version(self) -> str:
        """Refuse, as it is only asked for with the configuration."""
        self._fail("netkit reads no configuration by gNMI")

    def _connected(self) -> GnmiConnection:
        if self._line is None:
            self._fail("the connection is closed")
        return self._line

    def _fail(self, what: str) -> NoReturn:
        where = f"{self._place.host} port {self._place.port}"
        raise AccessError(Problem(f"{self._device}: gNMI at {where}: {what}", REMEDY))


def _questions(places: Sequence[str]) -> tuple[GnmiQuery, ...]:
    return tuple(found for place in places if (found := question(place)) is not None)
