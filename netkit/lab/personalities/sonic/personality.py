"""SONiC as a personality: its programs, and who answers each."""

from collections.abc import Mapping

from netkit.lab.personalities.sonic import config_files, config_interface, config_updater, show_config
from netkit.lab.personalities.sonic.command import Commands, answer
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personality import Call

PROGRAMS: Mapping[str, Commands] = {
    "config": {**config_updater.COMMANDS, **config_files.COMMANDS, **config_interface.COMMANDS},
    "show": {**show_config.COMMANDS},
}


class Sonic(System):
    """Community SONiC, branches 202305 to 202511."""

    programs = tuple(PROGRAMS)
    login = "admin"

    def run(self, call: Call) -> int:
        """Answer one of the programs."""
        return answer(self, call, PROGRAMS[call.program])
