"""SONiC as a personality: its programs, and who answers each."""

from collections.abc import Callable, Iterator, Mapping

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.linux_host.systemd_run import systemd_run
from netkit.lab.personalities.sonic import config_commands, database, show_commands, show_lossless, transceiver
from netkit.lab.personalities.sonic.command_line import Commands, answer
from netkit.lab.personalities.sonic.services import docker, manage_units
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personality import Call, Elem, Told

COMMANDS: Mapping[str, Commands] = {
    "config": {**config_commands.UPDATER_COMMANDS, **config_commands.FILE_COMMANDS, **config_commands.SETTING_COMMANDS},
    "show": {
        **show_commands.CONFIG_COMMANDS,
        **show_commands.INTERFACE_COMMANDS,
        **transceiver.TRANSCEIVER_COMMANDS,
        **show_lossless.QUEUE_COMMANDS,
        **show_commands.SYSTEM_COMMANDS,
        **show_lossless.SHOW,
    },
    "pfcwd": show_lossless.WATCHDOG_COMMANDS,
    "counterpoll": show_lossless.COUNTERPOLL,
    "sonic-clear": show_lossless.CLEAR,
    "ecnconfig": show_lossless.ECNCONFIG,
    "sonic-cfggen": config_commands.CFGGEN,
    "sonic-db-cli": database.COMMANDS,
    "sonic-db-dump": database.DUMP,
    "TSA": config_commands.TSA,
    "TSB": config_commands.TSB,
    "TSC": config_commands.TSC,
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
