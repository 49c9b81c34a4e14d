"""Reading a switch that runs SONiC: NAPALM's getters, what netkit needs besides, and the state of a staged change."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from napalm.base.base import NetworkDriver

from netkit.errors import AccessError, Problem
from netkit.platforms import shell_batch
from netkit.platforms.change import Change
from netkit.platforms.compare import Situation, apply, compare
from netkit.platforms.config import Path
from netkit.platforms.driver import Candidate, SessionState
from netkit.platforms.frr.model import FRR_CONF
from netkit.platforms.json_access import UNKNOWN, count_or_unknown
from netkit.platforms.linux_getters import LinuxGetters
from netkit.platforms.secrets import SecretResolver
from netkit.platforms.sonic import model, procedure, reply, tables
from netkit.platforms.sonic.model import CONFIG_DB, MODEL
from netkit.platforms.sonic.procedure import Procedure
from netkit.platforms.sonic.strategy import FLAPPING, patch_s, strategy
from netkit.platforms.sonic.tables import Operation, Tables
from netkit.platforms.ssh import Done, SshShell, SshTarget
from netkit.platforms.view import Reply

RELOAD_S, PATCH_S = 900, 120
"""Time limits of a change; a patch that flaps ports gets more."""


@dataclass(frozen=True, slots=True)
class SonicState:
    """What a switch runs; without FRR text if SONiC generates FRR's configuration."""

    tables: Tables
    frr: str | None

    def files(self) -> dict[str, str | None]:
        return {CONFIG_DB: tables.text(self.tables), FRR_CONF: self.frr}


@dataclass(frozen=True, slots=True)
class Intended:
    """A staged change: the state before and after, and how to get there."""

    before: SonicState
    after: SonicState
    """Without FRR text if FRR does not change."""
    procedure: Procedure
    operations: tuple[Operation, ...]
    routes: frozenset[Path]
    """The paths that differ in FRR."""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing has to change."""
        return not self.procedure.method and not self.procedure.has_routing

    def undone(self, found: SonicState) -> Iterator[str]:
        """Yield what the switch does not run although it reports the change as applied."""
        yield from tables.undone(self.operations, found.tables)
        if self.after.frr is not None:
            remaining = _routes(found.frr, self.after.frr)
            yield from (" ".join(path) for path in sorted(remaining & self.routes))


def intended(before: SonicState, after: SonicState, method: str, *, reloads_back: bool = False) -> Intended:
    operations = tuple(tables.operations(before.tables, after.tables))
    is_reload = method == "reload" and bool(operations)
    has_routing = after.frr is not None
    flapping = {one.place[1].partition("|")[0] for one in operations if one.place[0] in FLAPPING and len(one.place) > 1}
    procedure = Procedure(
        method=method if operations else "",
        has_routing=has_routing,
        had_routing=before.frr is not None and (has_routing or is_reload),
        reloads_back=is_reload or reloads_back,
        longest_s=RELOAD_S if is_reload else PATCH_S + 2 * round(patch_s(len(flapping))),
    )
    routes = _routes(before.frr, after.frr) if after.frr is not None else frozenset()
    return Intended(before, after, procedure, operations, routes)


def planned(before: SonicState, candidate: Candidate, version: str, secrets: SecretResolver) -> Intended:
    """Build the change that a plan's candidate makes, with secrets inserted."""
    rendered = tables.read(candidate.files.get(CONFIG_DB, "{}"))
    after = secrets.tree(tables.changed(before.tables, candidate.changes, rendered))
    text = secrets.text(candidate.files.get(FRR_CONF, ""))
    is_split = bool(text) and tables.routing_mode(after) in model.SPLIT_MODES
    # A reload starts FRR with its saved file, so that ours has to be loaded in any case.
    is_due = candidate.method == "reload" or any(change.path[0] == FRR_CONF for change in candidate.changes)
    frr = model.whole(before.frr or "", text, MODEL.ownership.on(candidate.files)) if is_split and is_due else None
    # The updater accepts some changes that it refuses to undo.
    running = MODEL.parse({name: text for name, text in before.files().items() if text is not None})
    undo = tuple(Change(change.path, change.intended, change.running, change.risk) for change in candidate.changes)
    situation = Situation(undo, apply(running, candidate.changes), running, version)
    reloads_back = strategy(situation).method == "reload"
    return intended(before, SonicState(after, frr), candidate.method, reloads_back=reloads_back)


