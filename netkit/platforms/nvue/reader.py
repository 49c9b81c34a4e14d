"""Reading a switch that runs NVUE: NAPALM's getters, and what netkit needs besides."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from napalm.base.base import NetworkDriver
from napalm.base.exceptions import ConnectionException, MergeConfigException, ReplaceConfigException

from netkit.errors import AccessError, DeviceError, Problem
from netkit.platforms.driver import SessionState
from netkit.platforms.json_access import UNKNOWN, count_or_unknown
from netkit.platforms.linux_getters import LinuxGetters
from netkit.platforms.nvue import drain, transport
from netkit.platforms.nvue.shell import ShellTransport
from netkit.platforms.nvue.transport import Transport, seconds, version_of
from netkit.platforms.platform import version_key
from netkit.platforms.ssh import SshTarget
from netkit.platforms.view import Reply

REST = "nvue-rest"
NEIGHBORS = "vrf default router bgp neighbor"
BRIEF_SINCE = (5, 12)
NOT_SAVED = re.compile(r'"auto-save":\s*\{\s*"\w+":\s*"(off|disabled)"')
REVISIONS = {"running": "applied", "startup": "startup", "candidate": "pending"}


class NvueReader(LinuxGetters, NetworkDriver):  # type: ignore[misc]
    """A read-only connection to one switch that runs NVUE; not thread-safe."""

    platform = "nvue"

    def __init__(
        self,
        hostname: str,
        username: str,
        password: str,
        timeout: float = 60,
        optional_args: dict[str, Any] | None = None,
    ) -> None:
        options = optional_args or {}
        self.hostname, self.username, self.password, self.timeout = hostname, username, password, timeout
        self.device = str(options.get("device") or hostname)
        self._transport = self._transport_for(options)
        self._text = ""
        self._version = ""
        self._foreseen = ""
        self._prefetched_neighbors: dict[str, Any] | None = None

    def _transport_for(self, options: dict[str, Any]) -> Transport:
        is_rest = options.get("transport") == REST
        if is_rest:
            options = {"port": 8765, **options}
        target = SshTarget.of(self.hostname, self.username, self.password, self.timeout, options)
        if not is_rest:
            return ShellTransport(target)
        from netkit.platforms.nvue.rest import RestTransport  # noqa: PLC0415 (only for REST)

        return RestTransport(target, str(options.get("certificate", "")))

    def open(self) -> None:
        try:
            self._transport.open()
        except AccessError as error:
            raise NotConnectedError(error.problems) from None

    def close(self) -> None:
        self._transport.close()

    def is_alive(self) -> dict[str, bool]:
        return {"is_alive": self._transport.is_alive}

    def running_files(self) -> Mapping[str, str | None]:
        """The running configuration, without what netkit sets for a drain or for its revert timer."""
        self._read()
        if "graceful-shutdown" not in self._text and not NOT_SAVED.search(self._text):
            return dict(transport.as_files(self._text))
        startup, applied = drain.tree_of(self._transport.config("startup")), drain.tree_of(self._text)
        if drain.is_own(applied, startup):
            return dict(transport.as_files(drain.unseen(self._text, startup)))
        if drain.is_ended(applied, startup) and self._transport.is_waiting():
            return dict(transport.as_files(drain.unseen(self._text, startup, drain.AUTO_SAVE)))
        return dict(transport.as_files(self._text))

    def foresee_sessions(self, version: str) -> None:
        """Read the sessions in the same round trip as the next configuration.

        The command depends on the release: if the switch runs another one than `version`, they are read again.
        """
        self._foreseen = version

    def _read(self) -> None:
        foreseen = self._foreseen
        self._forget()
        if not foreseen:
            self._text = self._transport.config()
            return
        self._text, neighbors = self._transport.config_and(NEIGHBORS, _view(foreseen))
        self._prefetched_neighbors = neighbors if transport.version_in(self._text) == foreseen else None

    def _forget(self) -> None:
        """Drop cached state, which a change makes stale."""
        self._text, self._foreseen, self._prefetched_neighbors = "", "", None

    def os_version(self) -> str:
        if not self._version:
            self._version = transport.version_in(self._text) or transport.version_of(self._transport.show("system"))
        if not self._version:
            raise AccessError(Problem(f"{self.device}: shows no release", "check whether it runs Cumulus Linux"))
        return self._version

    def sessions(self) -> tuple[SessionState, ...]:
        neighbors, self._prefetched_neighbors = self._prefetched_neighbors, None
        return transport.sessions(self._neighbors() if neighbors is None else neighbors)

    def _neighbors(self) -> dict[str, Any]:
        return self._transport.show(NEIGHBORS, _view(self.os_version()))

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Run commands; over REST only `nv show` commands are supported."""
        return self._transport.ask(commands)

    def get_config(
        self,
        retrieve: str = "all",
        full: bool = False,
        sanitized: bool = False,
        format: str = "text",  # noqa: A002
    ) -> dict[str, str]:
        """Configurations; NVUE always masks secrets."""
        del full, sanitized, format
        wanted = REVISIONS if retrieve == "all" else {retrieve: REVISIONS[retrieve]}
        return {name: self._transport.config(wanted[name]) if name in wanted else "" for name in REVISIONS}

    def get_facts(self) -> dict[str, Any]:
        return facts(
            self._transport.show("system"), self._transport.show("platform"), self._transport.show("interface")
        )

    def get_interfaces(self) -> dict[str, Any]:
        return interfaces(self._transport.show("interface"))

    def get_interfaces_counters(self) -> dict[str, Any]:
        return counters(self._transport.show("interface"))

    def get_bgp_neighbors(self) -> dict[str, Any]:
        return bgp_neighbors(self._transport.show("router bgp"), self._neighbors())

    def get_lldp_neighbors(self) -> dict[str, Any]:
        return lldp_neighbors(self._transport.show("interface lldp"))

    def get_optics(self) -> dict[str, Any]:
        return optics(self._transport.show("platform transceiver"))

    def _printed(self, command: str) -> str:
        if not isinstance(self._transport, ShellTransport):
            raise AccessError(Problem(f"{self.device}: REST has no command line", "use the transport ssh"))
        return self._transport.printed(command)

    def cli(self, commands: list[str], encoding: str = "text") -> dict[str, str]:
        """Run shell commands on the switch; the output includes errors."""
        if encoding != "text":
            raise NotImplementedError(f"no {encoding} output; add -o json to the command")
        return {command: self._printed(command) for command in commands}


