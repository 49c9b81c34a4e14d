"""Reading a Linux switch with FRR, in NAPALM's words and in netkit's."""

from collections.abc import Mapping, Sequence
from typing import Any

from napalm.base.base import NetworkDriver

from netkit.errors import AccessError, Problem
from netkit.platforms import shell_batch
from netkit.platforms.driver import SessionState
from netkit.platforms.frr import getters, reply
from netkit.platforms.frr.files import FRR_CONF, PLACES
from netkit.platforms.ssh import SshLine, SshTarget
from netkit.platforms.view import Reply

SUMMARY = "vtysh -c 'show bgp ipv4 unicast summary json'"
STATE = "see whether FRR runs: systemctl status frr"


class FrrReader(NetworkDriver):  # type: ignore[misc]
    """One switch, only to be read. Not for several threads at once."""

    platform = "frr"

    def __init__(
        self,
        hostname: str,
        username: str,
        password: str,
        timeout: float = 60,
        optional_args: dict[str, Any] | None = None,
    ) -> None:
        self.hostname, self.username, self.password, self.timeout = hostname, username, password, timeout
        self._line = SshLine(SshTarget.of(hostname, username, password, timeout, optional_args))
        self.device = self._line.target.device
        self._version = ""

    def open(self) -> None:
        """Connect."""
        self._line.open()

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def is_alive(self) -> dict[str, bool]:
        """Return whether the connection stands."""
        return {"is_alive": self._line.is_alive}

    def _read(self) -> dict[str, str]:
        """Return every file that is there; FRR's as it runs, and netkit's drain if there is one."""
        found = reply.pieces(self._line.run(reply.READING).stdout)
        if not reply.is_configuration(found.get(FRR_CONF, "")):
            raise self._access("FRR does not show its configuration", STATE)
        self._version = reply.version_in(found[FRR_CONF])
        found[FRR_CONF] = reply.running(found[FRR_CONF], found.get(reply.OWN_DRAIN, ""))
        return found

    def _access(self, what: str, remedy: str) -> AccessError:
        return AccessError(Problem(f"{self.device}: {what}", remedy))

    def running_files(self) -> Mapping[str, str | None]:
        """Return the running configuration; a drain of netkit's own is not part of it."""
        found = self._read()
        return {file: found.get(file) for file in PLACES}

    def os_version(self) -> str:
        """Return FRR's release."""
        if not self._version:
            self._version = reply.version_in(self._printed("vtysh -c 'show version'"))
        if not self._version:
            raise self._access("FRR shows no release", STATE)
        return self._version

    def sessions(self) -> tuple[SessionState, ...]:
        """Return the BGP sessions; none where BGP does not run."""
        try:
            return tuple(reply.sessions(self._printed(SUMMARY)))
        except (ValueError, TypeError, AttributeError):
            raise self._access("FRR does not show its sessions", STATE) from None

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return the answer to each command, in order; one that fails is an answer with a failure."""
        return shell_batch.ask(self._line, commands)

    def _printed(self, command: str) -> str:
        done = self._line.run(command)
        return done.stdout if done.exit_code == 0 else ""

    def _shown(self, command: str) -> Any:
        return reply.objects(self._printed(command))

    def get_config(
        self,
        retrieve: str = "all",
        full: bool = False,
        sanitized: bool = False,
        format: str = "text",  # noqa: A002
    ) -> dict[str, str]:
        """Return FRR's configuration: what runs, and what it starts with."""
        del full, sanitized, format
        commands = {"running": reply.VTYSH, "startup": f"cat {PLACES[FRR_CONF].path}"}
        wanted = {name: command for name, command in commands.items() if retrieve in {"all", name}}
        found = {name: self._printed(command) for name, command in wanted.items()}
        return {"running": "", "startup": "", "candidate": "", **found}

    def get_facts(self) -> dict[str, Any]:
        """Return what the switch is."""
        name, uptime = self._printed("hostname").strip(), self._printed("cat /proc/uptime")
        return getters.facts(name, self.os_version(), uptime, self._links())

    def _links(self, about: str = "link") -> list[Mapping[str, Any]]:
        found = self._shown(f"ip -j -s {about}")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def get_interfaces(self) -> dict[str, Any]:
        """Return the state of each interface."""
        return getters.interfaces(self._links(), self._shown("vtysh -c 'show interface json'"))

    def get_interfaces_counters(self) -> dict[str, Any]:
        """Return the counters of each interface."""
        return getters.counters(self._links())

    def get_bgp_neighbors(self) -> dict[str, Any]:
        """Return the BGP sessions of the default VRF."""
        return getters.bgp_neighbors(self._shown(SUMMARY), self._shown("vtysh -c 'show bgp neighbors json'"))

    def get_lldp_neighbors(self) -> dict[str, Any]:
        """Return who is at the other end of each cable."""
        return getters.lldp_neighbors(self._shown("lldpcli -f json0 show neighbors"))

    def cli(self, commands: list[str], encoding: str = "text") -> dict[str, str]:
        """Run commands of the switch's shell; what they print, errors included, is returned."""
        if encoding != "text":
            raise NotImplementedError(f"no {encoding} output; ask the command for it")
        return {command: self._line.run(command).said for command in commands}
