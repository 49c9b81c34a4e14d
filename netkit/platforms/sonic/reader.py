"""Reading a switch that runs community SONiC, in NAPALM's words and in netkit's."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from napalm.base.base import NetworkDriver

from netkit.errors import AccessError, Problem
from netkit.platforms import shell_batch
from netkit.platforms.driver import SessionState
from netkit.platforms.json_access import UNKNOWN, count_or_unknown
from netkit.platforms.linux_getters import LinuxGetters
from netkit.platforms.sonic import procedure, reply, routing, tables
from netkit.platforms.sonic.candidate import SonicState
from netkit.platforms.sonic.tables import Tables
from netkit.platforms.ssh import Done, SshShell, SshTarget
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


class SonicReader(LinuxGetters, NetworkDriver):  # type: ignore[misc]
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
            return facts(reply.fields(shown), self.os_version(), have, float(uptime.split()[0]))

    def get_interfaces(self) -> dict[str, Any]:
        """Return the state of each port."""
        status = self._shell.read("show interfaces status")
        return interfaces(self._tables(self._running()), reply.table(status))

    def get_interfaces_counters(self) -> dict[str, Any]:
        """Return the counters of each port."""
        with self._expected("counters"):
            return counters(reply.hashes(self._shell.read(BY_OBJECT)))

    def get_bgp_neighbors(self) -> dict[str, Any]:
        """Return the BGP sessions of the default VRF, by interface or address."""
        text = self._shell.read("vtysh -c 'show bgp neighbors json'")
        with self._expected("BGP neighbours"):
            return bgp_neighbors(reply.neighbors(text))

    def get_lldp_neighbors(self) -> dict[str, Any]:
        """Return who is at the other end of each cable."""
        return lldp_neighbors(reply.table(self._shell.read("show lldp table")))

    def get_optics(self) -> dict[str, Any]:
        """Return light and current of each lane."""
        with self._expected("readings of its modules"):
            return optics(reply.hashes(self._shell.read(SENSORS)))

    def _printed(self, command: str) -> str:
        return self._shell.read(command)

    def cli(self, commands: list[str], encoding: str = "text") -> dict[str, str]:
        """Run commands of the switch's shell; what they print, errors included, is returned."""
        if encoding != "text":
            raise NotImplementedError(f"no {encoding} output from the commands of SONiC")
        return {command: self._shell.printed(command) for command in commands}


Hashes = Mapping[str, Mapping[str, str]]
COUNTERS = {
    "tx_errors": "SAI_PORT_STAT_IF_OUT_ERRORS",
    "rx_errors": "SAI_PORT_STAT_IF_IN_ERRORS",
    "tx_discards": "SAI_PORT_STAT_IF_OUT_DISCARDS",
    "rx_discards": "SAI_PORT_STAT_IF_IN_DISCARDS",
    "tx_octets": "SAI_PORT_STAT_IF_OUT_OCTETS",
    "rx_octets": "SAI_PORT_STAT_IF_IN_OCTETS",
    "tx_unicast_packets": "SAI_PORT_STAT_IF_OUT_UCAST_PKTS",
    "rx_unicast_packets": "SAI_PORT_STAT_IF_IN_UCAST_PKTS",
    "tx_multicast_packets": "SAI_PORT_STAT_IF_OUT_MULTICAST_PKTS",
    "rx_multicast_packets": "SAI_PORT_STAT_IF_IN_MULTICAST_PKTS",
    "tx_broadcast_packets": "SAI_PORT_STAT_IF_OUT_BROADCAST_PKTS",
    "rx_broadcast_packets": "SAI_PORT_STAT_IF_IN_BROADCAST_PKTS",
}
MOST_LANES = 8


def facts(shown: Mapping[str, str], version: str, tables: Tables, uptime_s: float) -> dict[str, Any]:
    """Return what the switch is."""
    name = str(tables.get("DEVICE_METADATA", {}).get("localhost", {}).get("hostname", ""))
    return {
        "uptime": uptime_s,
        "vendor": "SONiC",
        "os_version": version,
        "serial_number": shown.get("Serial Number", ""),
        "model": shown.get("Model Number") or shown.get("HwSKU", ""),
        "hostname": name,
        "fqdn": name,
        "interface_list": sorted(tables.get("PORT", {})),
    }


def interfaces(tables: Tables, status: Iterable[Mapping[str, str]]) -> dict[str, Any]:
    """Return the state of each port, of which the status says what is up. All have the MAC address of the switch."""
    mac = str(tables.get("DEVICE_METADATA", {}).get("localhost", {}).get("mac", "")).upper()
    shown = {row.get("Interface", ""): row for row in status}
    return {
        name: {
            "is_up": shown.get(name, {}).get("Oper") == "up",
            "is_enabled": row.get("admin_status") == "up",
            "description": str(row.get("description", "")),
            "last_flapped": -1.0,
            "speed": float(count_or_unknown(row.get("speed"))),
            "mtu": count_or_unknown(row.get("mtu")),
            "mac_address": mac,
        }
        for name, row in tables.get("PORT", {}).items()
    }


