"""SONiC's command line: parsing, tables of text, `show` and `config`."""

import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from netkit.lab.agents import lldp_daemon
from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.sonic import updater
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personalities.sonic.tables import CONFIG, Tables, dump, natural, ordered, parse, parts, text, write
from netkit.lab.personality import Call
from netkit.lab.reading import SwitchPortReading

USAGE_ERROR = 2


class SonicUsageError(Exception):
    """A command line that SONiC refuses."""


@dataclass(frozen=True, slots=True)
class SonicArguments:
    """The arguments and options after a command."""

    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        """Whether an option was given under any of its names."""
        return any(name in self.options for name in names)

    def first(self, what: str) -> str:
        """The first argument; raise SonicUsageError if it is missing."""
        if not self.arguments:
            raise SonicUsageError(f'Missing argument "{what}".')
        return self.arguments[0]


Action = Callable[[SonicSystem, Call, SonicArguments], int | None]


@dataclass(frozen=True, slots=True)
class SonicCommand:
    """A command and the options it takes."""

    action: Action
    max_arguments: int = 0
    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()


Commands = Mapping[tuple[str, ...], SonicCommand]


def answer(system: SonicSystem, call: Call, commands: Commands) -> int:
    """Run the command that the line begins with."""
    try:
        words, command = find(call.arguments, commands)
        line = parse_line(call.arguments[len(words) :], command)
        return command.action(system, call, line) or 0
    except SonicUsageError as error:
        call.err(f"Usage: {call.program} [OPTIONS] COMMAND [ARGS]...\n\nError: {error}\n")
        return USAGE_ERROR
    except ConfigRefusedError as error:
        call.err(f"Error: {error}\n")
        return 1


def find(words: tuple[str, ...], commands: Commands) -> tuple[tuple[str, ...], SonicCommand]:
    """The longest command that the words begin with."""
    for length in range(len(words), -1, -1):
        if words[:length] in commands:
            return words[:length], commands[words[:length]]
    raise SonicUsageError(f'No such command "{" ".join(words)}".')


def parse_line(words: tuple[str, ...], command: SonicCommand) -> SonicArguments:
    """Parse the arguments and options after a command."""
    arguments, options, rest = list[str](), dict[str, str](), list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word in command.flags:
            options[word] = ""
        elif name in command.valued:
            if not equals and not rest:
                raise SonicUsageError(f"{name} option requires an argument")
            options[name] = value if equals else rest.pop(0)
        elif word.startswith("-") and len(word) > 1 and not word[1:].isdigit():
            raise SonicUsageError(f"no such option: {word}")
        else:
            arguments.append(word)
    if len(arguments) > command.max_arguments:
        raise SonicUsageError(f"Got unexpected extra argument ({arguments[command.max_arguments]})")
    return SonicArguments(tuple(arguments), options)


def confirmed(call: Call, line: SonicArguments, question: str) -> bool:
    """Whether the user agrees, with -y or when asked."""
    if line.has("-y", "--yes"):
        return True
    is_yes = call.ask(f"{question} [y/N]: ").strip().lower() in {"y", "yes"}
    if not is_yes:
        call.err("Aborted!\n")
    return is_yes


PADDING = 2
"""A column is at least this much wider than its header."""
NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def columns(titles: Sequence[str], rows: Iterable[Sequence[object]], *, right: bool = True) -> str:
    """Format a table as SONiC does; columns of numbers are always right-aligned."""
    cells = [[str(cell) for cell in row] for row in rows]
    found = [[row[index] for row in cells] for index in range(len(titles))]
    widths = [max([len(title) + PADDING, *map(len, column)]) for title, column in zip(titles, found, strict=True)]
    rights = [right or (bool(column) and all(map(NUMBER.fullmatch, column))) for column in found]
    lines = [_line(titles, widths, rights), "  ".join("-" * width for width in widths)]
    return "".join(f"{line}\n" for line in [*lines, *(_line(row, widths, rights) for row in cells)])


def _line(cells: Sequence[str], widths: Sequence[int], rights: Sequence[bool]) -> str:
    placed = (
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, rights, strict=True)
    )
    return "  ".join(placed).rstrip()


