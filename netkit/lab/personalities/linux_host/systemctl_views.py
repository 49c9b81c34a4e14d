"""What `systemctl` shows of units: their properties, their state, their files, and lists of them."""

from collections.abc import Iterator, Mapping

from netkit.lab.personalities.linux_host.systemctl_words import Arguments
from netkit.lab.personalities.linux_host.unit_file import UnitError, template
from netkit.lab.personalities.linux_host.units import NETWORKD, Units, full_name
from netkit.lab.personality import Call

NOT_ACTIVE = 3
NO_SUCH_UNIT = 4


def properties(units: Units, name: str) -> Mapping[str, str]:
    """Return what `systemctl show` tells of a unit."""
    state = units.state(name)
    found = {
        "Id": name,
        "Names": name,
        "LoadState": "loaded" if units.is_known(name) else "not-found",
        "ActiveState": state.active,
        "SubState": state.sub,
        "Result": state.result,
        "ExecMainStatus": str(state.status),
        "NeedDaemonReload": "no",
    }
    if not units.is_known(name):
        return found
    found["UnitFileState"] = units.is_enabled(name)
    found["Transient"] = "yes" if units.is_transient(name) else "no"
    return found | dict(_from_file(units, name))


def _from_file(units: Units, name: str) -> Iterator[tuple[str, str]]:
    try:
        unit = units.unit(name)
    except UnitError:
        return
    yield "FragmentPath", unit.path
    for key, values in unit.settings.items():
        yield key.partition(".")[2], " ".join(values)


def show(units: Units, arguments: Arguments, call: Call) -> int:
    """Print properties as `key=value`, for programs."""
    if not arguments.names:
        call.out("Version=252 (252.38-1~deb12u1)\nSystemState=running\nVirtualization=none\n")
        return 0
    blocks = []
    for name in map(full_name, arguments.names):
        rows = properties(units, name)
        wanted = arguments.properties or list(rows)
        if "--value" in arguments.flags:
            blocks.append("".join(f"{rows[key]}\n" for key in wanted if key in rows))
        else:
            blocks.append("".join(f"{key}={rows[key]}\n" for key in wanted if key in rows))
    call.out("\n".join(blocks))
    return 0


def status(units: Units, arguments: Arguments, call: Call) -> int:
    """Print how units are, for people."""
    code = 0
    for name in map(full_name, arguments.names or [NETWORKD]):
        if not units.is_known(name):
            call.err(f"Unit {name} could not be found.\n")
            code = NO_SUCH_UNIT
            continue
        rows = properties(units, name)
        mark = {"active": "●", "failed": "×"}.get(rows["ActiveState"], "○")
        call.out(f"{mark} {name} - {rows.get('Description', name)}\n")
        path = rows.get("FragmentPath", "transient" if units.is_transient(name) else f"/lib/systemd/system/{name}")
        call.out(f"     Loaded: loaded ({path}; {rows['UnitFileState']})\n")
        why = f" (Result: {rows['Result']})" if rows["ActiveState"] == "failed" else f" ({rows['SubState']})"
        call.out(f"     Active: {rows['ActiveState']}{why}\n")
        state = units.state(name)
        if state.output:
            call.out("\n" + "".join(f"{line}\n" for line in state.output.splitlines()[-10:]))
        code = code or (0 if rows["ActiveState"] == "active" else NOT_ACTIVE)
    return code


def cat(units: Units, arguments: Arguments, call: Call) -> int:
    """Print unit files."""
    for name in map(full_name, arguments.names):
        try:
            unit = units.unit(name)
        except UnitError:
            call.err(f"No files found for {name}.\n")
            return 1
        call.out(f"# {unit.path}\n{unit.text}")
    return 0


def list_units(units: Units, arguments: Arguments, call: Call) -> int:
    """Print the units that are loaded, or the timers that wait."""
    names = [name for name in dict.fromkeys(units.names()) if units.is_known(name)]
    if arguments.verb == "list-timers":
        names = [name for name in names if name.endswith(".timer") and units.state(name).active == "active"]
    if "--no-legend" not in arguments.flags:
        call.out("  UNIT LOAD ACTIVE SUB DESCRIPTION\n")
    for name in names:
        state = units.state(name)
        call.out(f"  {name} loaded {state.active} {state.sub} {name}\n")
    if "--no-legend" not in arguments.flags:
        call.out(f"\n{len(names)} loaded units listed.\n")
    return 0


def list_unit_files(units: Units, _arguments: Arguments, call: Call) -> int:
    """Print the units that could be loaded."""
    for name in dict.fromkeys([*units.names(), *_files(units)]):
        call.out(f"{name} {units.is_enabled(name)} enabled\n")
    return 0


def _files(units: Units) -> Iterator[str]:
    yield from (template(name) for name in units.names() if "@" in name)
    yield NETWORKD
