"""A switch whose state is read through the getters of its NAPALM driver."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NoReturn

from netkit.errors import AccessError, NetkitError, Problem
from netkit.platforms.napalm.facts import GETTERS
from netkit.platforms.view import Reply

MOST_SHOWN = 120
CLOSE_S = 1.0
"""How long to wait for a driver to close."""
ENDED = "the connection was closed"


class GetterViewer:
    """Calls the getters of a NAPALM driver; an exception counts as the failure of that getter only.

    A third-party driver may block forever, so each call runs in its own thread, which `close` abandons.
    """

    def __init__(self, device: str, driver: Any) -> None:
        self._device, self._driver = device, driver
        self._is_ended = False
        self._results = SimpleQueue[tuple[Any, Exception | None]]()

    def open(self) -> None:
        """Connect; raises AccessError."""
        try:
            self._call(self._driver.open)
        except NetkitError:
            raise
        except Exception as error:  # whatever a third-party driver raises
            self._fail(f"its NAPALM driver cannot connect: {_brief(error)}")

    def close(self) -> None:
        """Close the driver in the background, and abandon a call in progress."""
        self._is_ended = True
        self._results.put((None, ConnectionAbortedError(ENDED)))

        def close_driver() -> None:
            with suppress(Exception):  # nothing depends on it any more
                self._driver.close()

        closing = threading.Thread(target=close_driver, daemon=True)
        closing.start()
        closing.join(CLOSE_S)

    def _call(self, work: Callable[[], Any]) -> Any:
        """Run a call in a thread and return its result or raise its exception; ConnectionAbortedError after `close`."""
        if self._is_ended:
            raise ConnectionAbortedError(ENDED)

        def run() -> None:
            try:
                self._results.put((work(), None))
            except Exception as error:  # raised again in the waiting thread
                self._results.put((None, error))

        threading.Thread(target=run, daemon=True).start()
        result, error = self._results.get()
        if error is not None:
            raise error
        return result

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Call getters by name, and return their results as JSON."""
        return tuple(self._reply(command) for command in commands)

    def _reply(self, command: str) -> Reply:
        getter = getattr(self._driver, command, None) if command in GETTERS else None
        if getter is None:
            return Reply("", "not a getter")
        try:
            text = self._call(lambda: json.dumps(getter()))
        except NotImplementedError:
            return Reply("", "the NAPALM driver does not implement it")
        except ConnectionAbortedError:
            return Reply("", ENDED)
        except AccessError:
            raise
        except Exception as error:  # other getters may still work
            return Reply("", f"the NAPALM driver fails: {_brief(error)}")
        return Reply(text, at_s=time.time())

    def running_files(self) -> Mapping[str, str | None]:
        """Raise AccessError: getters do not return files as netkit renders them."""
        self._fail("getters do not expose the configuration as netkit renders it")

    def os_version(self) -> str:
        """Raise AccessError: the version is only needed along with the configuration."""
        self._fail("getters do not expose the configuration as netkit renders it")

    def _fail(self, what: str) -> NoReturn:
        raise AccessError(Problem(f"{self._device}: {what}", "check its account and address in access.yaml"))


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip(": ").partition("\n")[0][:MOST_SHOWN]
