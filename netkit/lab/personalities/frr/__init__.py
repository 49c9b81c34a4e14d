"""Linux with FRR: vtysh and frr-reload.py are real; systemd and netplan are emulated."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from netkit.lab import routing
from netkit.lab.namespace_holder import OWN
from netkit.lab.node import ConfigRefusedError, Node, ProgramResult
from netkit.lab.personalities.frr import files
from netkit.lab.personalities.frr.files import Netplan, NetplanBridge
from netkit.lab.personalities.linux_host.systemctl import systemctl, systemd_run
from netkit.lab.personalities.linux_host.units import DEAD, RUNNING, Runner, UnitError, Units, UnitState, full_name
from netkit.lab.personality import Call, Personality
from netkit.lab.state import PortState, SnmpState, SnmpV3User, SwitchState, VlanState

CREATE_USER = re.compile(r'createUser (\S+) SHA "([^"]+)" AES "([^"]+)"')
ALWAYS_ON_DAEMONS = ("zebra", "staticd")
OPTIONAL_DAEMONS = ("bgpd", "bfdd")


@dataclass(frozen=True, slots=True)
class FrrDeclaredState:
    """The state a switch's files describe."""

    state: SwitchState
    without_link_local: frozenset[str] = frozenset()
    bridges: Mapping[str, NetplanBridge] = field(default_factory=dict)
    daemons: frozenset[str] = frozenset(ALWAYS_ON_DAEMONS)
    sysctls: tuple[tuple[str, str, bool], ...] = ()
    """Key, value, and whether a failure matters."""


def of_files(texts: Mapping[str, str], hostname: str, kernel_names: Mapping[str, str]) -> FrrDeclaredState:
    """Read the state from file texts by path; raise ConfigRefusedError for content that is not understood."""
    found = files.parse(texts.get(files.NETPLAN, ""), tuple(kernel_names.values()))
    state = SwitchState(
        hostname=hostname,
        ports=tuple(_ports(found, kernel_names)),
        vlans=tuple(
            VlanState(_vlan_number(name), name, bridge.interface.addresses, bridge.interface.mtu_bytes)
            for name, bridge in found.bridges.items()
        ),
        loopback_addresses=found.interfaces["lo"].addresses if "lo" in found.interfaces else (),
        frr=texts.get(files.FRR_CONF, ""),
        snmp=snmp(texts.get(files.SNMPD, "")),
    )
    managed = {**found.interfaces, **{name: bridge.interface for name, bridge in found.bridges.items()}}
    sysctls = (line.partition("=") for line in files.lines(texts.get(files.SYSCTL, "")))
    return FrrDeclaredState(
        state=state,
        without_link_local=frozenset(name for name, one in managed.items() if not one.has_link_local),
        bridges=found.bridges,
        daemons=daemons(texts.get(files.DAEMONS, "")),
        sysctls=tuple(
            (key.strip().removeprefix("-"), value.strip(), not key.startswith("-")) for key, _, value in sysctls
        ),
    )


def _ports(found: Netplan, kernel_names: Mapping[str, str]) -> Iterator[PortState]:
    vlan_of = {port: _vlan_number(name) for name, bridge in found.bridges.items() for port in bridge.ports}
    for name, interface in kernel_names.items():
        one = found.interfaces.get(interface)
        if one is None:
            yield PortState(name, is_enabled=False)
            continue
        vlan = vlan_of.get(interface, 0)
        yield PortState(name, mtu_bytes=one.mtu_bytes, addresses=one.addresses, access_vlan=vlan)


def _vlan_number(bridge: str) -> int:
    found = files.VLAN_NAME.fullmatch(bridge)
    return int(found[1]) if found else 0


def daemons(text: str) -> frozenset[str]:
    enabled = {line.partition("=")[0] for line in files.lines(text) if line.endswith("=yes")}
    return frozenset(ALWAYS_ON_DAEMONS) | enabled & frozenset(OPTIONAL_DAEMONS)


