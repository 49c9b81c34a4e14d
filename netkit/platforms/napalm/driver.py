"""A switch that is looked at through the getters of its NAPALM driver."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NoReturn

from netkit.errors import AccessError, NetkitError, Problem
from netkit.platforms.napalm.facts.views import GETTERS
from netkit.platforms.view import Reply

MOST_SHOWN = 120
CLOSE_S = 1.0
"""How long a driver may take to hang up before nobody waits for it."""
ENDED = "the connection was ended"


class GetterViewer:
    """Calls the getters of a driver; whatever one raises is the failure of that one.

    Drivers of others need not know an end: each call has a thread of its own, which is left behind once it is hung up.
    """

    def __init__(self, device: str, driver: Any) -> None:
        self._device, self._driver = device, driver
        self._is_ended = False
        self._heard = SimpleQueue[tuple[Any, Exception | None]]()

    def open(self) -> None:
        """Connect; AccessError says why it cannot."""
        try:
            self._called(self._driver.open)
        except NetkitError:
            raise
        except Exception as error:  # of a driver that others wrote
            self._fail(f"its NAPALM driver cannot open it: {_shown(error)}")

    def close(self) -> None:
        """Hang up; what is being asked ends."""
        self._is_ended = True
        self._heard.put((None, ConnectionAbortedError(ENDED)))

        def hang_up() -> None:
            with suppress(Exception):  # what was read was read
                self._driver.close()

        leaving = threading.Thread(target=hang_up, daemon=True)
        leaving.start()
        leaving.join(CLOSE_S)

    def _called(self, work: Callable[[], Any]) -> Any:
        """Return what a driver returns, or raise what it raises; once it is hung up on, nobody waits for it."""
        if self._is_ended:
            raise ConnectionAbortedError(ENDED)

        def call() -> None:
            try:
                self._heard.put((work(), None))
            except Exception as error:  # for the thread that waits
                self._heard.put((None, error))

        threading.Thread(target=call, daemon=True).start()
        found, error = self._heard.get()
        if error is not None:
            raise error
        return found

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return what the getters return, as JSON."""
        return tuple(self._reply(command) for command in commands)

    def _reply(self, command: str) -> Reply:
        getter = getattr(self._driver, command, None) if command in GETTERS else None
        if getter is None:
            return Reply("", "is no getter")
        try:
            text = self._called(lambda: json.dumps(getter()))
        except NotImplementedError:
            return Reply("", "the NAPALM driver does not have it")
        except ConnectionAbortedError:
            return Reply("", ENDED)
        except AccessError:
            raise
        except Exception as error:  # of this getter; the others are none the worse for it
            return Reply("", f"the NAPALM driver fails: {_shown(error)}")
        return Reply(text, at_s=time.time())

    def running_files(self) -> Mapping[str, str | None]:
        """Refuse: a driver of others does not tell files as netkit renders them."""
        self._fail("getters do not tell what is configured")

    def os_version(self) -> str:
        """Refuse, as it is only asked for with the configuration."""
        self._fail("getters do not tell what is configured")

    def _fail(self, what: str) -> NoReturn:
        raise AccessError(Problem(f"{self._device}: {what}", "see its account and address in access.yaml"))


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip(": ").partition("\n")[0][:MOST_SHOWN]
