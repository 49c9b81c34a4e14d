"""`config`: single settings, whole files, and the generic updater with its checkpoints."""

import json
from collections.abc import Callable

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.sonic import updater
from netkit.lab.personalities.sonic.command_line import (
    USAGE_ERROR,
    Commands,
    SonicArguments,
    SonicCommand,
    SonicUsageError,
    confirmed,
)
from netkit.lab.personalities.sonic.flash import CONFIG, write
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personalities.sonic.tables import Tables, dump, parse
from netkit.lab.personality import Call

STDIN = "/dev/stdin"


def read_file(call: Call, name: str) -> str:
    """Return the text of a file named on the node; /dev/stdin is what was piped in."""
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
        raise SonicUsageError("the lab takes patches in the format CONFIGDB only")
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
    # SONiC stops its services first, and a file it cannot read leaves them down: read before anything happens.
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