def _routes(running: str | None, intended_text: str) -> frozenset[Path]:
    changes = compare(MODEL, {FRR_CONF: running}, {FRR_CONF: intended_text}).changes
    return frozenset(change.path for change in changes)


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
    """A read-only connection to one switch that runs SONiC; not thread-safe."""

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
        self._shell.open()

    def close(self) -> None:
        self._shell.close()

    def is_alive(self) -> dict[str, bool]:
        return {"is_alive": self._shell.is_alive}

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Run commands; one that fails gives a reply with a failure. AccessError if the connection is lost."""
        return shell_batch.ask(self._shell.line, commands, shell=ROOT)

    def running_files(self) -> Mapping[str, str | None]:
        """The running configuration, without netkit's own drain."""
        return self._state().files()

    def _state(self) -> SonicState:
        found = self._running()
        config = self._tables(found)
        if tables.routing_mode(config) not in model.SPLIT_MODES:
            return SonicState(config, None)
        return SonicState(config, model.running(found.frr, found.forwarding, is_draining=found.is_draining))

    def _running(self) -> reply.SonicRunning:
        text = self._shell.read(READ + (VERSION if not self._version else ""))
        found = reply.running(text)
        if found is None:
            raise self._shell.garbled("shows something other than its configuration")
        self._version = self._version or reply.version_in(found.version)
        return found

    def _tables(self, found: reply.SonicRunning) -> tables.Tables:
        try:
            return tables.read(found.config)
        except tables.ShapeError as error:
            raise self._shell.garbled(f"its configuration {error}") from None

    def os_version(self) -> str:
        if not self._version:
            self._version = reply.version_in(self._shell.read(VERSION))
        if not self._version:
            raise AccessError(Problem(f"{self.device}: shows no release", "check whether it runs SONiC"))
        return self._version

    def sessions(self) -> tuple[SessionState, ...]:
        text = self._shell.read("vtysh -c 'show bgp summary json'")
        with self._expected("BGP sessions"):
            return reply.sessions(reply.summary(text))

    @contextlib.contextmanager
    def _expected(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, RecursionError):
            raise self._shell.garbled(f"cannot parse its {what}") from None

    def get_config(
        self,
        retrieve: str = "all",
        full: bool = False,
        sanitized: bool = False,
        format: str = "text",  # noqa: A002
    ) -> dict[str, str]:
        """CONFIG_DB as JSON; there is no candidate."""
        del full, sanitized, format
        configs = {"running": "", "startup": "", "candidate": ""}
        if retrieve in {"all", "running"}:
            configs["running"] = tables.text(self._tables(self._running()))
        if retrieve in {"all", "startup"}:
            configs["startup"] = self._shell.read(f"cat {procedure.STARTUP} 2>/dev/null || echo")
        return configs

    def get_facts(self) -> dict[str, Any]:
        shown, uptime = self._shell.read("show version && cat /proc/uptime").rstrip().rsplit("\n", 1)
        config = self._tables(self._running())
        with self._expected("uptime"):
            return facts(reply.fields(shown), self.os_version(), config, float(uptime.split()[0]))

    def get_interfaces(self) -> dict[str, Any]:
        status = self._shell.read("show interfaces status")
        return interfaces(self._tables(self._running()), reply.table(status))

    def get_interfaces_counters(self) -> dict[str, Any]:
        with self._expected("counters"):
            return counters(reply.hashes(self._shell.read(BY_OBJECT)))

    def get_bgp_neighbors(self) -> dict[str, Any]:
        text = self._shell.read("vtysh -c 'show bgp neighbors json'")
        with self._expected("BGP neighbours"):
            return bgp_neighbors(reply.neighbors(text))

    def get_lldp_neighbors(self) -> dict[str, Any]:
        return lldp_neighbors(reply.table(self._shell.read("show lldp table")))

    def get_optics(self) -> dict[str, Any]:
        with self._expected("module readings"):
            return optics(reply.hashes(self._shell.read(SENSORS)))

    def _printed(self, command: str) -> str:
        return self._shell.read(command)

    def cli(self, commands: list[str], encoding: str = "text") -> dict[str, str]:
        """Run shell commands on the switch; the output includes errors."""
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
    """Convert ports, with their operational state from `status`. All have the MAC address of the switch."""
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
    return {
        port: {name: count_or_unknown(stats.get(field)) for name, field in COUNTERS.items()}
        for port, stats in found.items()
        if stats
    }


