"""Reading a switch that runs NVUE, in NAPALM's words and in netkit's."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from napalm.base.base import NetworkDriver

from netkit.errors import AccessError, Problem
from netkit.platforms.driver import SessionState
from netkit.platforms.napalm_error import NotConnectedError
from netkit.platforms.nvue import drain, getters, reply
from netkit.platforms.nvue.shell import ShellTransport
from netkit.platforms.nvue.transport import Transport
from netkit.platforms.platform import version_key
from netkit.platforms.ssh import SshTarget
from netkit.platforms.view import Reply

REST = "nvue-rest"
NEIGHBORS = "vrf default router bgp neighbor"
BRIEF_SINCE = (5, 12)
NOT_SAVED = re.compile(r'"auto-save":\s*\{\s*"\w+":\s*"(off|disabled)"')
REVISIONS = {"running": "applied", "startup": "startup", "candidate": "pending"}


class NvueReader(NetworkDriver):  # type: ignore[misc]
    """One switch, only to be read. Not for several threads at once."""

    platform = "nvue"

    def __init__(
        self,
        hostname: str,
        username: str,
        password: str,
        timeout: float = 60,
        optional_args: dict[str, Any] | None = None,
    ) -> None:
        given = optional_args or {}
        self.hostname, self.username, self.password, self.timeout = hostname, username, password, timeout
        self.device = str(given.get("device") or hostname)
        self._transport = self._transport_for(given)
        self._text = ""
        self._version = ""
        self._foreseen = ""
        self._kept_neighbors: dict[str, Any] | None = None

    def _transport_for(self, given: dict[str, Any]) -> Transport:
        is_rest = given.get("transport") == REST
        given = {"port": 8765, **given} if is_rest else given
        target = SshTarget.of(self.hostname, self.username, self.password, self.timeout, given)
        if not is_rest:
            return ShellTransport(target)
        from netkit.platforms.nvue.rest import RestTransport  # noqa: PLC0415 (most never need HTTPS)

        return RestTransport(target, str(given.get("certificate", "")))

    def open(self) -> None:
        """Connect."""
        try:
            self._transport.open()
        except AccessError as error:
            raise NotConnectedError(error.problems) from None

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def is_alive(self) -> dict[str, bool]:
        """Return whether the connection stands."""
        return {"is_alive": self._transport.is_alive}

    def running_files(self) -> Mapping[str, str | None]:
        """Return the running configuration; what netkit sets for a drain or a timer of its own is not part of it."""
        self._read()
        if "graceful-shutdown" not in self._text and not NOT_SAVED.search(self._text):
            return dict(reply.as_files(self._text))
        startup, applied = drain.tree_of(self._transport.config("startup")), drain.tree_of(self._text)
        if drain.is_own(applied, startup):
            return dict(reply.as_files(drain.unseen(self._text, startup)))
        if drain.is_ended(applied, startup) and self._transport.is_waiting():
            return dict(reply.as_files(drain.unseen(self._text, startup, drain.AUTO_SAVE)))
        return dict(reply.as_files(self._text))

    def foresee_sessions(self, version: str) -> None:
        """Read the sessions along with the configuration that is read next, for whoever asks for them then.

        How they are asked for depends on the release: where that is not the one foreseen, they are asked for anew.
        """
        self._foreseen = version

    def _read(self) -> None:
        foreseen = self._foreseen
        self._forget()
        if not foreseen:
            self._text = self._transport.config()
            return
        self._text, neighbors = self._transport.config_and(NEIGHBORS, _view(foreseen))
        self._kept_neighbors = neighbors if reply.version_in(self._text) == foreseen else None

    def _forget(self) -> None:
        """Forget what was read: it may not be so any more."""
        self._text, self._foreseen, self._kept_neighbors = "", "", None

    def os_version(self) -> str:
        """Return the release."""
        if not self._version:
            self._version = reply.version_in(self._text) or reply.version_of(self._transport.show("system"))
        if not self._version:
            raise AccessError(Problem(f"{self.device}: shows no release", "see whether it runs Cumulus Linux"))
        return self._version

    def sessions(self) -> tuple[SessionState, ...]:
        """Return the BGP sessions."""
        kept, self._kept_neighbors = self._kept_neighbors, None
        return reply.sessions(self._neighbors() if kept is None else kept)

    def _neighbors(self) -> dict[str, Any]:
        return self._transport.show(NEIGHBORS, _view(self.os_version()))

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return the answer to each command, in order; over REST those of `nv show` alone are known."""
        return self._transport.ask(commands)

    def get_config(
        self,
        retrieve: str = "all",
        full: bool = False,
        sanitized: bool = False,
        format: str = "text",  # noqa: A002
    ) -> dict[str, str]:
        """Return the configurations asked for; NVUE shows no secrets anyway."""
        del full, sanitized, format
        wanted = REVISIONS if retrieve == "all" else {retrieve: REVISIONS[retrieve]}
        return {name: self._transport.config(wanted[name]) if name in wanted else "" for name in REVISIONS}

    def get_facts(self) -> dict[str, Any]:
        """Return what the switch is."""
        return getters.facts(
            self._transport.show("system"), self._transport.show("platform"), self._transport.show("interface")
        )

    def get_interfaces(self) -> dict[str, Any]:
        """Return the state of each interface."""
        return getters.interfaces(self._transport.show("interface"))

    def get_interfaces_counters(self) -> dict[str, Any]:
        """Return the counters of each interface; -1 where NVUE does not tell."""
        return getters.counters(self._transport.show("interface"))

    def get_bgp_neighbors(self) -> dict[str, Any]:
        """Return the BGP sessions of the default VRF, by interface or address."""
        return getters.bgp_neighbors(self._transport.show("router bgp"), self._neighbors())

    def get_lldp_neighbors(self) -> dict[str, Any]:
        """Return who is at the other end of each cable."""
        return getters.lldp_neighbors(self._transport.show("interface lldp"))

    def get_optics(self) -> dict[str, Any]:
        """Return light and current of each lane."""
        return getters.optics(self._transport.show("platform transceiver"))

    def cli(self, commands: list[str], encoding: str = "text") -> dict[str, str]:
        """Run commands of the switch's shell; what they print, errors included, is returned."""
        if not isinstance(self._transport, ShellTransport):
            raise AccessError(Problem(f"{self.device}: REST has no command line", "use the transport ssh"))
        if encoding != "text":
            raise NotImplementedError(f"no {encoding} output; add -o json to the command")
        return {command: self._transport.printed(command) for command in commands}


def _view(version: str) -> str:
    """Return the view of the neighbors that tells everything."""
    return "detail" if version_key(version)[:2] >= BRIEF_SINCE else ""
