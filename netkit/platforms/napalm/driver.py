"""A switch that is looked at through the getters of its NAPALM driver."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from netkit.errors import AccessError, NetkitError, Problem
from netkit.platforms.napalm.facts.getter import GETTERS
from netkit.platforms.view import Reply

MOST_SHOWN = 120


class GetterViewer:
    """Calls the getters of a driver; whatever one raises is the failure of that one."""

    def __init__(self, device: str, driver: Any) -> None:
        self._device, self._driver = device, driver

    def open(self) -> None:
        """Connect; AccessError says why it cannot."""
        try:
            self._driver.open()
        except NetkitError:
            raise
        except Exception as error:  # of a driver that others wrote
            self._fail(f"its NAPALM driver cannot open it: {_shown(error)}")

    def close(self) -> None:
        """Hang up."""
        self._driver.close()

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return what the getters return, as JSON."""
        return tuple(self._reply(command) for command in commands)

    def _reply(self, command: str) -> Reply:
        getter = getattr(self._driver, command, None) if command in GETTERS else None
        if getter is None:
            return Reply("", "is no getter")
        try:
            text = json.dumps(getter())
        except NotImplementedError:
            return Reply("", "the NAPALM driver does not have it")
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
