"""SONiC as a personality: its programs, and who answers each."""

from collections.abc import Callable, Iterator, Mapping

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.linux_host.systemd_run import systemd_run
from netkit.lab.personalities.sonic import config_commands, database, show_commands
from netkit.lab.personalities.sonic.command_line import Commands, answer
from netkit.lab.personalities.sonic.services import docker, manage_units
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personality import Call, Elem, Told

COMMANDS: Mapping[str, Commands] = {
    "config": config_commands.CONFIG_COMMANDS,
    "show": show_commands.SHOW,
    "sonic-clear": database.CLEAR,
    "sonic-db-cli": database.COMMANDS,
    "sonic-db-dump": database.DUMP,
}
PROGRAMS: Mapping[str, Callable[[SonicSystem, Call], int]] = {
    "docker": docker,
    "systemctl": manage_units,
    "systemd-run": lambda system, call: systemd_run(system.units, call),
}


class Sonic(SonicSystem):
    """Community SONiC, branches 202305 to 202511."""

    programs = (*COMMANDS, *PROGRAMS)
    login = "admin"

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[Told]:
        """Yield what a database has below a path."""
        yield from database.told(self, target, path)

    def run(self, call: Call) -> int:
        """Answer one of the programs."""
        if call.program in COMMANDS:
            return answer(self, call, COMMANDS[call.program])
        try:
            return PROGRAMS[call.program](self, call)
        except ConfigRefusedError as error:
            call.err(f"{call.program}: {error}\n")
            return 1