def snmp(text: str) -> SnmpState | None:
    """The SNMPv3 users that exist and may read; None without any."""
    split = (line.split(maxsplit=1) for line in files.lines(text))
    directives = [(words[0], words[1]) for words in split if len(words) == 2]
    readers = {value.split()[0] for key, value in directives if key == "rouser"}
    found = filter(None, map(CREATE_USER.fullmatch, files.lines(text)))
    users = tuple(SnmpV3User(user[1], user[2], user[3]) for user in found if user[1] in readers)
    if not users:
        return None
    values = dict(directives)
    return SnmpState(users, (), values.get("sysLocation", ""), values.get("sysContact", ""))


RELOAD = ("/usr/lib/frr/frr-reload.py", "--reload", files.FRR_CONF)
GENERATORS = ("/usr/libexec/netplan/generate", "/lib/netplan/generate")
HOSTNAME = "/etc/hostname"
REAL, FAULTY = f"{OWN}/frr-reload.py", f"{OWN}/frr-reload.sh"
FAULTY_RELOAD = f"""#!/bin/sh
case " $* " in *" --test "*) exec python3 {REAL} "$@" ;; esac
echo 'ERROR: vtysh: the daemons took none of it'
"""
"""Replaces frr-reload.py for a fault: it changes nothing and exits with 0 after printing an error."""
USER_HZ = 100
# Entries below /run of the lab and its daemons; a power cut removes everything else, as on a switch.
KEPT_IN_RUN = frozenset({"netkit", "frr", "lock", "sshd", "lldpd", "snmpd", "agentx", "systemd", "udev", "dbus"})


