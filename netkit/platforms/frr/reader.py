"""Reader of a Linux switch with FRR, with NAPALM's getters and netkit's own methods."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from napalm.base.base import NetworkDriver

from netkit.errors import AccessError, Problem
from netkit.platforms import shell_batch
from netkit.platforms.driver import SessionState
from netkit.platforms.frr import reply
from netkit.platforms.frr.files import FRR_CONF, PLACES
from netkit.platforms.frr.reply import named
from netkit.platforms.json_access import UNKNOWN, rows
from netkit.platforms.linux_getters import LinuxGetters
from netkit.platforms.ssh import SshLine, SshTarget
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
