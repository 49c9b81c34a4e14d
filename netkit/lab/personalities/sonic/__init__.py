"""Community SONiC: the generic updater, CONFIG_DB, the other databases and `show`."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from netkit.lab.node import ConfigRefusedError, ProgramResult
from netkit.lab.personalities.linux_host.systemctl import systemctl, systemd_run
from netkit.lab.personalities.sonic import commands, database
from netkit.lab.personalities.sonic.commands import Commands, answer
from netkit.lab.personalities.sonic.switch import realisable
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personalities.sonic.tables import FOLDER, FRR, write
from netkit.lab.personality import Call, Elem, GnmiLeaf

CONTAINERS = ("bgp", "database", "lldp", "pmon", "snmp", "swss", "syncd")
MOUNTED, FRR_FOLDER = "/etc/frr/", f"{FOLDER}/frr"
RELOAD = "frr-reload.py"
USAGE_ERROR = 2


def manage_units(system: SonicSystem, call: Call) -> int:
    """Answer `systemctl` for the switch's containers, and as on any host for other units."""
    verb, *names = [word for word in call.arguments if not word.startswith("-")] or [""]
    if not names or not {_container(name) for name in names} <= set(CONTAINERS):
        return systemctl(system.units, call)
    if verb in {"is-active", "is-enabled"}:
        call.out("".join(f"{'active' if verb == 'is-active' else 'enabled'}\n" for _ in names))
    elif verb in {"restart", "reload-or-restart", "try-restart"}:
        _restart(system, names)
    elif verb not in {"start", "reset-failed"}:
        call.err(f"systemctl: {verb} is not supported: the lab's containers always run\n")
        return 1
    return 0


def _restart(system: SonicSystem, names: list[str]) -> None:
    if "bgp" in {_container(name) for name in names}:
        system.restart_routing()


def _container(name: str) -> str:
    return name.removesuffix(".service")


def docker(system: SonicSystem, call: Call) -> int:
    """Answer `docker exec bgp …`, `docker restart NAME` and `docker ps`."""
    words = [word for word in call.arguments if word not in {"-i", "-t", "-it", "-ti"}]
    match words:
        case ["ps", *_]:
            call.out("".join(f"{name}\n" for name in ("NAMES", *CONTAINERS)))
        case ["restart", name] if name in CONTAINERS:
            _restart(system, [name])
            call.out(f"{name}\n")
        case ["exec", "bgp", program, *rest]:
            result = _in_container(system, program, rest, call)
            call.out(result.stdout)
            call.err(result.stderr)
            return result.exit_code
        case _:
            call.err("docker: the lab supports `exec bgp COMMAND`, `restart CONTAINER` and `ps`\n")
            return USAGE_ERROR
    return 0


def _in_container(system: SonicSystem, program: str, words: list[str], call: Call) -> ProgramResult:
    # The container mounts the switch's /etc/sonic/frr as /etc/frr.
    rest = [f"{FRR_FOLDER}/{word.removeprefix(MOUNTED)}" if word.startswith(MOUNTED) else word for word in words]
    if program.endswith(RELOAD):
        return _frr_reload(system, program, rest)
    is_piped = program in {"sh", "bash"} and "-c" not in rest
    return system.node.run(program, *rest, stdin=call.stdin() if is_piped else "")


def _frr_reload(system: SonicSystem, program: str, words: list[str]) -> ProgramResult:
    """Load a file into FRR, or run the real tool with --test.

    As the real tool, it then writes the running configuration to frr.conf, unless it loaded that very file.
    """
    folder = next((after for word, after in pairwise(words) if word == "--confdir"), FRR_FOLDER)
    files = [word for before, word in pairwise(("", *words)) if word.startswith("/") and before != "--confdir"]
    if len(files) != 1 or not {"--reload", "--test"} & set(words):
        return ProgramResult(USAGE_ERROR, "", f"{RELOAD}: --reload or --test and a file are required\n")
    text = system.flash.text(files[0])
    if "--reload" in words:
        system.load_routing(text)
        if files[0] != f"{folder}/frr.conf":
            write(system.node.file(FRR), text)
        return ProgramResult(0, "", "")
    draft = "/tmp/frr-test.conf"  # noqa: S108 - a folder of the node
    write(system.node.file(draft), realisable(text, has_bfd=True))
    return system.node.run(program, *(draft if word == files[0] else word for word in words))


COMMANDS: Mapping[str, Commands] = {
    "config": commands.CONFIG_COMMANDS,
    "show": commands.SHOW,
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

    @classmethod
    def locks(cls, call: Call) -> bool:
        return (call.program, call.arguments) != ("sonic-db-cli", ("PING",))

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[GnmiLeaf]:
        yield from database.gnmi(self, target, path)

    def run(self, call: Call) -> int:
        if call.program in COMMANDS:
            return answer(self, call, COMMANDS[call.program])
        try:
            return PROGRAMS[call.program](self, call)
        except ConfigRefusedError as error:
            call.err(f"{call.program}: {error}\n")
            return 1


PERSONALITY = Sonic
