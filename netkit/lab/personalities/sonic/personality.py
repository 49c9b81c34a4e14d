"""SONiC as a personality: its programs, and who answers each."""

from collections.abc import Callable, Iterator, Mapping

from netkit.lab.node import RefusedError
from netkit.lab.personalities.linux_host.systemd_run import systemd_run
from netkit.lab.personalities.sonic import (
    config_files,
    config_interface,
    config_updater,
    counter_polling,
    database_client,
    gnmi,
    isolation,
    show_config,
    show_interfaces,
    show_lossless,
    show_system,
    show_transceiver,
    watchdog,
)
from netkit.lab.personalities.sonic.command import Commands, answer
from netkit.lab.personalities.sonic.services import docker, manage_units
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personality import Call, Elem, Told

COMMANDS: Mapping[str, Commands] = {
    "config": {**config_updater.COMMANDS, **config_files.COMMANDS, **config_interface.COMMANDS},
    "show": {
        **show_config.COMMANDS,
        **show_interfaces.COMMANDS,
        **show_transceiver.COMMANDS,
        **show_lossless.COMMANDS,
        **show_system.COMMANDS,
        **watchdog.SHOW,
    },
    "pfcwd": watchdog.COMMANDS,
    "counterpoll": counter_polling.COUNTERPOLL,
    "sonic-clear": counter_polling.CLEAR,
    "ecnconfig": counter_polling.ECNCONFIG,
    "sonic-cfggen": config_files.CFGGEN,
    "sonic-db-cli": database_client.COMMANDS,
    "sonic-db-dump": database_client.DUMP,
    "TSA": isolation.TSA,
    "TSB": isolation.TSB,
    "TSC": isolation.TSC,
}
PROGRAMS: Mapping[str, Callable[[System, Call], int]] = {
    "docker": docker,
    "systemctl": manage_units,
    "systemd-run": lambda system, call: systemd_run(system.units, call),
}


class Sonic(System):
    """Community SONiC, branches 202305 to 202511."""

    programs = (*COMMANDS, *PROGRAMS)
    login = "admin"

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[Told]:
        """Yield what a database has below a path."""
        yield from gnmi.told(self, target, path)

    def run(self, call: Call) -> int:
        """Answer one of the programs."""
        if call.program in COMMANDS:
            return answer(self, call, COMMANDS[call.program])
        try:
            return PROGRAMS[call.program](self, call)
        except RefusedError as error:
            call.err(f"{call.program}: {error}\n")
            return 1
