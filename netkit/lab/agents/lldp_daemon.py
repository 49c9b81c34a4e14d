"""LLDP of every device: the real lldpd in the node, on the fabric's ports only.

Switches announce what their NOS would: Cumulus and FRR the interface name, SONiC the port's alias, EOS its own name for
the port; hosts announce the MAC address of the NIC, lldpd's default. Frames are sent more often than the default of
30 s, so that a moved cable is noticed soon: a deviation of the lab.
"""

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from netkit.design.fabric import Switch
from netkit.lab.node import Node
from netkit.lab.state import PortState, SwitchState

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class LldpChassis:
    """A device's own LLDP identity; `kind` is the chassis ID subtype: mac, local or another."""

    kind: str = ""
    identifier: str = ""
    name: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class LldpNeighbor:
    """The neighbour on a kernel interface."""

    interface: str
    chassis: LldpChassis
    port_kind: str
    port: str
    port_description: str


@dataclass(frozen=True, slots=True)
class LldpState:
    """What LLDP knows: the local chassis, and the neighbours by kernel interface."""

    kernel_names: Mapping[str, str]
    chassis: LldpChassis
    neighbors: tuple[LldpNeighbor, ...]


DESCRIPTIONS = {
    "nvue": "Cumulus-Linux {version} (Linux Kernel, {model})",
    "sonic": "SONiC Software Version: SONiC.{version} - HwSku: {model} - Distribution: Debian",
    "eos": "Arista Networks EOS version {version} running on an Arista Networks {model}",
    "frr": "Linux with FRRouting {version} on {model}",
}


def description(switch: Switch) -> str:
    """sysDescr, which LLDP announces too."""
    text = DESCRIPTIONS.get(switch.platform, DESCRIPTIONS["frr"])
    return text.format(version=switch.version, model=switch.model.name)


NAME = "lldpd"
CONFIG = "/run/netkit/lldpd.conf"
CHROOT = "/run/lldpd"
CLIENT = "/usr/sbin/lldpcli"
STAND_IN = "/run/netkit/bin/lldpcli"
"""Replaces lldpcli in a lab without root, which lacks the account that Debian lets run it."""
TX_INTERVAL_S = 5
START_S = 60
REPEAT_S = 10
PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Announcement:
    """The LLDP identity of one kernel interface; lldpd chooses an identifier that is empty."""

    interface: str
    identifier: str = ""
    description: str = ""


class Lldpd:
    """The lldpd of one device."""

    def __init__(self, node: Node, tx_interval_s: int = TX_INTERVAL_S, client: str = "") -> None:
        self._node = node
        self._client = client or (CLIENT if os.access(CLIENT, os.X_OK) else STAND_IN)
        self._tx_interval_s = tx_interval_s
        self._config = ""
        self._names: dict[str, str] = {}
        """Kernel interface → its announced identifier, unless lldpd chooses it."""
        self._revision = 0
        self._has_read = False
        """Whether lldpd has read its initial configuration; only then does its client wait for it."""

    def apply(self, state: SwitchState | None = None) -> None:
        """Announce a switch as configured; a host has no state and announces itself."""
        if (state is not None and not state.has_lldp) or not self._node.kernel_names:
            self.end()
            return
        hostname = state.hostname if state is not None else self._node.name
        announcements = tuple(self._announcements(state))
        text = config(hostname, announcements, self._tx_interval_s)
        is_running = self._node.is_running(NAME)
        if is_running and text == self._config:
            return
        if is_running:
            self._reload(text)
        else:
            self._write(text)
            self._node.file(CHROOT).mkdir(parents=True, exist_ok=True)
            if self._client == STAND_IN:
                self._install_client()
            self._has_read = False
            self._node.spawn(NAME, *self._command())
        self._config = text
        self._names = {one.interface: one.identifier for one in announcements if one.identifier}

    def repeat(self) -> None:
        """Reload the configuration after ports were unplugged: lldpd forgets the settings of a removed port.

        lldpd may notice the port's return late and forget again, so repeat until it shows the wanted identifiers.
        """
        deadline = time.monotonic() + REPEAT_S
        while self._config and self._node.is_running(NAME):
            self._reload(self._config)
            known = {one.interface: one.port for one in neighbors(self._show("interfaces"))}
            if all(known.get(name) == wanted for name, wanted in self._names.items()) or time.monotonic() > deadline:
                return
            time.sleep(PAUSE_S)

    def end(self) -> None:
        self._node.end(NAME)
        self._config = ""

    def neighbors(self) -> tuple[LldpNeighbor, ...]:
        return neighbors(self._show("neighbors"))

    def chassis(self) -> LldpChassis:
        return chassis(self._show("chassis"))

    def state(self) -> LldpState:
        """The input of LLDP-MIB."""
        if not self._node.is_running(NAME):
            return LldpState(self._node.kernel_names, LldpChassis(), ())
        return LldpState(self._node.kernel_names, self.chassis(), self.neighbors())

    def _show(self, what: str) -> str:
        return self._node.run(self._client, "-f", "json0", "show", what).stdout

    def _reload(self, text: str) -> None:
        """Reconfigure a running lldpd, once it has read its initial configuration."""
        deadline = time.monotonic() + START_S
        while not self._has_read and platform(self._show("configuration")) != self._mark:
            if time.monotonic() > deadline or not self._node.is_running(NAME):
                raise RuntimeError(f"{self._node.name}: lldpd does not read its configuration")
            time.sleep(PAUSE_S)
        self._write(text)
        done = self._node.run(self._client, "-c", CONFIG)
        if done.exit_code != 0:
            raise RuntimeError(f"{self._node.name}: lldpd rejects its configuration: {done.stderr.strip()}")
        self._has_read = True

    def _install_client(self) -> None:
        system = Path("/usr/bin/python3")
        code = Path(__file__).with_name("lldp_client.py").read_text(encoding="utf-8")
        file = self._node.file(STAND_IN)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!{system if system.exists() else sys.executable} -IS\n{code}", encoding="utf-8")
        file.chmod(0o755)

    def _write(self, text: str) -> None:
        self._revision += 1
        file = self._node.file(CONFIG)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}configure system platform {_word(self._mark)}\n", encoding="utf-8")

    @property
    def _mark(self) -> str:
        """The last line of the configuration, which shows that it was read; LLDP does not announce the platform."""
        return f"revision {self._revision}"

    def _command(self) -> list[str]:
        interfaces = [*self._interfaces()]
        command = [
            "/usr/sbin/lldpd",
            "-dd",
            "-L",
            self._client,
            "-O",
            CONFIG,
            "-I",
            ",".join(interfaces),
            "-C",
            interfaces[0],
        ]
        device = self._node.device
        if isinstance(device, Switch):
            command += ["-S", description(device)]
            command += ["-m", device.management.address] if device.management else []
        return command

    def _interfaces(self) -> tuple[str, ...]:
        return tuple(self._node.kernel_names.values())

    def _announcements(self, state: SwitchState | None) -> Iterator[Announcement]:
        configured = {port.name: port for port in state.ports} if state is not None else {}
        if state is None:
            yield from map(Announcement, self._interfaces())
            return
        for name, interface in self._node.kernel_names.items():
            port = configured.get(name, PortState(name))
            yield Announcement(interface, port.alias or name, port.description or name)


