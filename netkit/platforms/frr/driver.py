"""NAPALM driver for Linux switches with FRR, over SSH, which netkit uses too."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from napalm.base.base import NetworkDriver

from netkit.errors import AccessError, DeviceError, Problem
from netkit.platforms import shell_batch
from netkit.platforms.change import Change
from netkit.platforms.compare import compare
from netkit.platforms.config_lines import missing
from netkit.platforms.driver import Candidate, SessionState, given_text
from netkit.platforms.frr import procedure, reply
from netkit.platforms.frr.files import FRR_CONF, NETPLAN, PLACES, RELOAD
from netkit.platforms.frr.model import MODEL, PASSWORD
from netkit.platforms.frr.procedure import differing, drain_lines, left, merged, undrain_lines
from netkit.platforms.frr.reply import named
from netkit.platforms.json_access import UNKNOWN, rows
from netkit.platforms.linux_getters import LinuxGetters
from netkit.platforms.secrets import SECRET, SecretResolver
from netkit.platforms.ssh import Done, SshLine, SshTarget
from netkit.platforms.view import Reply

SUMMARY = "vtysh -c 'show bgp ipv4 unicast summary json'"
STATE = "check whether FRR runs: systemctl status frr"


class FrrReader(LinuxGetters, NetworkDriver):  # type: ignore[misc]
    """One switch, read-only. Not thread-safe."""

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
        self._line.open()

    def close(self) -> None:
        self._line.close()

    def is_alive(self) -> dict[str, bool]:
        return {"is_alive": self._line.is_alive}

    def _read(self) -> dict[str, str]:
        """Read every existing file; FRR's as it runs, and netkit's drain if there is one."""
        found = reply.pieces(self._line.run(reply.READING).stdout)
        if not reply.is_configuration(found.get(FRR_CONF, "")):
            raise self._access("FRR does not show its configuration", STATE)
        self._version = reply.version_in(found[FRR_CONF])
        found[FRR_CONF] = reply.running(found[FRR_CONF], found.get(reply.OWN_DRAIN, ""))
        return found

    def _access(self, what: str, remedy: str) -> AccessError:
        return AccessError(Problem(f"{self.device}: {what}", remedy))

    def running_files(self) -> Mapping[str, str | None]:
        """Read the running configuration, without a drain by netkit."""
        found = self._read()
        return {file: found.get(file) for file in PLACES}

    def os_version(self) -> str:
        """Read FRR's release."""
        if not self._version:
            self._version = reply.version_in(self._printed("vtysh -c 'show version'"))
        if not self._version:
            raise self._access("FRR shows no release", STATE)
        return self._version

    def sessions(self) -> tuple[SessionState, ...]:
        """Read the BGP sessions; empty if BGP does not run."""
        try:
            return tuple(reply.sessions(self._printed(SUMMARY)))
        except (ValueError, TypeError, AttributeError):
            raise self._access("FRR does not show its sessions", STATE) from None

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Run commands and return a reply to each, in order; a command that fails is a reply with a failure."""
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
        """Read FRR's running and startup configuration."""
        del full, sanitized, format
        commands = {"running": reply.VTYSH, "startup": f"cat {PLACES[FRR_CONF].path}"}
        wanted = {name: command for name, command in commands.items() if retrieve in {"all", name}}
        found = {name: self._printed(command) for name, command in wanted.items()}
        return {"running": "", "startup": "", "candidate": "", **found}

    def get_facts(self) -> dict[str, Any]:
        name, uptime = self._printed("hostname").strip(), self._printed("cat /proc/uptime")
        return facts(name, self.os_version(), uptime, self._links())

    def _links(self, about: str = "link") -> list[Mapping[str, Any]]:
        found = self._shown(f"ip -j -s {about}")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def get_interfaces(self) -> dict[str, Any]:
        return interfaces(self._links(), self._shown("vtysh -c 'show interface json'"))

    def get_interfaces_counters(self) -> dict[str, Any]:
        return counters(self._links())

    def get_bgp_neighbors(self) -> dict[str, Any]:
        """Read the BGP sessions of the default VRF."""
        return bgp_neighbors(self._shown(SUMMARY), self._shown("vtysh -c 'show bgp neighbors json'"))

    def get_lldp_neighbors(self) -> dict[str, Any]:
        return lldp_neighbors(self._shown("lldpcli -f json0 show neighbors"))

    def cli(self, commands: list[str], encoding: str = "text") -> dict[str, str]:
        """Run shell commands and return their output, errors included."""
        if encoding != "text":
            raise NotImplementedError(f"no {encoding} output; ask the command for it")
        return {command: self._line.run(command).output for command in commands}


