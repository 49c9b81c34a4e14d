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
from netkit.lab.personalities.sonic.tables import Tables, dump, parse, parts, text
from netkit.lab.personality import Call


def _known_ports(tables: Tables, names: str) -> list[str]:
    found = names.split(",")
    strange = [name for name in found if name not in tables.get("PORT", {})]
    if strange:
        raise SonicUsageError(
            f"Interface name is invalid. Please enter a valid interface name!! ({', '.join(strange)})"
        )
    return found


def _set_port(leaf: str, value: str = "") -> SonicCommand:
    """Return the command that sets a leaf of a port: to a value of its own, or to its second argument."""

    def action(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
        tables = system.edited()
        if not value and len(line.arguments) < 2:
            raise SonicUsageError('Missing argument "value".')
        for name in _known_ports(tables, line.first("<interface_name>")):
            tables["PORT"][name][leaf] = value or line.arguments[1]
        system.write(tables)

    return SonicCommand(action, 1 if value else 2)


def _add_address(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    table, name, prefix = _interface(line)
    tables = system.edited()
    rows = tables.setdefault(table, {})
    rows.setdefault(name, {})
    rows[f"{name}|{prefix}"] = {}
    system.write(tables)


def _remove_address(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    table, name, prefix = _interface(line)
    tables = system.edited()
    if f"{name}|{prefix}" not in tables.get(table, {}):
        raise ConfigRefusedError(f"IP address {prefix} is not configured on {name}")
    del tables[table][f"{name}|{prefix}"]
    system.write(tables)


def _interface(line: SonicArguments) -> tuple[str, str, str]:
    if len(line.arguments) < 2:
        raise SonicUsageError('Missing argument "ip_addr".')
    name, prefix = line.arguments
    table = next((table for word, table in _TABLES.items() if name.startswith(word)), None)
    if table is None:
        raise SonicUsageError(f"{name} takes no address")
    return table, name, prefix


_TABLES = {"Ethernet": "INTERFACE", "Vlan": "VLAN_INTERFACE", "Loopback": "LOOPBACK_INTERFACE"}


def _set_neighbors(status: str, *, all_of_them: bool) -> SonicCommand:
    def action(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
        tables = system.edited()
        wanted = "" if all_of_them else line.first("<ipaddr_or_hostname>")
        rows = tables.get("BGP_NEIGHBOR", {})
        found = [key for key, row in rows.items() if all_of_them or wanted in {parts(key)[-1], row.get("name")}]
        if wanted and not found:
            raise ConfigRefusedError(f"Could not locate neighbor '{wanted}'")
        for key in found:
            rows[key]["admin_status"] = status
        system.write(tables)

    return SonicCommand(action, 0 if all_of_them else 1)


def _hostname(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    tables = system.edited()
    tables.setdefault("DEVICE_METADATA", {}).setdefault("localhost", {})["hostname"] = line.first("<hostname>")
    system.write(tables)
    call.out("Please note loaded setting will be lost after system reboot. To preserve setting, run `config save`.\n")


SETTING_COMMANDS: Commands = {
    ("interface", "startup"): _set_port("admin_status", "up"),
    ("interface", "shutdown"): _set_port("admin_status", "down"),
    ("interface", "mtu"): _set_port("mtu"),
    ("interface", "fec"): _set_port("fec"),
    ("interface", "description"): _set_port("description"),
    ("interface", "ip", "add"): SonicCommand(_add_address, 2),
    ("interface", "ip", "remove"): SonicCommand(_remove_address, 2),
    ("bgp", "shutdown", "all"): _set_neighbors("down", all_of_them=True),
    ("bgp", "startup", "all"): _set_neighbors("up", all_of_them=True),
    ("bgp", "shutdown", "neighbor"): _set_neighbors("down", all_of_them=False),
    ("bgp", "startup", "neighbor"): _set_neighbors("up", all_of_them=False),
    ("hostname",): SonicCommand(_hostname, 1),
}


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


def _replace(system: SonicSystem, call: Call, line: SonicArguments) -> int:
    name = line.first("TARGET_FILE_PATH")

    def intended() -> Tables:
        return parse(read_file(call, name), name)

    return _change(system, call, line, intended, ("replace config", "Config replaced successfully."))


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

UPDATER_COMMANDS: Commands = {
    ("apply-patch",): SonicCommand(_apply_patch, 1, _FLAGS, _FORMAT),
    ("replace",): SonicCommand(_replace, 1, _FLAGS, _FORMAT),
    ("rollback",): SonicCommand(_rollback, 1, _FLAGS),
    ("checkpoint",): SonicCommand(_checkpoint, 1, _VERBOSE),
    ("delete-checkpoint",): SonicCommand(_delete_checkpoint, 1, _VERBOSE),
    ("list-checkpoints",): SonicCommand(_list_checkpoints, 0, _VERBOSE),
}


def merge(system: SonicSystem, added: Tables) -> None:
    """Lay rows over the running ones; nothing goes away."""
    tables = system.edited()
    for table, rows in added.items():
        for key, row in rows.items():
            tables.setdefault(table, {}).setdefault(key, {}).update(row)
    system.write(tables)


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


def _load(system: SonicSystem, call: Call, line: SonicArguments) -> int:
    name = line.arguments[0] if line.arguments else CONFIG
    if not confirmed(call, line, f"Load config from the file(s) {name} ?"):
        return 1
    call.out(f"Running command: /usr/local/bin/sonic-cfggen -j {name} --write-to-db\n")
    merge(system, parse(read_file(call, name), name))
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


def _cfggen(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    added: Tables = {}
    if "-j" in line.options:
        added = parse(read_file(call, line.options["-j"]), line.options["-j"])
    if line.has("--write-to-db"):
        merge(system, added)
    elif line.has("--print-data"):
        call.out(dump(system.running if line.has("-d", "--from-db") else added))
    else:
        raise SonicUsageError("give --print-data or --write-to-db")


_YES = frozenset({"-y", "--yes"})

FILE_COMMANDS: Commands = {
    ("save",): SonicCommand(_save, 1, _YES),
    ("load",): SonicCommand(_load, 1, _YES),
    ("reload",): SonicCommand(
        _reload, 1, _YES | {"-f", "--force", "-n", "--no_service_restart", "-b", "--bypass-lock"}
    ),
}
CFGGEN: Commands = {
    (): SonicCommand(_cfggen, 0, frozenset({"-d", "--from-db", "--print-data", "--write-to-db"}), frozenset({"-j"})),
}


def _shift(*, is_away: bool) -> SonicCommand:
    def action(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
        wanted, mode = ("true", "Maintenance") if is_away else ("false", "Normal")
        if _flag(system) == wanted:
            call.out(f"System is already in {mode} mode\n")
            return
        tables = system.edited()
        tables.setdefault("BGP_DEVICE_GLOBAL", {}).setdefault("STATE", {})["tsa_enabled"] = wanted
        system.write(tables)
        call.out(f"System Mode: Normal -> {mode}\n" if is_away else f"System Mode: Maintenance -> {mode}\n")
        call.out("Please execute 'config save' to preserve System mode after reboot or config reload\n")

    return SonicCommand(action)


def _flag(system: SonicSystem) -> str:
    return text(system.running, "BGP_DEVICE_GLOBAL", "STATE", "tsa_enabled", "false")


def _check(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    call.out(f"System Mode: {'Maintenance' if _flag(system) == 'true' else 'Normal'}\n")


TSA: Commands = {(): _shift(is_away=True)}
TSB: Commands = {(): _shift(is_away=False)}
TSC: Commands = {(): SonicCommand(_check)}