def config(hostname: str, announcements: Iterable[Announcement], tx_interval_s: int) -> str:
    """The configuration in lldpcli's syntax."""
    ports = tuple(announcements)
    lines = [f"configure system hostname {_word(hostname)}", f"configure lldp tx-interval {tx_interval_s}"]
    if any(port.identifier for port in ports):
        lines.append("configure lldp portidsubtype ifname")
    for port in ports:
        at = f"configure ports {port.interface} lldp"
        if port.identifier not in {"", port.interface}:
            lines.append(f"{at} portidsubtype local {_word(port.identifier)}")
        if port.description:
            lines.append(f"{at} portdescription {_word(port.description)}")
    return "".join(f"{line}\n" for line in lines)


def _word(text: str) -> str:
    """Quote a value for lldpcli."""
    return '"' + re.sub(r'(["\\])', r"\\\1", "".join(filter(str.isprintable, text))) + '"'


def neighbors(text: str) -> tuple[LldpNeighbor, ...]:
    """Parse `lldpcli -f json0 show neighbors`; unreadable output yields no neighbours."""
    return tuple(
        _neighbor(interface)
        for top in lldp_dicts(lldp_parsed(text).get("lldp"))
        for interface in lldp_dicts(top.get("interface"))
        if interface.get("name")
    )


def chassis(text: str) -> LldpChassis:
    """Parse `lldpcli -f json0 show chassis`."""
    found = (
        _chassis(entry)
        for top in lldp_dicts(lldp_parsed(text).get("local-chassis"))
        for entry in lldp_dicts(top.get("chassis"))
    )
    return next(found, LldpChassis())


def platform(text: str) -> str:
    """The platform string from `lldpcli -f json0 show configuration`."""
    found = (
        lldp_value(entry, "platform")
        for top in lldp_dicts(lldp_parsed(text).get("configuration"))
        for entry in lldp_dicts(top.get("config"))
    )
    return next(found, "")


def _neighbor(interface: Mapping[str, Json]) -> LldpNeighbor:
    port = next(lldp_dicts(interface.get("port")), {})
    kind, identifier = _identity(port)
    device = _chassis(next(lldp_dicts(interface.get("chassis")), {}))
    return LldpNeighbor(str(interface["name"]), device, kind, identifier, lldp_value(port, "descr"))


def _chassis(entry: Mapping[str, Json]) -> LldpChassis:
    kind, identifier = _identity(entry)
    return LldpChassis(kind, identifier, lldp_value(entry, "name"), lldp_value(entry, "descr"))


def _identity(entry: Mapping[str, Json]) -> tuple[str, str]:
    identity = next(lldp_dicts(entry.get("id")), {})
    return str(identity.get("type", "")), str(identity.get("value", ""))


def lldp_value(entry: Mapping[str, Json], key: str) -> str:
    return str(next(lldp_dicts(entry.get(key)), {}).get("value", ""))


def lldp_parsed(text: str) -> Mapping[str, Json]:
    try:
        parsed: Json = json.loads(text)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def lldp_dicts(value: Json) -> Iterator[Mapping[str, Json]]:
    """Yield the objects of a list; json0 wraps every value in lists."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield item
