"""The services of a switch: `systemctl`, `systemd-run` and `docker` as far as people who run a fabric use them."""

from typing import TYPE_CHECKING

from netkit.lab.node import Done
from netkit.lab.personalities.linux_host.units import RUNNING, State, Units
from netkit.lab.personality import Call

if TYPE_CHECKING:
    from netkit.lab.personalities.sonic.system import System

CONTAINERS = ("bgp", "database", "lldp", "pmon", "snmp", "swss", "syncd")
RELOAD = "frr-reload.py"
USAGE_ERROR = 2


class SonicUnits(Units):
    """The units of a switch: its containers, and what `systemd-run` started."""

    def __init__(self, system: "System") -> None:
        super().__init__(system.node, lambda command: system.node.run(*command))
        self._system = system

    def is_known(self, name: str) -> bool:
        """Whether there is such a unit."""
        return _container(name) in CONTAINERS or super().is_known(name)

    def state(self, name: str) -> State:
        """Return what became of a unit."""
        return RUNNING if _container(name) in CONTAINERS else super().state(name)

    def restart(self, name: str) -> State:
        """Start a unit anew; the routing container reads its file then."""
        if _container(name) == "bgp":
            self._system.restart_routing()
        return RUNNING if _container(name) in CONTAINERS else super().restart(name)


def _container(name: str) -> str:
    return name.removesuffix(".service")


def docker(system: "System", call: Call) -> int:
    """Answer `docker exec bgp …`, `docker restart NAME` and `docker ps`."""
    words = [word for word in call.arguments if word not in {"-i", "-t", "-it", "-ti"}]
    match words:
        case ["ps", *_]:
            call.out("".join(f"{name}\n" for name in ("NAMES", *CONTAINERS)))
        case ["restart", name] if name in CONTAINERS:
            system.units.restart(f"{name}.service")
            call.out(f"{name}\n")
        case ["exec", "bgp", program, *rest]:
            return _told(call, _in_container(system, program, rest, call))
        case _:
            call.err("docker: the lab answers `exec bgp COMMAND`, `restart CONTAINER` and `ps`\n")
            return USAGE_ERROR
    return 0


def _in_container(system: "System", program: str, rest: list[str], call: Call) -> Done:
    if program.endswith(RELOAD):
        # In the container /etc/frr is the switch's own /etc/sonic/frr.
        system.restart_routing()
        return Done(0, "", "")
    is_piped = program in {"sh", "bash"} and "-c" not in rest
    return system.node.run(program, *rest, stdin=call.stdin() if is_piped else "")


def _told(call: Call, done: Done) -> int:
    call.out(done.stdout)
    call.err(done.stderr)
    return done.exit_code