def bgp_neighbors(neighbors: Mapping[str, Any]) -> dict[str, Any]:
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
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        end = {"hostname": row.get("RemoteDevice", ""), "port": row.get("RemotePortID", "")}
        found.setdefault(row.get("LocalPort", ""), []).append(end)
    return found


def optics(found: Hashes) -> dict[str, Any]:
    lanes = {port: list(_lanes(sensors)) for port, sensors in found.items()}
    return {port: {"physical_channels": {"channel": one}} for port, one in lanes.items() if one}


def _lanes(sensors: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for lane in range(1, MOST_LANES + 1):
        names = (f"rx{lane}power", f"tx{lane}power", f"tx{lane}bias")
        readings = [_reading(sensors.get(name)) for name in names]
        if any(reading is not None for reading in readings):
            values = [float(UNKNOWN) if reading is None else reading for reading in readings]
            # SONiC has no average or extremes
            states = [dict.fromkeys(("instant", "avg", "min", "max"), value) for value in values]
            keys = ("input_power", "output_power", "laser_bias_current")
            yield {"index": lane - 1, "state": dict(zip(keys, states, strict=True))}


def _reading(text: str | None) -> float | None:
    try:
        return float((text or "").removesuffix("dBm").removesuffix("mA"))
    except ValueError:
        return None


ROOT = "sudo -n sh -s"
NEEDS_PASSWORD = "a password is required"  # noqa: S105 (a message of sudo)
ERROR_PREFIXES = ("Error:", "Failed to", "error:", "% ")


class SonicShell(SshShell):
    """A shell on one switch, with scripts run as root."""

    question = "sonic-db-cli PING"  # the databases are up during a reload

    def printed(self, command: str) -> str:
        """Run a command as the account itself; the output includes errors."""
        done = self.line.run(command)
        return done.stdout + done.stderr

    def run(self, script: str, timeout_s: float | None = None) -> Done:
        """Run a script as root; the caller evaluates the exit code."""
        # Braces make the shell read all of it first: its commands must not read the rest of the script from stdin.
        done = self.line.run(ROOT, timeout_s, f"{{\n{script}\n}} </dev/null\n")
        if done.exit_code != 0 and NEEDS_PASSWORD in done.stderr:
            what = f"{self.device}: sudo asks for a password"
            raise AccessError(Problem(what, "allow the account sudo without a password, as SONiC does for admin"))
        return done

    def read(self, script: str) -> str:
        """The output of a read-only script; raises AccessError if it fails."""
        done = self.run(script)
        if done.exit_code != 0:
            raise AccessError(Problem(f"{self.device}: cannot be read: {reason(done)}", "check whether SONiC is up"))
        return done.stdout

    def garbled(self, what: str) -> AccessError:
        return AccessError(Problem(f"{self.device}: {what}", "check whether SONiC is up, and try again"))


def reason(done: Done) -> str:
    """Find the error message in output: its line, and the next one if it ends in a colon."""
    lines = [line.strip() for line in done.output.splitlines() if line.strip() and not line.strip().isdecimal()]
    if not lines:
        return f"exit code {done.exit_code}"
    at = next((index for index, line in enumerate(lines) if line.startswith(ERROR_PREFIXES)), len(lines) - 1)
    return " ".join(lines[at : at + 2]) if lines[at].endswith(":") else lines[at]