def facts(hostname: str, version: str, uptime: str, links: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    words = uptime.split()
    return {
        "uptime": float(words[0]) if words else -1.0,
        "vendor": "Linux",
        "os_version": version,
        "serial_number": "",
        "model": "FRR",
        "hostname": hostname,
        "fqdn": hostname,
        "interface_list": sorted(str(link.get("ifname", "")) for link in links),
    }


def interfaces(links: Iterable[Mapping[str, Any]], described: Mapping[str, Any]) -> dict[str, Any]:
    return {str(link.get("ifname", "")): _interface(link, described) for link in links}


def _interface(link: Mapping[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    flags = link.get("flags", [])
    about = described.get(str(link.get("ifname", "")), {})
    return {
        "is_up": "LOWER_UP" in flags and "UP" in flags,
        "is_enabled": "UP" in flags,
        "description": str(about.get("description", "")) if isinstance(about, dict) else "",
        "last_flapped": -1.0,
        "speed": -1.0,
        "mtu": int(link.get("mtu", UNKNOWN)),
        "mac_address": str(link.get("address", "")).upper(),
    }


def counters(links: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Convert the counters of each interface; the kernel does not separate unicast and broadcast."""
    return {str(link.get("ifname", "")): _counters(link.get("stats64", {})) for link in links}


def _counters(stats: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for direction in ("rx", "tx"):
        values = stats.get(direction, {})
        found |= {
            f"{direction}_errors": int(values.get("errors", UNKNOWN)),
            f"{direction}_discards": int(values.get("dropped", UNKNOWN)),
            f"{direction}_octets": int(values.get("bytes", UNKNOWN)),
            f"{direction}_unicast_packets": int(values.get("packets", UNKNOWN)),
            f"{direction}_multicast_packets": int(values.get("multicast", UNKNOWN)),
            f"{direction}_broadcast_packets": UNKNOWN,
        }
    return found


def bgp_neighbors(summary: Mapping[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the BGP sessions of the default VRF, by interface or address."""
    peers = {name: _peer(peer, described.get(name, {}), summary) for name, peer in named(summary.get("peers"))}
    return {"global": {"router_id": str(summary.get("routerId", "")), "peers": peers}}


def _peer(peer: Mapping[str, Any], details: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    received = int(peer.get("pfxRcd", 0))
    is_up = peer.get("state") == "Established"
    return {
        "local_as": int(summary.get("as", UNKNOWN)),
        "remote_as": int(peer.get("remoteAs", UNKNOWN)),
        "remote_id": str(details.get("remoteRouterId", "")),
        "is_up": is_up,
        "is_enabled": "Admin" not in str(peer.get("state", "")),
        "description": str(details.get("nbrDesc", "")),
        "uptime": int(peer.get("peerUptimeMsec", 0)) // 1000 if is_up else UNKNOWN,
        "address_family": {
            "ipv4": {
                "received_prefixes": received,
                "accepted_prefixes": received,
                "sent_prefixes": int(peer.get("pfxSnt", UNKNOWN)),
            }
        },
    }


def lldp_neighbors(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the LLDP neighbours of lldpcli's json0."""
    found: dict[str, list[dict[str, str]]] = {}
    for lldp in rows(shown.get("lldp")):
        for interface in rows(lldp.get("interface")):
            end = {
                "hostname": _first_value(interface, "chassis", "name"),
                "port": _first_value(interface, "port", "id"),
            }
            found.setdefault(str(interface.get("name", "")), []).append(end)
    return found


def _first_value(interface: Mapping[str, Any], about: str, key: str) -> str:
    """Find the first value of a key; json0 wraps everything in lists."""
    for one in rows(interface.get(about)):
        for value in rows(one.get(key)):
            return str(value.get("value", ""))
    return ""


NETWORKD_S = 20
UNTIMED_S = 600  # a commit without a timer is confirmed immediately; this reverts it if netkit dies in between


class FrrDriver(FrrReader):
    """One Linux switch with FRR. Not thread-safe."""

    def __init__(
        self,
        hostname: str,
        username: str,
        password: str,
        timeout: float = 60,
        optional_args: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(hostname, username, password, timeout, optional_args)
        self._secrets = SecretResolver((optional_args or {}).get("secrets"))
        self._changes: tuple[Change, ...] = ()
        self._is_staged = self._is_kept = False

    def close(self) -> None:
        """Disconnect; a commit that waits for its confirmation keeps waiting until its timer expires."""
        if self._line.is_alive and (self._is_staged or self._is_kept):
            self.discard_config()
        super().close()

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage the files that differ, merged with the parts on the switch that netkit does not own."""
        self.discard_config()
        if candidate.changes:
            running = self._read()
            self._stage(merged(candidate.changes, running, candidate.files), running, candidate.changes)

    def load_merge_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage lines of frr.conf on top of the running ones."""
        self._load_text(given_text(filename, config), replaces=False)

    def load_replace_candidate(self, filename: str | None = None, config: str | None = None) -> None:
        """Stage a complete frr.conf in place of the running one."""
        self._load_text(given_text(filename, config), replaces=True)

    def _load_text(self, text: str, *, replaces: bool) -> None:
        self.discard_config()
        running = self._read()
        whole = text if replaces else f"{running[FRR_CONF]}{text}"
        changes = compare(MODEL, {FRR_CONF: running[FRR_CONF]}, {FRR_CONF: whole}).changes if replaces else ()
        self._stage({FRR_CONF: whole}, running, changes)

    def _stage(self, files: dict[str, str | None], running: dict[str, str], changes: tuple[Change, ...]) -> None:
        changed = frozenset(files)
        texts = {file: self._secrets.text(text) for file, text in files.items() if text is not None}
        self._run(procedure.FRESH, "a change waits for its confirmation", "confirm it, roll it back, or wait")
        for file, text in texts.items():
            self._line.put(f"{procedure.AFTER}/{file}", text, PLACES[file].mode)
        for file in changed - texts.keys():
            self._line.put(f"{procedure.GONE}/{file}", "")
        if NETPLAN in changed:
            before, after = running.get(NETPLAN, ""), texts.get(NETPLAN, "")
            for folder, ports in ((procedure.AFTER, left(before, after)), (procedure.BEFORE, left(after, before))):
                self._line.put(f"{folder}.left", "".join(f"{port}\n" for port in ports))
        self._line.put(procedure.SCRIPT, procedure.script(changed))
        self._line.put(f"{procedure.FOLDER}/boot.service", procedure.BOOT_UNIT, 0o644)
        self._run(
            procedure.prepare(changed),
            "the running files cannot be saved for a rollback",
            "check whether its disk is full",
        )
        if FRR_CONF in changed:
            self._line.put(f"{procedure.BEFORE}/{FRR_CONF}", running[FRR_CONF], PLACES[FRR_CONF].mode)
        self._is_staged, self._changes = True, changes
        self._refuse_unreadable(texts.keys())

    def _refuse_unreadable(self, changed: Collection[str]) -> None:
        """Have the switch validate the new files, and those for the rollback, before anything changes."""
        if NETPLAN in changed:
            what = "netplan rejects the file"
            self._run(procedure.LOOK_AT_NETPLAN, what, "check the templates, and the version of netplan")
        if FRR_CONF in changed:
            for folder, name in ((procedure.AFTER, "intended"), (procedure.BEFORE, "running")):
                command = f"vtysh -C -f {folder}/{FRR_CONF}"
                self._run(command, f"FRR rejects the {name} configuration", "check the templates, and FRR's version")

    def _run(self, command: str, what: str, remedy: str, timeout_s: float | None = None) -> Done:
        """Run a command that must succeed."""
        done = self._line.run(command, timeout_s)
        if done.exit_code != 0:
            reason = " ".join(self._masked(done.output).split()[-60:])
            raise DeviceError(Problem(f"{self.device}: {what}{': ' if reason else ''}{reason}", remedy))
        return done

    def _masked(self, text: str) -> str:
        return self._secrets.hidden(PASSWORD.sub(rf"\1 {SECRET}", text))

    def compare_config(self) -> str:
        """Read what frr-reload.py would do, and list the changes of other files; empty if there are none."""
        if not self._is_staged:
            return ""
        found = []
        for change in self._changes:
            if change.path[0] == FRR_CONF:
                continue
            place = " ".join(change.path)
            if change.running is not None:
                found.append(f"-{place} {change.running}".rstrip() + "\n")
            if change.intended is not None:
                found.append(f"+{place} {change.intended}".rstrip() + "\n")
        command = f"[ ! -e {procedure.AFTER}/{FRR_CONF} ] || {RELOAD} --test {procedure.AFTER}/{FRR_CONF}"
        done = self._run(command, "frr-reload.py fails", "check whether FRR runs")
        return self._masked("".join([*found, *reply.differences(done.stdout)])).strip()

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply; with `revert_in`, the switch itself reverts after that many seconds, else it is kept immediately."""
        del message
        if not self._is_staged:
            raise DeviceError(Problem(f"{self.device}: nothing is staged", "load a candidate first"))
        what, remedy = "the change does not take effect", "it reverts by its timer; see journalctl"
        changes = self._changes
        try:
            self._is_staged = False
            self._run(procedure.begin(revert_in or UNTIMED_S, str(time.time_ns())), what, remedy)
            # FRR can skip a line and still report success: compare with what runs now.
            running = {file: text for file, text in self._read().items() if MODEL.reads(file)}
            left = [" / ".join(change.path) for change in missing(changes, MODEL.parse(running))]
            left = left or self._missing_in_kernel(changes)
            if left:
                what = f"{self.device}: reports the change as applied, but does not run it: {left[0]}"
                raise DeviceError(Problem(what, remedy))
        except DeviceError:
            if revert_in is None:
                self.rollback()
            raise
        if revert_in is None:
            self._keep()
            self._is_kept = True

    def _missing_in_kernel(self, changes: tuple[Change, ...]) -> list[str]:
        """Find changes of addresses and MTUs that interfaces do not show; wait for networkd to apply them."""
        ports = tuple(change for change in changes if change.path[0] == NETPLAN)
        deadline_s = time.monotonic() + NETWORKD_S
        while left := list(differing(ports, self._links("addr"))) if ports else []:
            if time.monotonic() > deadline_s:
                break
            time.sleep(0.5)
        return left

    def has_pending_commit(self) -> bool:
        """Whether a commit waits for its confirmation, or is being reverted."""
        return self._line.run(procedure.IS_PENDING).exit_code == 0

    def confirm_commit(self) -> None:
        """Keep the change: install the files where a reboot finds them."""
        self._keep()
        self._line.run(procedure.CLEAN)

    def _keep(self) -> None:
        what, remedy = (
            "no commit waits for a confirmation",
            "its timer expired: check its configuration, and plan again",
        )
        self._run(procedure.IS_WAITING, what, remedy)
        self._run(
            procedure.KEEP,
            "the change cannot be kept",
            "check whether its disk is full; the change reverts by its timer",
        )

    def discard_config(self) -> None:
        """Discard the staged change."""
        self._line.run(f"{procedure.IS_PENDING} || {procedure.CLEAN}")
        self._is_staged, self._is_kept, self._changes = False, False, ()

    def rollback(self) -> None:
        """Revert a commit that waits for its confirmation, else the last one of this object."""
        if self._is_kept or self.has_pending_commit():
            self._run(procedure.BACK, "the rollback fails", "run frr-reload.py and netplan on it by hand")
            self._line.run(procedure.CLEAN)
        self._is_staged, self._is_kept, self._changes = False, False, ()

    def drain(self) -> None:
        """Signal every neighbour to route around the switch, until `undrain` or a reboot."""
        found = self._read()
        if found.get(reply.OWN_DRAIN):
            return
        lines = drain_lines(found[FRR_CONF])
        if not lines:
            return
        self._line.put(procedure.DRAIN, lines)
        self._load_lines(procedure.DRAIN, "the switch cannot be drained")

    def undrain(self) -> None:
        """End a drain by netkit; an intended one stays."""
        own = self._line.run(f"cat {procedure.DRAIN}")
        if own.exit_code == 0:
            file = f"{procedure.DRAIN}.end"
            waiting = f"{procedure.AFTER}/{FRR_CONF}"  # a change that waits for its confirmation is there
            where = f"{procedure.IS_WAITING} && [ -e {waiting} ] && cat {waiting} || cat {PLACES[FRR_CONF].path}"
            self._line.put(file, undrain_lines(own.stdout, self._printed(where)))
            self._load_lines(file, "the drain does not end")
            self._line.run(f"rm -f {procedure.DRAIN} {file}")

    def _load_lines(self, file: str, what: str) -> None:
        self._run(f"vtysh -f {file}", what, "check whether bgpd runs")


DRIVER = FrrDriver
