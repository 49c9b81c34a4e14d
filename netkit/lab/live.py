"""A running node: its namespaces, programs and kernel state; and which of its ports are drained."""

import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from netkit.design.fabric import Host, Switch
from netkit.lab import namespace_holder, netlink, routing
from netkit.lab.agents.gnmi import GnmiAgent
from netkit.lab.agents.lldp_daemon import Lldpd
from netkit.lab.agents.snmp_agent import SnmpAgent
from netkit.lab.layout import NodeSpec
from netkit.lab.model.wiring import KernelPort
from netkit.lab.namespace_holder import Holder, ProgramRunner, write_boot_id
from netkit.lab.reading import NicReading, SwitchPortReading, TrafficReading
from netkit.lab.services import LabServices
from netkit.lab.state import SwitchState
from netkit.lab.traffic import marking
from netkit.lab.traffic.marking import NOTHING_SENT, PortMarks, Sent

SHUTDOWN = "bgp graceful-shutdown"
ROUTE_MAP = re.compile(r"^route-map (\S+) permit \d+\n((?:(?!exit|route-map).*\n)*)", re.MULTILINE)
SHUTDOWN_COMMUNITY = re.compile(r"^ +set community .*\bgraceful-shutdown\b", re.MULTILINE)
PEER_GROUP = re.compile(r"^ *neighbor (\S+)(?: interface)? peer-group (\S+)$", re.MULTILINE)
MAP_OUT = re.compile(r"^ *neighbor (\S+) route-map (\S+) out$", re.MULTILINE)


def drained_ports(config: str, switch: Switch, kernel_names: Mapping[str, str]) -> frozenset[str]:
    """The drained ports. A fully drained leaf counts as not drained: its hosts have no other path."""
    if SHUTDOWN in (line.strip() for line in config.splitlines()):
        drained = frozenset(kernel_names)
    else:
        draining_maps = {name for name, body in ROUTE_MAP.findall(config) if SHUTDOWN_COMMUNITY.search(body)}
        group_of = dict(PEER_GROUP.findall(config))
        map_of = dict(MAP_OUT.findall(config))
        by_address = {port.name: port.neighbor for port in switch.fabric_ports}
        drained = frozenset(
            name
            for name, interface in kernel_names.items()
            if any(
                map_of.get(one, map_of.get(group_of.get(one, ""))) in draining_maps
                for one in (interface, by_address.get(name, ""))
            )
        )
    is_cut_off = switch.role == "leaf" and drained >= {port.name for port in switch.fabric_ports}
    return frozenset() if is_cut_off else drained


FILTERS = "netkit_filters"


def port_filters(state: SwitchState, kernel_names: Mapping[str, str]) -> str:
    """The nftables ruleset of the ingress filters of a switch's ports; empty without filters."""
    lines = []
    for port in state.ports:
        for rule in port.rules if port.name in kernel_names else ():
            words = [f'iifname "{kernel_names[port.name]}"']
            words += [f"ip saddr {rule.source}"] if rule.source else []
            words += [f"ip daddr {rule.destination}"] if rule.destination else []
            lines.append(f"    {' '.join(words)} counter {'accept' if rule.is_permit else 'drop'}")
    chain = "  chain inbound {\n    type filter hook prerouting priority raw\n" + "\n".join(lines) + "\n  }\n"
    return f"table ip {FILTERS} {{ }}\nflush table ip {FILTERS}\ntable ip {FILTERS} {{\n{chain}}}\n"


FRESH_S = 0.5
CROWD_S = 15.0
"""Older counters do not show whether a port is congested now."""
FLASH_BYTES = 64 << 20
EgressCounters = tuple[PortMarks, Sent]
NOTHING_COUNTED: EgressCounters = (PortMarks(), NOTHING_SENT)