def _view(version: str) -> str:
    """The view of neighbours with all values."""
    return "detail" if version_key(version)[:2] >= BRIEF_SINCE else ""


Shown = Mapping[str, Any]
SPEED = re.compile(r"(\d+(?:\.\d+)?)([MG])")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
DBM = re.compile(r"(-?\d+(?:\.\d+)?) dBm")


def facts(system: Shown, platform: Shown, interfaces: Shown) -> dict[str, Any]:
    name = str(system.get("hostname", ""))
    return {
        "uptime": float(seconds(system.get("uptime", UNKNOWN))),
        "vendor": str(platform.get("manufacturer") or "NVIDIA"),
        "os_version": version_of(system),
        "serial_number": str(platform.get("serial-number", "")),
        "model": str(platform.get("product-name") or system.get("platform", "")),
        "hostname": name,
        "fqdn": name,
        "interface_list": sorted(interfaces),
    }


def interfaces(shown: Shown) -> dict[str, Any]:
    return {name: _interface(found) for name, found in _objects(shown)}


def _interface(found: Shown) -> dict[str, Any]:
    link = _object(found, "link")
    state = link.get("state")
    name = next(iter(state), "") if isinstance(state, dict) else state  # a text since 5.11, an object before
    speed = SPEED.fullmatch(str(link.get("speed", "")))
    return {
        "is_up": str(link.get("oper-status") or name or "") == "up",
        "is_enabled": str(link.get("admin-status", "up")) == "up",
        "description": str(found.get("description", "")),
        "last_flapped": -1.0,
        "speed": float(speed[1]) * (1000 if speed[2] == "G" else 1) if speed else -1.0,
        "mtu": count_or_unknown(link.get("mtu")),
        "mac_address": str(link.get("mac-address") or link.get("mac") or "").upper(),
    }


def counters(shown: Shown) -> dict[str, Any]:
    found = ((name, _object(_object(one, "link"), "stats")) for name, one in _objects(shown))
    return {name: _counters(stats) for name, stats in found if stats}


