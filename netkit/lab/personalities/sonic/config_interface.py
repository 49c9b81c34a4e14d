"""`config` commands on single things: ports, addresses, BGP neighbours, the host name, isolation."""

from netkit.lab.node import RefusedError
from netkit.lab.personalities.sonic.command import Command, Commands, Line, UsageError
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import Tables, parts
from netkit.lab.personality import Call


def _known_ports(tables: Tables, names: str) -> list[str]:
    found = names.split(",")
    strange = [name for name in found if name not in tables.get("PORT", {})]
    if strange:
        raise UsageError(f"Interface name is invalid. Please enter a valid interface name!! ({', '.join(strange)})")
    return found


def _set_port(leaf: str, value: str = "") -> Command:
    """Return the command that sets a leaf of a port: to a value of its own, or to its second argument."""

    def action(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
        tables = system.edited()
        if not value and len(line.arguments) < 2:
            raise UsageError('Missing argument "value".')
        for name in _known_ports(tables, line.first("<interface_name>")):
            tables["PORT"][name][leaf] = value or line.arguments[1]
        system.write(tables)

    return Command(action, 1 if value else 2)


def _add_address(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    table, name, prefix = _interface(line)
    tables = system.edited()
    rows = tables.setdefault(table, {})
    rows.setdefault(name, {})
    rows[f"{name}|{prefix}"] = {}
    system.write(tables)


def _remove_address(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    table, name, prefix = _interface(line)
    tables = system.edited()
    if f"{name}|{prefix}" not in tables.get(table, {}):
        raise RefusedError(f"IP address {prefix} is not configured on {name}")
    del tables[table][f"{name}|{prefix}"]
    system.write(tables)


def _interface(line: Line) -> tuple[str, str, str]:
    if len(line.arguments) < 2:
        raise UsageError('Missing argument "ip_addr".')
    name, prefix = line.arguments
    table = next((table for word, table in _TABLES.items() if name.startswith(word)), None)
    if table is None:
        raise UsageError(f"{name} takes no address")
    return table, name, prefix


_TABLES = {"Ethernet": "INTERFACE", "Vlan": "VLAN_INTERFACE", "Loopback": "LOOPBACK_INTERFACE"}


def _set_neighbors(status: str, *, all_of_them: bool) -> Command:
    def action(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
        tables = system.edited()
        wanted = "" if all_of_them else line.first("<ipaddr_or_hostname>")
        rows = tables.get("BGP_NEIGHBOR", {})
        found = [key for key, row in rows.items() if all_of_them or wanted in {parts(key)[-1], row.get("name")}]
        if wanted and not found:
            raise RefusedError(f"Could not locate neighbor '{wanted}'")
        for key in found:
            rows[key]["admin_status"] = status
        system.write(tables)

    return Command(action, 0 if all_of_them else 1)


def _hostname(system: System, call: Call, line: Line) -> None:
    tables = system.edited()
    tables.setdefault("DEVICE_METADATA", {}).setdefault("localhost", {})["hostname"] = line.first("<hostname>")
    system.write(tables)
    call.out("Please note loaded setting will be lost after system reboot. To preserve setting, run `config save`.\n")


COMMANDS: Commands = {
    ("interface", "startup"): _set_port("admin_status", "up"),
    ("interface", "shutdown"): _set_port("admin_status", "down"),
    ("interface", "mtu"): _set_port("mtu"),
    ("interface", "fec"): _set_port("fec"),
    ("interface", "description"): _set_port("description"),
    ("interface", "ip", "add"): Command(_add_address, 2),
    ("interface", "ip", "remove"): Command(_remove_address, 2),
    ("bgp", "shutdown", "all"): _set_neighbors("down", all_of_them=True),
    ("bgp", "startup", "all"): _set_neighbors("up", all_of_them=True),
    ("bgp", "shutdown", "neighbor"): _set_neighbors("down", all_of_them=False),
    ("bgp", "startup", "neighbor"): _set_neighbors("up", all_of_them=False),
    ("hostname",): Command(_hostname, 1),
}
