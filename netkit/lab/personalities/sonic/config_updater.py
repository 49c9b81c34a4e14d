"""`config` commands of the generic updater: patches, replacement, checkpoints and rollback."""

import json
from collections.abc import Callable

from netkit.lab.node import RefusedError
from netkit.lab.personalities.sonic import patch
from netkit.lab.personalities.sonic.command import USAGE_ERROR, Command, Commands, Line, UsageError
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import Tables, parse
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
        raise RefusedError(f"{name}: {reason}") from error


def _apply_patch(system: System, call: Call, line: Line) -> int:
    name = line.first("PATCH_FILE_PATH")

    def intended() -> Tables:
        operations = patch.read(read_file(call, name))
        call.out("Patch Applier: localhost: Patch application starting.\n")
        call.out(f"Patch Applier: localhost: Patch: {json.dumps(operations)}\n")
        return patch.patched(system.running, operations)

    return _change(system, call, line, intended, ("apply patch", "Patch applied successfully."))


def _replace(system: System, call: Call, line: Line) -> int:
    name = line.first("TARGET_FILE_PATH")

    def intended() -> Tables:
        return parse(read_file(call, name), name)

    return _change(system, call, line, intended, ("replace config", "Config replaced successfully."))


def _rollback(system: System, call: Call, line: Line) -> int:
    name = line.first("CHECKPOINT_NAME")

    def intended() -> Tables:
        found = system.flash.checkpoint(name)
        if system.refuse_rollback:
            raise RefusedError("Sorting the changes failed: no order of them is valid at every step")
        return found

    return _change(system, call, line, intended, ("rollback config", "Config rolled back successfully."))


def _change(system: System, call: Call, line: Line, intended: Callable[[], Tables], words: tuple[str, str]) -> int:
    verb, success = words
    if line.options.get("-f", line.options.get("--format", "CONFIGDB")) != "CONFIGDB":
        raise UsageError("the lab takes patches in the format CONFIGDB only")
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
    except RefusedError as error:
        call.err(f"Failed to {verb} due to: {error}\n")
        call.err(f"Usage: config {call.arguments[0]} [OPTIONS]\nError: {error}\n")
        return USAGE_ERROR
    call.out(f"{success}\n")
    return 0


def _checkpoint(system: System, call: Call, line: Line) -> None:
    system.flash.keep_checkpoint(line.first("CHECKPOINT_NAME"), system.running)
    call.out("Checkpoint created successfully.\n")


def _delete_checkpoint(system: System, call: Call, line: Line) -> None:
    system.flash.drop_checkpoint(line.first("CHECKPOINT_NAME"))
    call.out("Checkpoint deleted successfully.\n")


def _list_checkpoints(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    call.out(f"{json.dumps(system.flash.checkpoints(), indent=4)}\n")


_FLAGS = frozenset({"-d", "--dry-run", "-v", "--verbose"})
_VERBOSE = frozenset({"-v", "--verbose"})
_FORMAT = frozenset({"-f", "--format"})

COMMANDS: Commands = {
    ("apply-patch",): Command(_apply_patch, 1, _FLAGS, _FORMAT),
    ("replace",): Command(_replace, 1, _FLAGS, _FORMAT),
    ("rollback",): Command(_rollback, 1, _FLAGS),
    ("checkpoint",): Command(_checkpoint, 1, _VERBOSE),
    ("delete-checkpoint",): Command(_delete_checkpoint, 1, _VERBOSE),
    ("list-checkpoints",): Command(_list_checkpoints, 0, _VERBOSE),
}
