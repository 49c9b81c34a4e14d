"""Reading a switch that runs community SONiC, in NAPALM's words and in netkit's."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from napalm.base.base import NetworkDriver

from netkit.errors import AccessError, Problem
from netkit.platforms import shell_batch
from netkit.platforms.driver import SessionState
from netkit.platforms.sonic import getters, procedure, reply, routing, tables
from netkit.platforms.sonic.candidate import SonicState
from netkit.platforms.sonic.shell import ROOT, SonicShell
from netkit.platforms.ssh import SshTarget
from netkit.platforms.view import Reply

NEXT = f"printf '\\n{reply.MARK}\\n'"
READ = f"""show runningconfiguration all || exit 1
{NEXT}; [ ! -e {procedure.DRAINED} ] || echo draining
{NEXT}; file={procedure.FRR}/frr.conf
if [ -e {procedure.NEXT_CONF} ] && [ -d {procedure.WAITING} ]; then file={procedure.NEXT_CONF}; fi
grep -E '^(no )?(fpm|zebra) ' $file 2>/dev/null
{NEXT}
"""
VERSION = "cat /etc/sonic/sonic_version.yml 2>/dev/null || show version\n"
BY_OBJECT = """oids=$(sonic-db-cli COUNTERS_DB hgetall COUNTERS_PORT_NAME_MAP) || exit 1
echo "$oids" | tr -d "{}' " | tr ',' '\\n' | while IFS=: read -r port oid; do
  printf '%s\\t%s\\n' "$port" "$(sonic-db-cli COUNTERS_DB hgetall "COUNTERS:$oid")"
done
"""
SENSORS = """keys=$(sonic-db-cli STATE_DB keys 'TRANSCEIVER_DOM_SENSOR|*') || exit 1
for key in $keys; do printf '%s\\t%s\\n' "${key#*|}" "$(sonic-db-cli STATE_DB hgetall "$key")"; done
"""


class SonicReader(NetworkDriver):  # type: ignore[misc]
    """One switch, only to be read. Not for several threads at once."""

    platform = "sonic"

    def __init__(
        self,
        hostname: str,
        username: str,
        password: str,
        timeout: float = 60,
        optional_args: dict[str, Any] | None = None,
    ) -> None:
        target = SshTarget.of(hostname, username, password, timeout, optional_args)
        self.hostname, self.username, self.password, self.timeout = hostname, username, password, timeout
        self.device = target.device
        self._shell = SonicShell(target)
        self._version = ""

    def open(self) -> None:
        """Connect."""
        self._shell.open()

    def close(self) -> None:
        """Hang up."""
        self._shell.close()

    def is_alive(self) -> dict[str, bool]:
        """Return whether the connection stands."""
        return {"is_alive": self._shell.is_alive}

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return what each command prints, in order; a failure of one is an answer. AccessError when hung up."""
        return shell_batch.ask(self._shell.line, commands, shell=ROOT)

    def running_files(self) -> Mapping[str, str | None]:
        """Return the running configuration; a drain of netkit's own is no part of it."""
        return self._state().files()

    def _state(self) -> SonicState:
        found = self._running()
        have = self._tables(found)
        if tables.routing_mode(have) not in routing.SPLIT_MODES:
            return SonicState(have, None)
        return SonicState(have, routing.running(found.frr, found.forwarding, is_draining=found.is_draining))

    def _running(self) -> reply.SonicRunning:
        text = self._shell.read(READ + (VERSION if not self._version else ""))
        found = reply.running(text)
        if found is None:
            raise self._shell.garbled("shows no configuration, but something else")
        self._version = self._version or reply.version_in(found.version)
        return found

    def _tables(self, found: reply.SonicRunning) -> tables.Tables:
        try:
            return tables.read(found.config)
        except tables.ShapeError as error:
            raise self._shell.garbled(f"what it shows as its configuration {error}") from None

    def os_version(self) -> str:
        """Return the release."""
        if not self._version:
            self._version = reply.version_in(self._shell.read(VERSION))
        if not self._version:
            raise AccessError(Problem(f"{self.device}: shows no release", "see whether it runs SONiC"))
        return self._version

    def sessions(self) -> tuple[SessionState, ...]:
        """Return the BGP sessions."""
        text = self._shell.read("vtysh -c 'show bgp summary json'")
        with self._expected("BGP sessions"):
            return reply.sessions(reply.summary(text))

    @contextlib.contextmanager
    def _expected(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, RecursionError):
            raise self._shell.garbled(f"asked for {what}, it answers with something else") from None

    def get_config(
        self,
        retrieve: str = "all",
        full: bool = False,
        sanitized: bool = False,
        format: str = "text",  # noqa: A002
    ) -> dict[str, str]:
        """Return the configurations asked for, as CONFIG_DB in JSON; there is no candidate."""
        del full, sanitized, format
        have = {"running": "", "startup": "", "candidate": ""}
        if retrieve in {"all", "running"}:
            have["running"] = tables.text(self._tables(self._running()))
        if retrieve in {"all", "startup"}:
            have["startup"] = self._shell.read(f"cat {procedure.STARTUP} 2>/dev/null || echo")
        return have

    def get_facts(self) -> dict[str, Any]:
        """Return what the switch is."""
        shown, uptime = self._shell.read("show version && cat /proc/uptime").rstrip().rsplit("\n", 1)
        have = self._tables(self._running())
        with self._expected("its uptime"):
            return getters.facts(reply.fields(shown), self.os_version(), have, float(uptime.split()[0]))

    def get_interfaces(self) -> dict[str, Any]:
        """Return the state of each port."""
        status = self._shell.read("show interfaces status")
        return getters.interfaces(self._tables(self._running()), reply.table(status))

    def get_interfaces_counters(self) -> dict[str, Any]:
        """Return the counters of each port."""
        with self._expected("counters"):
            return getters.counters(reply.hashes(self._shell.read(BY_OBJECT)))

    def get_bgp_neighbors(self) -> dict[str, Any]:
        """Return the BGP sessions of the default VRF, by interface or address."""
        text = self._shell.read("vtysh -c 'show bgp neighbors json'")
        with self._expected("BGP neighbours"):
            return getters.bgp_neighbors(reply.neighbors(text))

    def get_lldp_neighbors(self) -> dict[str, Any]:
        """Return who is at the other end of each cable."""
        return getters.lldp_neighbors(reply.table(self._shell.read("show lldp table")))

    def get_optics(self) -> dict[str, Any]:
        """Return light and current of each lane."""
        with self._expected("readings of its modules"):
            return getters.optics(reply.hashes(self._shell.read(SENSORS)))

    def cli(self, commands: list[str], encoding: str = "text") -> dict[str, str]:
        """Run commands of the switch's shell; what they print, errors included, is returned."""
        if encoding != "text":
            raise NotImplementedError(f"no {encoding} output from the commands of SONiC")
        return {command: self._shell.printed(command) for command in commands}
