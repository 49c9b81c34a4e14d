"""Linux with FRR: vtysh and frr-reload.py are real; systemd and netplan are emulated."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.frr import engine, files
from netkit.lab.personalities.frr.engine import HOSTNAME, RESTART_VERBS, SWITCH_UNITS, FrrEngine, SwitchUnits
from netkit.lab.personalities.linux_host.systemctl import systemctl
from netkit.lab.personalities.linux_host.systemd_run import systemd_run
from netkit.lab.personalities.linux_host.units import UnitError, full_name
from netkit.lab.personality import Call, Personality

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
        engine.of_files(texts, self.node.name, self.node.kernel_names)
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