def counters(found: Hashes) -> dict[str, Any]:
    """Return the counters of each port."""
    return {
        port: {name: count_or_unknown(stats.get(field)) for name, field in COUNTERS.items()}
        for port, stats in found.items()
        if stats
    }


def bgp_neighbors(neighbors: Mapping[str, Any]) -> dict[str, Any]:
    """Return the BGP sessions of the default VRF."""
    router_id = next((str(one.get("localRouterId", "")) for one in neighbors.values()), "")
    return {"global": {"router_id": router_id, "peers": {name: _peer(one) for name, one in neighbors.items()}}}


def _peer(found: Mapping[str, Any]) -> dict[str, Any]:
    is_up = found.get("bgpState") == "Established"
    return {
        "local_as": count_or_unknown(found.get("localAs")),
        "remote_as": count_or_unknown(found.get("remoteAs")),
        "remote_id": str(found.get("remoteRouterId", "")),
        "is_up": is_up,
        "is_enabled": not found.get("adminShutDown", False),
        "description": str(found.get("nbrDesc", "")),
        "uptime": count_or_unknown(found.get("bgpTimerUpMsec")) // 1000 if is_up else UNKNOWN,
        "address_family": dict(_families(found.get("addressFamilyInfo"))),
    }


def _families(found: object) -> Iterator[tuple[str, dict[str, int]]]:
    for name, family in found.items() if isinstance(found, dict) else ():
        if name.endswith("Unicast") and isinstance(family, dict):
            accepted = count_or_unknown(family.get("acceptedPrefixCounter"))
            yield (
                name.removesuffix("Unicast"),
                {
                    "received_prefixes": accepted,
                    "accepted_prefixes": accepted,
                    "sent_prefixes": count_or_unknown(family.get("sentPrefixCounter")),
                },
            )


def lldp_neighbors(rows: Iterable[Mapping[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return who is at the other end of each cable."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        end = {"hostname": row.get("RemoteDevice", ""), "port": row.get("RemotePortID", "")}
        found.setdefault(row.get("LocalPort", ""), []).append(end)
    return found


def optics(found: Hashes) -> dict[str, Any]:
    """Return light and current by lane, of the modules that show any."""
    lanes = {port: list(_lanes(sensors)) for port, sensors in found.items()}
    return {port: {"physical_channels": {"channel": one}} for port, one in lanes.items() if one}


def _lanes(sensors: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for lane in range(1, MOST_LANES + 1):
        names = (f"rx{lane}power", f"tx{lane}power", f"tx{lane}bias")
        values = [_number(sensors.get(name)) for name in names]
        if any(value is not None for value in values):
            words = ("input_power", "output_power", "laser_bias_current")
            state = {word: _reading(value) for word, value in zip(words, values, strict=True)}
            yield {"index": lane - 1, "state": state}


def _reading(value: float | None) -> dict[str, float]:
    """Return one value; SONiC shows no average or extremes, so that they are the same value."""
    shown = float(UNKNOWN) if value is None else value
    return {"instant": shown, "avg": shown, "min": shown, "max": shown}


def _number(value: str | None) -> float | None:
    try:
        return float((value or "").removesuffix("dBm").removesuffix("mA"))
    except ValueError:
        return None


ROOT = "sudo -n sh -s"
NEEDS_PASSWORD = "a password is required"  # noqa: S105 (what sudo says)
TELLING = ("Error:", "Failed to", "error:", "% ")


class SonicShell(SshShell):
    """The way into one switch."""

    def printed(self, command: str) -> str:
        """Return what a command of the account's own prints, errors included."""
        done = self.line.run(command)
        return done.stdout + done.stderr

    def run(self, script: str, timeout_s: float | None = None) -> Done:
        """Run a script as root; what it exits with is for the caller to judge."""
        # Read whole before it runs: what it starts must not find the rest of it on its standard input.
        done = self.line.run(ROOT, timeout_s, f"{{\n{script}\n}} </dev/null\n")
        if done.exit_code != 0 and NEEDS_PASSWORD in done.stderr:
            what = f"{self.device}: sudo asks for a password"
            raise AccessError(Problem(what, "give the account sudo without one, as SONiC's own admin has"))
        return done

    def read(self, script: str) -> str:
        """Return what a script prints that only reads."""
        done = self.run(script)
        if done.exit_code != 0:
            raise AccessError(Problem(f"{self.device}: cannot be read: {reason(done)}", "see whether SONiC is up"))
        return done.stdout

    def garbled(self, what: str) -> AccessError:
        """Return the error for an answer that cannot be one."""
        return AccessError(Problem(f"{self.device}: {what}", "see whether SONiC is up, and try again"))


def reason(done: Done) -> str:
    """Return what of an output says what went wrong: the line that tells, and the one that it announces."""
    lines = [line.strip() for line in done.output.splitlines() if line.strip() and not line.strip().isdecimal()]
    if not lines:
        return f"exit code {done.exit_code}"
    at = next((index for index, line in enumerate(lines) if line.startswith(TELLING)), len(lines) - 1)
    return " ".join(lines[at : at + 2]) if lines[at].endswith(":") else lines[at]