def _counters(stats: Shown) -> dict[str, int]:
    """Convert counters; NVUE does not separate unicast, multicast and broadcast, so that all count as unicast."""
    keys = {
        "tx_errors": "out-errors",
        "rx_errors": "in-errors",
        "tx_discards": "out-drops",
        "rx_discards": "in-drops",
        "tx_octets": "out-bytes",
        "rx_octets": "in-bytes",
        "tx_unicast_packets": "out-pkts",
        "rx_unicast_packets": "in-pkts",
    }
    names = ("tx_multicast_packets", "rx_multicast_packets", "tx_broadcast_packets", "rx_broadcast_packets")
    return {**{name: count_or_unknown(stats.get(key)) for name, key in keys.items()}, **dict.fromkeys(names, UNKNOWN)}


def bgp_neighbors(bgp: Shown, neighbors: Shown) -> dict[str, Any]:
    local_as = count_or_unknown(bgp.get("autonomous-system"))
    peers = {name: _peer(found, local_as) for name, found in _objects(neighbors)}
    return {"global": {"router_id": str(bgp.get("router-id", "")), "peers": peers}}


def _peer(found: Shown, local_as: int) -> dict[str, Any]:
    families = {
        name.partition("-")[0]: {
            "received_prefixes": count_or_unknown(family.get("rx-prefix")),
            "accepted_prefixes": count_or_unknown(family.get("rx-prefix")),
            "sent_prefixes": count_or_unknown(family.get("tx-prefix")),
        }
        for name, family in _objects(_object(found, "address-family"))
        if name.endswith("-unicast")
    }
    return {
        "local_as": count_or_unknown(_object(found, "local-as").get("asn", local_as)),
        "remote_as": count_or_unknown(found.get("remote-as")),
        "remote_id": str(found.get("remote-router-id", "")),
        "is_up": str(found.get("session-state", "")).lower() == "established",
        "is_enabled": str(found.get("shutdown", "off")) not in {"on", "enabled"},
        "description": str(found.get("description", "")),
        "uptime": seconds(found.get("uptime", UNKNOWN)),
        "address_family": families,
    }


def lldp_neighbors(shown: Shown) -> dict[str, Any]:
    """Convert neighbours, newest first: NVUE keeps listing former ones."""
    found = {name: _object(_object(one, "lldp"), "neighbor") for name, one in _objects(shown)}
    result: dict[str, Any] = {}
    for interface, neighbors in found.items():
        for name, neighbor in sorted(_objects(neighbors), key=lambda item: count_or_unknown(item[1].get("age"))):
            port = _object(neighbor, "port")
            label = port.get("description") if port.get("type") == "mac" else port.get("name")
            hostname = str(_object(neighbor, "chassis").get("system-name") or name)
            result.setdefault(interface, []).append({"hostname": hostname, "port": str(label or "")})
    return result


def optics(shown: Shown) -> dict[str, Any]:
    found = {name: list(_lanes(_object(one, "channel"))) for name, one in _objects(shown)}
    return {name: {"physical_channels": {"channel": lanes}} for name, lanes in found.items() if lanes}


def _lanes(channels: Shown) -> Iterator[dict[str, Any]]:
    for index, (_, lane) in enumerate(_objects(channels)):
        yield {
            "index": index,
            "state": {
                "input_power": _reading(lane, "rx-power", "power", DBM),
                "output_power": _reading(lane, "tx-power", "power", DBM),
                "laser_bias_current": _reading(lane, "tx-bias-current", "current", NUMBER),
            },
        }


def _reading(lane: Shown, name: str, key: str, pattern: re.Pattern[str]) -> dict[str, float]:
    """Convert one reading; NVUE shows no average or extremes, so that all four are the same."""
    node = lane.get(name)
    text = str(node.get(key, "") if isinstance(node, dict) else node or "")
    found = pattern.search(text)
    value = float(found[1] if found and found.groups() else found[0]) if found else float(UNKNOWN)
    return {"instant": value, "avg": value, "min": value, "max": value}


def _objects(found: Shown) -> Iterator[tuple[str, Shown]]:
    yield from ((name, one) for name, one in found.items() if isinstance(one, dict))


def _object(found: Shown, key: str) -> Shown:
    one = found.get(key)
    return one if isinstance(one, dict) else {}


class NotConnectedError(AccessError, ConnectionException):  # type: ignore[misc]
    """A device cannot be opened."""


class MergeRefusedError(DeviceError, MergeConfigException):  # type: ignore[misc]
    """A device refuses a merge candidate."""


class ReplaceRefusedError(DeviceError, ReplaceConfigException):  # type: ignore[misc]
    """A device refuses a replacement configuration, or would become unreachable through it."""
