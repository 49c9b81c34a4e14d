"""`config` commands that move whole configurations between files and CONFIG_DB."""

from netkit.lab.personalities.sonic.command import Command, Commands, Line, UsageError, confirmed
from netkit.lab.personalities.sonic.config_updater import read_file
from netkit.lab.personalities.sonic.flash import CONFIG, write
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import Tables, dump, parse
from netkit.lab.personality import Call


def merge(system: System, added: Tables) -> None:
    """Lay rows over the running ones; nothing goes away."""
    tables = system.edited()
    for table, rows in added.items():
        for key, row in rows.items():
            tables.setdefault(table, {}).setdefault(key, {}).update(row)
    system.write(tables)


def _save(system: System, call: Call, line: Line) -> int:
    name = line.arguments[0] if line.arguments else CONFIG
    if not confirmed(call, line, "Existing files will be overwritten, continue?"):
        return 1
    call.out(f"Running command: /usr/local/bin/sonic-cfggen -d --print-data > {name}\n")
    if name == CONFIG:
        system.flash.save(system.running)
        return 0
    write(call.file(name), dump(system.running))
    return 0


def _load(system: System, call: Call, line: Line) -> int:
    name = line.arguments[0] if line.arguments else CONFIG
    if not confirmed(call, line, f"Load config from the file(s) {name} ?"):
        return 1
    call.out(f"Running command: /usr/local/bin/sonic-cfggen -j {name} --write-to-db\n")
    merge(system, parse(read_file(call, name), name))
    return 0


def _reload(system: System, call: Call, line: Line) -> int:
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


def _cfggen(system: System, call: Call, line: Line) -> None:
    added: Tables = {}
    if "-j" in line.options:
        added = parse(read_file(call, line.options["-j"]), line.options["-j"])
    if line.has("--write-to-db"):
        merge(system, added)
    elif line.has("--print-data"):
        call.out(dump(system.running if line.has("-d", "--from-db") else added))
    else:
        raise UsageError("give --print-data or --write-to-db")


_YES = frozenset({"-y", "--yes"})

COMMANDS: Commands = {
    ("save",): Command(_save, 1, _YES),
    ("load",): Command(_load, 1, _YES),
    ("reload",): Command(_reload, 1, _YES | {"-f", "--force", "-n", "--no_service_restart", "-b", "--bypass-lock"}),
}
CFGGEN: Commands = {
    (): Command(_cfggen, 0, frozenset({"-d", "--from-db", "--print-data", "--write-to-db"}), frozenset({"-j"})),
}