class LiveNode(ProgramRunner):
    """One device of a running lab; personalities see it as the `Node` protocol."""

    def __init__(self, spec: NodeSpec, holder: Holder, saved: Path, log: Path, services: LabServices) -> None:
        super().__init__(holder, log)
        self.name = spec.name
        self.device: Switch | Host = spec.device
        self.kernel_names: Mapping[str, str] = spec.kernel_names
        self.spec = spec
        self.saved = saved
        self.lock = threading.RLock()
        self.refused = frozenset[str]()
        """Services closed to netkit: its connections to a node count as those of the management gateway."""
        self.on_refused: Callable[[], None] = lambda: None
        """Called when they change."""
        self.changes = 0
        """The number of configuration changes so far."""
        self.lldp = Lldpd(self)
        self.agent: SnmpAgent | None = None
        self.gnmi: GnmiAgent | None = None
        self._services = services
        self._links = netlink.KernelState()
        self._frr: str | None = None
        self._marking = ""
        self._filters = ""
        self._read: tuple[float, Mapping[str, KernelPort]] = (-FRESH_S, {})
        self._egress: Mapping[str, EgressCounters] = {}

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a spawned program."""
        if self.is_running(name):
            self._programs[name].send_signal(number)

    def ip(self, commands: Iterable[str]) -> str:
        """Run `ip -batch`."""
        text = "".join(f"{command}\n" for command in commands)
        if not text:
            return ""
        done = self.run("ip", "-batch", "-", stdin=text)
        if done.exit_code != 0:
            raise RuntimeError(f"{self.name}: the kernel refused: {done.stderr.strip()}")
        return done.stdout

    def vty(self, command: str, daemon: str = "bgpd") -> str:
        """Run a command in a running FRR daemon."""
        return routing.ask(self, daemon, command)

    def restart_dead_daemons(self) -> list[str]:
        """Restart the routing daemons that have died with their saved configuration, as watchfrr does."""
        dead = [daemon for daemon in routing.DAEMONS if self.has_died(daemon)]
        if "zebra" in dead:  # the others need it
            dead = [daemon for daemon in routing.DAEMONS if daemon in dead or self.is_running(daemon)]
        if dead:
            routing.start(self, dead)
            for daemon in dead:
                self.run("vtysh", "-b", "-d", daemon)
        return dead

    def realise(self, state: SwitchState) -> None:
        """Apply a switch's configuration to links, FRR, marking, SNMP, LLDP, gNMI and the hardware model."""
        self.changes += 1
        after = netlink.wanted(state, self.kernel_names, self.spec.beside)
        text = routing.slower_bfd(state.frr, self._services.bfd_interval_ms)
        if self.spec.personality != "frr" and routing.part(
            self, self._frr or "", netlink.going_down(self._links, after)
        ):
            self._frr = None  # those that stay configured are added again once their links are down
        self.ip(netlink.steps(self.name, self._links, after))
        self._links = after
        hostname = state.hostname
        if hostname and self.file("/etc/hostname").read_text(encoding="utf-8").strip() != hostname:
            self.file("/etc/hostname").write_text(f"{hostname}\n", encoding="utf-8")
            self.run("hostname", hostname)
        if text != self._frr:
            self._frr = None
            routing.load(self, text, is_atomic=self.spec.personality == "eos")
            self._frr = text
        ruleset = marking.ruleset(state, self.kernel_names)
        if ruleset != self._marking:
            self.nft(ruleset)
            self._marking = ruleset
        filters = port_filters(state, self.kernel_names)
        if filters != self._filters:
            self.nft(filters)
            self._filters = filters
        self._services.model.configure_switch(self.name, state, time.monotonic())
        self._refuse(state)
        state = replace(
            state,
            snmp=None if "snmp" in self.refused else state.snmp,
            gnmi=None if "gnmi" in self.refused else state.gnmi,
        )
        self.lldp.apply(state)
        if self.agent is not None:
            self.agent.apply(state)
        if self.gnmi is not None:
            self.gnmi.apply(state)

    def _refuse(self, state: SwitchState) -> None:
        management = self.device.management if isinstance(self.device, Switch) else None
        refused = state.refused(management.gateway if management else "")
        if refused != self.refused:
            self.refused = refused
            self.on_refused()

    def nft(self, ruleset: str) -> None:
        """Load an nftables ruleset."""
        done = self.run("nft", "-f", "-", stdin=ruleset)
        if done.exit_code != 0:
            raise RuntimeError(f"{self.name}: nft refused: {done.stderr.strip()}")

    def ports(self) -> tuple[SwitchPortReading, ...]:
        """Read every port of a switch."""
        drained: frozenset[str] = frozenset()
        if isinstance(self.device, Switch):
            with suppress(OSError):
                drained = drained_ports(self.vty("show running-config"), self.device, self.kernel_names)
        return self._services.port_readings(self.name, self.kernel_ports(), drained)

    def port(self, name: str) -> SwitchPortReading | None:
        """Read one port; None if it is not in use."""
        return next((port for port in self.ports() if port.name == name), None)

    def nics(self, only: str = "") -> tuple[NicReading, ...]:
        """Read the NICs of a host, or only the one of an interface."""
        return self._services.nic_readings(self.name, self.kernel_ports(), only)

    def clear_counters(self, port: str = "") -> None:
        """Reset the counters a NOS command resets."""
        self._services.model.clear(self.name, port, time.monotonic())

    def kernel_ports(self) -> Mapping[str, KernelPort]:
        """The kernel's view of each port by its NOS name, at most half a second old."""
        read_s, ports = self._read
        age_s = time.monotonic() - read_s
        if age_s < FRESH_S:
            return ports
        links = netlink.links(self.holder.network)
        is_switch = isinstance(self.device, Switch)
        egress = self._services.egress_counters(self.holder.network, self.kernel_names) if is_switch else {}
        before = self._egress if age_s < CROWD_S else egress
        ports = {
            name: _kernel_port(links[interface], egress.get(name), before.get(name))
            for name, interface in self.kernel_names.items()
            if interface in links
        }
        self._read, self._egress = (time.monotonic(), ports), egress
        return ports

    def log(self, line: str) -> None:
        """Append a line to the node's log."""
        with self._log_file() as log:
            log.write(f"{time.strftime('%H:%M:%S')} {line}\n".encode())

    def kill_all(self) -> None:
        """Kill every process of the node except its holder, like a power cut."""
        self.lldp.end()
        if self.agent is not None:
            self.agent.end()
        if self.gnmi is not None:
            self.gnmi.end()
        self._programs = {}
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def processes(self) -> list[int]:
        """The processes in the node's mount namespace, except its holder."""
        mine = Path(f"/proc/{self.holder.pid}/ns/mnt").readlink()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self.holder.pid:
                try:
                    if (entry / "ns/mnt").readlink() == mine:
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def fill_flash(self, *, is_full: bool) -> None:
        """Shrink the flash to what it holds, or restore its size."""
        usage = os.statvfs(self.saved)
        used = max((usage.f_blocks - usage.f_bfree) * usage.f_frsize, usage.f_frsize)
        namespace_holder.remount(str(self.saved), f"size={used if is_full else FLASH_BYTES}")

    def forget(self) -> None:
        """Reset to the state after a power cut: links down, no addresses, no daemons, empty volatile folders."""
        lags = (
            [one.interface for one in self.device.attachments if one.members] if isinstance(self.device, Host) else []
        )
        bridges = "".join(f"link del {bridge}\n" for bridge in [*sorted(self._links.bridges), *lags])
        names = (*self.kernel_names.values(), *self.spec.beside)
        flush = [f"addr flush dev {name}" for name in ("lo", *names)]
        downs = [f"link set {name} down" for name in names]
        self.run("ip", "-force", "-batch", "-", stdin=bridges + "\n".join([*flush, *downs]) + "\n")
        self.run("nft", "flush", "ruleset")
        for folder in ("run/frr", "run/lock", "var/log/frr", "var/tmp/frr", "tmp"):
            for entry in self.file(folder).iterdir():
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
        self._links, self._frr, self._marking, self._filters = netlink.KernelState(), None, "", ""
        write_boot_id(self.holder.root)


def _kernel_port(link: netlink.KernelLink, egress: EgressCounters | None, before: EgressCounters | None) -> KernelPort:
    marks, sent = egress or NOTHING_COUNTED
    sent_before = (before or NOTHING_COUNTED)[1]
    return KernelPort(
        is_enabled=link.is_enabled,
        is_up=link.has_carrier,
        mtu_bytes=link.mtu_bytes,
        carrier_changes=link.carrier_changes,
        traffic=TrafficReading(
            link.rx_bytes,
            link.rx_packets,
            link.rx_dropped,
            link.rx_errors,
            link.tx_bytes,
            link.tx_packets,
            link.tx_dropped,
            link.tx_errors,
        ),
        ecn_marked_packets=marks.marked_packets,
        is_crowded=sent.crowded_packets > sent_before.crowded_packets,
        mac=link.mac,
        queue_packets=sent.packets,
        queue_bytes=sent.bytes,
    )