def _all(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    routing = system.node.run("vtysh", "-c", "show running-config").stdout
    call.out(json.dumps({**ordered(system.running), "bgpraw": routing}, indent=4) + "\n")


RULE = "-" * 50
LLDP_COMMAND = ("/usr/sbin/lldpcli", "-f", "json0", "show", "neighbors")


def serial(system: SonicSystem) -> str:
    """A serial number that is stable for a device name."""
    return f"LAB{zlib.crc32(system.switch.name.encode()):010d}"


def _version(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    platform, hwsku = (text(system.running, "DEVICE_METADATA", "localhost", leaf) for leaf in ("platform", "hwsku"))
    call.out(
        f"\nSONiC Software Version: SONiC.{system.switch.version}\nSONiC OS Version: 12\nDistribution: Debian 12\n"
        f"Built by: netkit lab\n\nPlatform: {platform}\nHwSKU: {hwsku}\nASIC: {system.switch.model.asic}\n"
        f"ASIC Count: 1\nSerial Number: {serial(system)}\nModel Number: {system.switch.model.name}\n"
        "Hardware Revision: N/A\n\n"
    )


def _lldp_table(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    neighbors = lldp_daemon.neighbors(system.node.run(*LLDP_COMMAND).stdout)
    rows = [
        (one.interface, one.chassis.name, one.port, "", one.port_description)
        for one in sorted(neighbors, key=lambda one: natural(one.interface))
    ]
    call.out("Capability codes: (R) Router, (B) Bridge, (O) Other\n")
    call.out(columns(("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"), rows, right=False))
    call.out(f"{RULE}\nTotal entries displayed:  {len(rows)}\n")


FORM_WORDS = {"OSFP": "OSFP 8X Pluggable Transceiver", "QSFP-DD": "QSFP-DD Double Density 8X Pluggable Transceiver"}


def _status(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    up = {reading.name: reading for reading in system.node.ports()}
    names = sorted(system.running.get("PORT", {}), key=natural)
    if line.arguments and line.arguments[0] not in names:
        raise SonicUsageError(f"Invalid interface name {line.arguments[0]}")
    titles = ("Interface", "Lanes", "Speed", "MTU", "FEC", "Alias", "Vlan", "Oper", "Admin", "Type", "Asym PFC")
    call.out(columns(titles, [_status_row(system, name, up.get(name)) for name in line.arguments or names]))


def _status_row(system: SonicSystem, name: str, reading: SwitchPortReading | None) -> Sequence[str]:
    row = {leaf: text(system.running, "PORT", name, leaf) for leaf in system.running["PORT"][name]}
    speed = int(row["speed"])
    module = reading.module if reading else None
    return (
        name,
        row["lanes"],
        f"{speed // 1000}G" if speed % 1000 == 0 else f"{speed}M",
        row.get("mtu", "9100"),
        row.get("fec", "N/A"),
        row.get("alias", name),
        "trunk" if any(parts(key)[1] == name for key in system.running.get("VLAN_MEMBER", {})) else "routed",
        "up" if reading and reading.is_up else "down",
        row.get("admin_status", "down"),
        FORM_WORDS.get(module.identifier, module.identifier) if module else "N/A",
        "off",
    )


SHOW: Commands = {
    ("runningconfiguration", "all"): SonicCommand(_all),
    ("version",): SonicCommand(_version),
    ("interfaces", "status"): SonicCommand(_status, 1),
    ("lldp", "table"): SonicCommand(_lldp_table),
}


STDIN = "/dev/stdin"


def read_file(call: Call, name: str) -> str:
    """Read a file named on the node, or standard input as /dev/stdin."""
    if name == STDIN:
        return call.stdin()
    try:
        return call.file(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigRefusedError(f"{name}: {reason}") from error


def _apply_patch(system: SonicSystem, call: Call, line: SonicArguments) -> int:
    name = line.first("PATCH_FILE_PATH")

    def intended() -> Tables:
        operations = updater.read(read_file(call, name))
        call.out("Patch Applier: localhost: Patch application starting.\n")
        call.out(f"Patch Applier: localhost: Patch: {json.dumps(operations)}\n")
        return updater.patched(system.running, operations)

    return _change(system, call, line, intended, ("apply patch", "Patch applied successfully."))


def _rollback(system: SonicSystem, call: Call, line: SonicArguments) -> int:
    name = line.first("CHECKPOINT_NAME")

    def intended() -> Tables:
        found = system.flash.checkpoint(name)
        if system.refuse_rollback:
            raise ConfigRefusedError("Sorting the changes failed: no order of them is valid at every step")
        return found

    return _change(system, call, line, intended, ("rollback config", "Config rolled back successfully."))


def _change(
    system: SonicSystem, call: Call, line: SonicArguments, intended: Callable[[], Tables], words: tuple[str, str]
) -> int:
    verb, success = words
    if line.options.get("-f", line.options.get("--format", "CONFIGDB")) != "CONFIGDB":
        raise SonicUsageError("the lab supports only patches in the format CONFIGDB")
    is_dry = line.has("-d", "--dry-run")
    try:
        planned = system.planned(intended())
        if is_dry:
            call.out("** DRY RUN EXECUTION **\n")
        number = len(planned.steps)
        call.out(
            f"Patch Applier: localhost: The patch was converted into {number} change{'' if number == 1 else 's'}:\n"
        )
        for step in planned.lines():
            call.out(f"Patch Applier: localhost:   * {step}\n")
        if not is_dry and not system.apply(planned):
            call.err("Patch Applier: localhost: the changes did not reach ConfigDb\n")
    except ConfigRefusedError as error:
        call.err(f"Failed to {verb} due to: {error}\n")
        call.err(f"Usage: config {call.arguments[0]} [OPTIONS]\nError: {error}\n")
        return USAGE_ERROR
    call.out(f"{success}\n")
    return 0


def _checkpoint(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    system.flash.keep_checkpoint(line.first("CHECKPOINT_NAME"), system.running)
    call.out("Checkpoint created successfully.\n")


def _delete_checkpoint(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    system.flash.drop_checkpoint(line.first("CHECKPOINT_NAME"))
    call.out("Checkpoint deleted successfully.\n")


def _list_checkpoints(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    call.out(f"{json.dumps(system.flash.checkpoints(), indent=4)}\n")


_FLAGS = frozenset({"-d", "--dry-run", "-v", "--verbose"})
_VERBOSE = frozenset({"-v", "--verbose"})
_FORMAT = frozenset({"-f", "--format"})


def _save(system: SonicSystem, call: Call, line: SonicArguments) -> int:
    name = line.arguments[0] if line.arguments else CONFIG
    if not confirmed(call, line, "Existing files will be overwritten, continue?"):
        return 1
    call.out(f"Running command: /usr/local/bin/sonic-cfggen -d --print-data > {name}\n")
    if name == CONFIG:
        system.flash.save(system.running)
        return 0
    write(call.file(name), dump(system.running))
    return 0


def _reload(system: SonicSystem, call: Call, line: SonicArguments) -> int:
    name = line.arguments[0] if line.arguments else CONFIG
    if not confirmed(
        call, line, "Clear current config and reload config in config_db format from the default config file(s) ?"
    ):
        return 1
    # SONiC stops its services first, and an unreadable file leaves them down; the lab reads it before.
    tables = parse(read_file(call, name), name)
    call.out("Stopping SONiC target ...\n")
    call.out(f"Running command: /usr/local/bin/sonic-cfggen -j /etc/sonic/init_cfg.json -j {name} --write-to-db\n")
    if system.fail_apply_quietly:
        call.err("Job for swss.service failed because the control process exited with error code.\n")
        return 0
    system.reload(tables)
    call.out("Restarting SONiC target ...\nReloading Monit configuration ...\n")
    return 0


_YES = frozenset({"-y", "--yes"})

CONFIG_COMMANDS: Commands = {
    ("apply-patch",): SonicCommand(_apply_patch, 1, _FLAGS, _FORMAT),
    ("rollback",): SonicCommand(_rollback, 1, _FLAGS),
    ("checkpoint",): SonicCommand(_checkpoint, 1, _VERBOSE),
    ("delete-checkpoint",): SonicCommand(_delete_checkpoint, 1, _VERBOSE),
    ("list-checkpoints",): SonicCommand(_list_checkpoints, 0, _VERBOSE),
    ("save",): SonicCommand(_save, 1, _YES),
    ("reload",): SonicCommand(
        _reload, 1, _YES | {"-f", "--force", "-n", "--no_service_restart", "-b", "--bypass-lock"}
    ),
}
