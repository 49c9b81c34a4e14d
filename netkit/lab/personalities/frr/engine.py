"""What its files make of a Linux switch: the state the lab realises, and what only Linux has words for."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from netkit.lab import routing
from netkit.lab.node import ConfigRefusedError, Node, ProgramResult
from netkit.lab.personalities.frr import files
from netkit.lab.personalities.frr.files import Netplan, NetplanBridge
from netkit.lab.personalities.linux_host.units import DEAD, RUNNING, Runner, UnitError, Units, UnitState
from netkit.lab.state import PortState, SnmpState, SnmpV3User, SwitchState, VlanState
from netkit.lab.system.namespace_holder import OWN

CREATE_USER = re.compile(r'createUser (\S+) SHA "([^"]+)" AES "([^"]+)"')
NEEDED = ("zebra", "staticd")
"""Daemons that always run."""
CHOSEN = ("bgpd", "bfdd")


@dataclass(frozen=True, slots=True)
class FrrDeclaredState:
    """A switch as its files describe it."""

    state: SwitchState
    without_link_local: frozenset[str] = frozenset()
    bridges: Mapping[str, NetplanBridge] = field(default_factory=dict)
    daemons: frozenset[str] = frozenset(NEEDED)
    sysctls: tuple[tuple[str, str, bool], ...] = ()
    """Key, value, and whether a failure matters."""


def of_node(node: Node, hostname: str, routing: str) -> FrrDeclaredState:
    """Return what the files of a node make of it, with the routing it began with."""
    texts = {place: files.read(node, place) for place in files.PLACES.values()}
    return of_files({**texts, files.FRR_CONF: routing}, hostname, node.kernel_names)


def of_files(texts: Mapping[str, str], hostname: str, kernel_names: Mapping[str, str]) -> FrrDeclaredState:
    """Return what files make of a switch, by their places; raises RefusedError for what is not understood."""
    found = files.parse(texts.get(files.NETPLAN, ""), tuple(kernel_names.values()))
    state = SwitchState(
        hostname=hostname,
        ports=tuple(_ports(found, kernel_names)),
        vlans=tuple(_vlan(name, bridge) for name, bridge in found.bridges.items()),
        loopback_addresses=found.interfaces["lo"].addresses if "lo" in found.interfaces else (),
        frr=texts.get(files.FRR_CONF, ""),
        snmp=snmp(texts.get(files.SNMPD, "")),
    )
    managed = {**found.interfaces, **{name: bridge.interface for name, bridge in found.bridges.items()}}
    return FrrDeclaredState(
        state=state,
        without_link_local=frozenset(name for name, one in managed.items() if not one.has_link_local),
        bridges=found.bridges,
        daemons=daemons(texts.get(files.DAEMONS, "")),
        sysctls=tuple(_sysctls(texts.get(files.SYSCTL, ""))),
    )


def _ports(found: Netplan, kernel_names: Mapping[str, str]) -> Iterator[PortState]:
    vlan_of = {port: _number(name) for name, bridge in found.bridges.items() for port in bridge.ports}
    for name, interface in kernel_names.items():
        one = found.interfaces.get(interface)
        if one is None:
            yield PortState(name, is_enabled=False)
            continue
        vlan = vlan_of.get(interface, 0)
        yield PortState(name, mtu_bytes=one.mtu_bytes, addresses=one.addresses, access_vlan=vlan)


def _vlan(name: str, bridge: NetplanBridge) -> VlanState:
    return VlanState(_number(name), name, bridge.interface.addresses, bridge.interface.mtu_bytes)


def _number(bridge: str) -> int:
    found = files.VLAN_NAME.fullmatch(bridge)
    return int(found[1]) if found else 0


def daemons(text: str) -> frozenset[str]:
    """Return the daemons that are to run."""
    wanted = {line.partition("=")[0] for line in files.lines(text) if line.endswith("=yes")}
    return frozenset((*NEEDED, *(name for name in CHOSEN if name in wanted)))


def snmp(text: str) -> SnmpState | None:
    """Return what snmpd answers to: users that were made and may read. Without any it answers nobody."""
    words = [line.split(maxsplit=1) for line in files.lines(text)]
    readers = {rest.split()[0] for key, *rest_ in words if key == "rouser" for rest in rest_}
    users = tuple(
        SnmpV3User(found[1], found[2], found[3])
        for line in files.lines(text)
        if (found := CREATE_USER.fullmatch(line)) and found[1] in readers
    )
    said = {key: rest[0] for key, *rest in words if rest}
    if not users:
        return None
    return SnmpState(users, (), said.get("sysLocation", ""), said.get("sysContact", ""))


def _sysctls(text: str) -> Iterator[tuple[str, str, bool]]:
    for line in files.lines(text):
        key, _, value = line.partition("=")
        yield key.strip().removeprefix("-"), value.strip(), not key.startswith("-")


RELOAD = ("/usr/lib/frr/frr-reload.py", "--reload", files.FRR_CONF)
GENERATORS = ("/usr/libexec/netplan/generate", "/lib/netplan/generate")
HOSTNAME = "/etc/hostname"
REAL, STANDIN = f"{OWN}/frr-reload.py", f"{OWN}/frr-reload.sh"
QUIETLY = f"""#!/bin/sh
case " $* " in *" --test "*) exec python3 {REAL} "$@" ;; esac
echo 'ERROR: vtysh: the daemons took none of it'
"""
"""What stands in for frr-reload.py where a change fails and nothing but a line of output tells."""
HUNDREDTHS = 100
# What the lab and its daemons have below /run; all else there is gone after a power cut, as on a switch.
LASTING = frozenset({"netkit", "frr", "lock", "sshd", "lldpd", "snmpd", "agentx", "systemd", "udev", "dbus"})


class FrrEngine:
    """Keeps what FRR began with: later its configuration is its own business, through vtysh and frr-reload.py."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.fails_quietly = False
        self._routing = ""

    @property
    def hostname(self) -> str:
        """Return the name the switch gives itself."""
        return files.read(self.node, HOSTNAME).strip() or self.node.name

    def boot(self) -> None:
        """Come up as the files say."""
        folder = self.node.file("/run")
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.name.split(".")[0] not in LASTING:
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
        self._routing = files.read(self.node, files.FRR_CONF)
        self.set_kernel()
        self.apply()
        # The lab slows BFD down in what it loads; the file stays as it was installed.
        self.node.file(files.FRR_CONF).write_text(self._routing, encoding="utf-8")
        wanted = self.told()
        for daemon in CHOSEN:
            if daemon not in wanted.daemons:
                self.node.end(daemon)

    def told(self) -> FrrDeclaredState:
        """Return what the files say now."""
        return of_node(self.node, self.hostname, self._routing)

    def apply(self) -> None:
        """Give ports, bridges, loopback and SNMP what the files say; raises RefusedError."""
        wanted = self.told()
        # Let only those ports make themselves a link-local address that may: before they come up.
        for interface in self.node.kernel_names.values():
            is_without = interface in wanted.without_link_local
            self.node.ip([f"link set dev {interface} addrgenmode {'none' if is_without else 'eui64'}"])
            if is_without:
                self.node.run("ip", "-6", "address", "flush", "dev", interface, "scope", "link")
        self.node.realise(wanted.state)
        self.node.ip(_bridge_lines(wanted))

    def generate(self) -> ProgramResult:
        """Have the real netplan look at its files."""
        self.node.file("/run/systemd/network").mkdir(parents=True, exist_ok=True)
        generator = next((path for path in GENERATORS if self.node.file(path).exists()), GENERATORS[0])
        return self.node.run(generator)

    def set_kernel(self) -> None:
        """Set the kernel as sysctl.d says."""
        done = self.node.run("sysctl", "-q", "-p", files.SYSCTL) if files.read(self.node, files.SYSCTL) else None
        # Some keys belong to the whole machine and are missing in a network namespace.
        wrong = [line for line in (done.stderr if done else "").splitlines() if "No such file" not in line]
        for line in wrong:
            self.node.log(f"sysctl: {line}")

    def restart_routing(self) -> None:
        """Start FRR anew with what its file says."""
        wanted = daemons(files.read(self.node, files.DAEMONS))
        routing.stop(self.node)
        routing.start(self.node, [name for name in routing.DAEMONS if name in wanted])
        done = self.node.run("vtysh", "-b")
        if done.exit_code != 0:
            raise ConfigRefusedError((done.stderr or done.stdout).strip())

    def fail_quietly(self, *, is_wanted: bool) -> None:
        """Have frr-reload.py, netplan and restarts of services succeed without any effect, or work again."""
        if is_wanted and not self.fails_quietly:
            self.node.run("cp", RELOAD[0], REAL)
            self.node.file(STANDIN).write_text(QUIETLY, encoding="utf-8")
            self.node.file(STANDIN).chmod(0o755)
            self.node.run("mount", "--bind", STANDIN, RELOAD[0])
        elif self.fails_quietly and not is_wanted:
            self.node.run("umount", RELOAD[0])
        self.fails_quietly = is_wanted

    def stop_routing(self) -> None:
        """End FRR's daemons."""
        routing.stop(self.node)

    def reload_routing(self) -> ProgramResult:
        """Have frr-reload.py make FRR what its file says."""
        return self.node.run(*RELOAD, timeout_s=300)


