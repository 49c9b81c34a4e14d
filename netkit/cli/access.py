"""`netkit trust` and `netkit inventory`: how devices are reached."""

import sys
from collections.abc import Sequence
from pathlib import Path

from netkit.access import inventory as ansible_inventory
from netkit.access import known_hosts
from netkit.access.known_hosts import FoundKey
from netkit.cli.fabric import open_project
from netkit.deploy.fan_out import each, threads
from netkit.design.select import select
from netkit.errors import AccessError, NetkitError, Problem
from netkit.project.connections import Connections
from netkit.report.plan_view import counted
from netkit.report.table import columns
from netkit.terminal.output import is_agreed
from netkit.terminal.progress import counter

WORKERS = 32
DECLINED, UNREACHED = 1, 4


def trust(folder: Path, *, limit: str, lab: str, yes: bool, replace: bool) -> int:
    """Show the host keys and certificates of devices, and trust them if the user agrees."""
    project = open_project(folder, lab)
    devices = Connections.of(project)
    names = [device.name for device in select(project.fabric, limit)]
    found = _scanned(devices, names)
    keys = [one for one in found.values() if isinstance(one, FoundKey)]
    for name, one in found.items():
        if not isinstance(one, FoundKey):
            sys.stderr.write(f"error: {name}: {one.removeprefix(f'{name}: ')}\n")
    code = UNREACHED if len(keys) < len(found) else 0
    fresh = [one for one in keys if one.status != "known"]
    if not fresh:
        sys.stdout.write(f"{counted(len(keys), 'device')} trusted already\n" if keys else "")
        return code
    rows = ((one.device, f"{one.host}:{one.port}", one.status, one.kind, one.fingerprint) for one in fresh)
    sys.stdout.write(columns(rows, ("DEVICE", "PLACE", "STATUS", "KIND", "FINGERPRINT")))
    changed = [one for one in fresh if one.status == "changed"]
    if changed and not replace:
        remedy = "this may be a man in the middle: find out why, then netkit trust --replace --limit with its name"
        raise AccessError(Problem(f"{one.device}: its {one.kind} is not the trusted one", remedy) for one in changed)
    if not is_agreed(f"Trust {counted(len(fresh), 'device')}? Compare the fingerprints first.", yes=yes):
        sys.stderr.write("nothing was added\n")
        return code or DECLINED
    file = devices.endpoints[fresh[0].device].known_hosts
    if file is None:
        raise AccessError(Problem("no file is set to keep keys in", "set known_hosts in access.yaml"))
    known_hosts.remember(fresh, file, replace_changed=replace)
    sys.stdout.write(f"{counted(len(fresh), 'device')} trusted in {file}\n")
    return code


def _scanned(devices: Connections, names: Sequence[str]) -> dict[str, FoundKey | str]:
    """The key of each device, or why it has none."""
    wanted = {name: name for name in names}
    known = devices.endpoints
    wanted |= {f"{name} gNMI": name for name in names if name in known and known[name].gnmi.is_wanted}
    with counter("asking", len(wanted)) as count:

        def scan(place: str) -> FoundKey | str:
            try:
                endpoint = devices.endpoint(wanted[place])
                return known_hosts.scan(endpoint) if place in names else known_hosts.scan_gnmi(endpoint)
            except NetkitError as error:
                return "; ".join(map(str, error.problems))
            finally:
                count()

        return each(threads(WORKERS), list(wanted), scan)


def inventory(folder: Path, *, limit: str, lab: str) -> None:
    """Print the devices as an Ansible inventory."""
    project = open_project(folder, lab)
    devices = Connections.of(project)
    chosen = {device.name for device in select(project.fabric, limit)}
    found = {name: endpoint for name, endpoint in devices.endpoints.items() if name in chosen}
    sys.stdout.write(ansible_inventory.inventory_text(ansible_inventory.ansible_inventory(project.fabric, found)))