class FrrEngine:
    """The state behind a switch's files.

    FRR loads frr.conf at boot; later vtysh and frr-reload.py change its configuration.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.fails_quietly = False
        self._frr_at_boot = ""

    @property
    def hostname(self) -> str:
        return files.read(self.node, HOSTNAME).strip() or self.node.name

    def boot(self) -> None:
        folder = self.node.file("/run")
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.name.split(".")[0] in KEPT_IN_RUN:
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        self._frr_at_boot = files.read(self.node, files.FRR_CONF)
        self.set_kernel()
        self.apply()
        # The lab loads slower BFD timers; the file keeps the installed ones.
        self.node.file(files.FRR_CONF).write_text(self._frr_at_boot, encoding="utf-8")
        enabled = daemons(files.read(self.node, files.DAEMONS))
        for daemon in OPTIONAL_DAEMONS:
            if daemon not in enabled:
                self.node.end(daemon)

    def apply(self) -> None:
        """Apply ports, bridges, loopback and SNMP from the files; raise ConfigRefusedError."""
        texts = {place: files.read(self.node, place) for place in files.PLACES.values()}
        intended = of_files({**texts, files.FRR_CONF: self._frr_at_boot}, self.hostname, self.node.kernel_names)
        # Set the address mode before a port comes up, or it assigns itself a link-local address. Of a port that is up,
        # the kernel assigns one when the mode is set in this way.
        without = intended.without_link_local
        modes = {name: int(name in without) for name in self.node.kernel_names.values()}
        self.node.run("sysctl", "-qw", *(f"net.ipv6.conf.{name}.addr_gen_mode={mode}" for name, mode in modes.items()))
        for interface in (name for name, mode in modes.items() if mode):
            self.node.run("ip", "-6", "address", "flush", "dev", interface, "scope", "link")
        self.node.realise(intended.state)
        self.node.ip(
            f"link set dev {name} type bridge stp_state {int(bridge.has_stp)} "
            f"forward_delay {bridge.forward_delay_s * USER_HZ} ageing_time {bridge.ageing_s * USER_HZ}"
            for name, bridge in intended.bridges.items()
        )

    def generate(self) -> ProgramResult:
        """Run the real netplan generator."""
        self.node.file("/run/systemd/network").mkdir(parents=True, exist_ok=True)
        generator = next((path for path in GENERATORS if self.node.file(path).exists()), GENERATORS[0])
        return self.node.run(generator)

    def set_kernel(self) -> None:
        if not files.read(self.node, files.SYSCTL):
            return
        for line in self.node.run("sysctl", "-q", "-p", files.SYSCTL).stderr.splitlines():
            # Some keys belong to the whole machine and are missing in a network namespace.
            if "No such file" not in line:
                self.node.log(f"sysctl: {line}")

    def restart_routing(self) -> None:
        enabled = daemons(files.read(self.node, files.DAEMONS))
        routing.stop(self.node)
        routing.start(self.node, [name for name in routing.DAEMONS if name in enabled])
        result = self.node.run("vtysh", "-b")
        if result.exit_code != 0:
            raise ConfigRefusedError((result.stderr or result.stdout).strip())

    def fail_quietly(self, *, is_on: bool) -> None:
        """Lab fault: frr-reload.py, netplan and service restarts report success but change nothing."""
        if is_on and not self.fails_quietly:
            self.node.run("cp", RELOAD[0], REAL)
            self.node.file(FAULTY).write_text(FAULTY_RELOAD, encoding="utf-8")
            self.node.file(FAULTY).chmod(0o755)
            self.node.run("mount", "--bind", FAULTY, RELOAD[0])
        elif self.fails_quietly and not is_on:
            self.node.run("umount", RELOAD[0])
        self.fails_quietly = is_on


FRR = "frr.service"
APPLYING_UNITS = ("snmpd.service", "systemd-networkd.service")
"""Starting one of these applies the files."""
INERT_UNITS = ("lldpd.service", "chrony.service", "rsyslog.service")
"""lldpd is run by the lab; time and syslog servers do not exist here."""
SWITCH_UNITS = frozenset({FRR, *APPLYING_UNITS, *INERT_UNITS})
RESTART_VERBS = ("restart", "try-restart", "reload", "reload-or-restart")
FAILED = UnitState("failed", "failed", "exit-code", 1)


class SwitchUnits(Units):
    """systemd units of a switch; transient units of `systemd-run` behave as on any Linux."""

    def __init__(self, engine: FrrEngine, runner: Runner) -> None:
        super().__init__(engine.node, runner)
        self._engine = engine

    def act(self, verb: str, name: str) -> UnitState:
        """Restart or reload a unit of the switch; raise UnitError."""
        if verb == "try-restart" and self.state(name).active != "active":
            return self.state(name)
        return self.reload_unit(name) if verb.startswith("reload") else self.restart(name)

    def is_known(self, name: str) -> bool:
        return name in SWITCH_UNITS or super().is_known(name)

    def state(self, name: str) -> UnitState:
        if name == FRR:
            return RUNNING if self._engine.node.is_running("zebra") else self._states.get(name, DEAD)
        if name in SWITCH_UNITS:
            return self._states.get(name, RUNNING)
        return super().state(name)

    def restart(self, name: str) -> UnitState:
        if name == FRR:
            return self._try(name, self._engine.restart_routing)
        if name in APPLYING_UNITS:
            return self._try(name, self._engine.apply)
        if name in INERT_UNITS:
            self._states[name] = RUNNING
            return RUNNING
        return super().restart(name)

    def reload_unit(self, name: str) -> UnitState:
        if name != FRR:
            return self.restart(name)
        result = self._engine.node.run(*RELOAD, timeout_s=300)
        if result.exit_code != 0:
            raise UnitError(f"Reload failed: {(result.stderr or result.stdout).strip()[-500:]}")
        return RUNNING

    def stop(self, name: str) -> None:
        if name == FRR:
            routing.stop(self._engine.node)
        if name in SWITCH_UNITS:
            self._states[name] = DEAD
            return
        super().stop(name)

    def _try(self, name: str, start: Callable[[], None]) -> UnitState:
        try:
            if not self._engine.fails_quietly:
                start()
        except ConfigRefusedError as error:
            self._engine.node.log(f"{name}: {error}")
            self._states[name] = FAILED
            return FAILED
        self._states[name] = RUNNING
        return RUNNING


Answer = Callable[["Frr", Call], int]
REAL_NETPLAN = "/usr/sbin/netplan"
NAME_VERBS = ("hostname", "set-hostname")


class Frr(Personality):
    """Linux with FRR: vtysh, frr-reload.py, sysctl and ip are real; netplan and systemd are emulated."""

    programs: ClassVar[tuple[str, ...]] = ("netplan", "systemctl", "systemd-run", "hostnamectl")
    login: ClassVar[str] = "root"
    prompt: ClassVar[str] = "{user}@{host}:~# "

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.engine = FrrEngine(node)
        self.units = SwitchUnits(self.engine, lambda command: node.run(*command, timeout_s=300))

    def provision(self, files_: Mapping[str, str]) -> None:
        texts = {files.PLACES[name]: text for name, text in files_.items() if name in files.PLACES}
        of_files(texts, self.node.name, self.node.kernel_names)
        files.install(self.node, files_)

    def boot(self) -> None:
        self.units.power_up()
        self.units.start_early()
        self.engine.boot()

    @property
    def fail_apply_quietly(self) -> bool:
        """Lab fault: changes report success but have no effect."""
        return self.engine.fails_quietly

    @fail_apply_quietly.setter
    def fail_apply_quietly(self, is_on: bool) -> None:
        self.engine.fail_quietly(is_on=is_on)

    def run(self, call: Call) -> int:
        return PROGRAMS[call.program](self, call)


def _netplan(frr: Frr, call: Call) -> int:
    verb = next((word for word in call.arguments if not word.startswith("-")), "")
    if verb == "try":
        call.err("netplan try needs an interactive terminal; use netplan apply\n")
        return 1
    if verb not in {"apply", "generate"}:
        result = frr.node.run(REAL_NETPLAN, *call.arguments)
        call.out(result.stdout)
        call.err(result.stderr)
        return result.exit_code
    result = frr.engine.generate()
    if result.exit_code == 0 and verb == "apply":
        return _apply(frr, call)
    if verb == "generate":
        call.out(result.stdout)
        call.err(result.stderr)
    else:
        call.err(result.stderr or result.stdout)
    return result.exit_code


def _apply(frr: Frr, call: Call) -> int:
    if frr.engine.fails_quietly:
        call.err("Failed to reload network settings: Connection timed out\n")
        return 0
    try:
        frr.engine.apply()
    except ConfigRefusedError as error:
        call.err(f"{error}\n")
        return 1
    return 0


def _systemctl(frr: Frr, call: Call) -> int:
    verb, *units = [word for word in call.arguments if not word.startswith("-")] or [""]
    names = [full_name(name) for name in units]
    if verb not in RESTART_VERBS or not names or not SWITCH_UNITS.issuperset(names):
        return systemctl(frr.units, call)
    code = 0
    for name in names:
        try:
            state = frr.units.act(verb, name)
        except UnitError as error:
            call.err(f"Failed to {verb} {name}: {error}\n")
            return 1
        if state.active == "failed":
            call.err(f"Job for {name} failed; see `netkit lab logs`.\n")
            code = 1
    return code


def _hostnamectl(frr: Frr, call: Call) -> int:
    words = [word for word in call.arguments if not word.startswith("-")]
    if words in ([], ["status"]):
        call.out(f" Static hostname: {frr.engine.hostname}\n")
        return 0
    if words == ["hostname"]:
        call.out(f"{frr.engine.hostname}\n")
        return 0
    if len(words) != 2 or words[0] not in NAME_VERBS:
        call.err(f"hostnamectl: unknown command {' '.join(words)}\n")
        return 1
    frr.node.file(HOSTNAME).write_text(f"{words[1]}\n", encoding="utf-8")
    return _apply(frr, call)


PROGRAMS: Mapping[str, Answer] = {
    "netplan": _netplan,
    "systemctl": _systemctl,
    "systemd-run": lambda frr, call: systemd_run(frr.units, call),
    "hostnamectl": _hostnamectl,
}


PERSONALITY = Frr