def _bridge_lines(wanted: FrrDeclaredState) -> Iterator[str]:
    for name, bridge in wanted.bridges.items():
        yield (
            f"link set dev {name} type bridge stp_state {int(bridge.has_stp)} "
            f"forward_delay {bridge.forward_delay_s * HUNDREDTHS} ageing_time {bridge.ageing_s * HUNDREDTHS}"
        )


FRR = "frr.service"
APPLIED = ("snmpd.service", "systemd-networkd.service")
"""Starting one of these makes the switch what their files say."""
ACCEPTED = ("lldpd.service", "chrony.service", "rsyslog.service")
"""lldpd is the lab's; time and syslog servers do not exist here."""
ACTING = ("restart", "try-restart", "reload", "reload-or-restart")
FAILED = UnitState("failed", "failed", "exit-code", 1)


class SwitchUnits(Units):
    """Units of a switch; transient ones of `systemd-run` are those of every Linux."""

    def __init__(self, engine: FrrEngine, runner: Runner) -> None:
        super().__init__(engine.node, runner)
        self._engine = engine

    def is_switchs_own(self, name: str) -> bool:
        """Whether a unit is one that only switches have."""
        return name in {FRR, *APPLIED, *ACCEPTED}

    def act(self, verb: str, name: str) -> UnitState:
        """Restart or reload one of the switch's own units; raises UnitError."""
        if verb == "try-restart" and self.state(name).active != "active":
            return self.state(name)
        return self.reload_unit(name) if verb.startswith("reload") else self.restart(name)

    def is_known(self, name: str) -> bool:
        """Whether there is such a unit."""
        return self.is_switchs_own(name) or super().is_known(name)

    def state(self, name: str) -> UnitState:
        """Return what became of a unit."""
        if name == FRR:
            return RUNNING if self._engine.node.is_running("zebra") else self._states.get(name, DEAD)
        if name in APPLIED or name in ACCEPTED:
            return self._states.get(name, RUNNING)
        return super().state(name)

    def restart(self, name: str) -> UnitState:
        """Start a unit anew."""
        if name == FRR:
            return self._try(name, self._engine.restart_routing)
        if name in APPLIED:
            return self._try(name, self._engine.apply)
        if name in ACCEPTED:
            self._states[name] = RUNNING
            return RUNNING
        return super().restart(name)

    def reload_unit(self, name: str) -> UnitState:
        """Have a unit read its configuration again."""
        if name != FRR:
            return self.restart(name)
        done = self._engine.reload_routing()
        if done.exit_code != 0:
            raise UnitError(f"Reload failed: {(done.stderr or done.stdout).strip()[-500:]}")
        return RUNNING

    def stop(self, name: str) -> None:
        """Stop a unit."""
        if name == FRR:
            self._engine.stop_routing()
        if self.is_switchs_own(name):
            self._states[name] = DEAD
            return
        super().stop(name)

    def _try(self, name: str, act: Callable[[], None]) -> UnitState:
        try:
            if not self._engine.fails_quietly:
                act()
        except ConfigRefusedError as error:
            self._engine.node.log(f"{name}: {error}")
            self._states[name] = FAILED
            return FAILED
        self._states[name] = RUNNING
        return RUNNING
