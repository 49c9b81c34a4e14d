"""`netkit trust` and `netkit inventory`: how devices are reached."""

import sys
from collections.abc import Sequence
from pathlib import Path

from netkit.access import ansible_inventory, known_hosts
from netkit.access.endpoint import Endpoint
from netkit.access.known_hosts import FoundKey
from netkit.cli.fabric import open_project
from netkit.deploy.fan_out import each, threads
from netkit.design.select import select
from netkit.errors import AccessError, NetkitError, Problem
from netkit.project.fleet import Fleet, fleet
from netkit.report.plan_view import counted
from netkit.report.table import columns
from netkit.terminal.progress import counter
from netkit.terminal.text import is_agreed

WORKERS = 32
DECLINED, UNREACHED = 1, 4


def trust(folder: Path, *, limit: str, lab: str, yes: bool, replace: bool) -> int:
    """Show what devices identify themselves by, and trust it when the user says so."""
    project = open_project(folder, lab)
    devices = fleet(project)
    names = [device.name for device in select(project.fabric, limit)]
    found = _scanned(devices, names)
    shown = [one for one in found.values() if isinstance(one, FoundKey)]
    for name, one in found.items():
        if not isinstance(one, FoundKey):
            sys.stderr.write(f"error: {name}: {one.removeprefix(f'{name}: ')}\n")
    code = UNREACHED if len(shown) < len(found) else 0
    fresh = [one for one in shown if one.status != "known"]
    if not fresh:
        sys.stdout.write(f"{counted(len(shown), 'device')} shown what is trusted already\n" if shown else "")
        return code
    rows = ((one.device, f"{one.host}:{one.port}", one.status, one.kind, one.fingerprint) for one in fresh)
    sys.stdout.write(columns(rows, ("DEVICE", "PLACE", "STATUS", "KIND", "FINGERPRINT")))
    _refuse_changed(fresh, replace=replace)
    if not is_agreed(f"Trust {counted(len(fresh), 'device')}? Compare the fingerprints first.", yes=yes):
        sys.stderr.write("no new device is trusted\n")
        return code or DECLINED
    _remember(devices.endpoints[fresh[0].device], fresh, replace=replace)
    return code


def _scanned(devices: Fleet, names: Sequence[str]) -> dict[str, FoundKey | str]:
    """Return what each device shows, or why it shows nothing."""
    wanted = {name: name for name in names}
    wanted |= {f"{name} gNMI": name for name in names if _has_gnmi(devices, name)}
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


def _has_gnmi(devices: Fleet, name: str) -> bool:
    return name in devices.endpoints and devices.endpoints[name].gnmi.is_wanted


def _refuse_changed(found: Sequence[FoundKey], *, replace: bool) -> None:
    changed = [one for one in found if one.status == "changed"]
    if changed and not replace:
        remedy = "somebody may be listening in: find out why, then netkit trust --replace --limit with its name"
        raise AccessError(Problem(f"{one.device}: its {one.kind} is not the trusted one", remedy) for one in changed)


def _remember(endpoint: Endpoint, found: Sequence[FoundKey], *, replace: bool) -> None:
    if endpoint.known_hosts is None:
        raise AccessError(Problem("no file is named to keep keys in", "set known_hosts in access.yaml"))
    known_hosts.remember(found, endpoint.known_hosts, replace_changed=replace)
    sys.stdout.write(f"{counted(len(found), 'device')} trusted in {endpoint.known_hosts}\n")


def inventory(folder: Path, *, limit: str, lab: str) -> None:
    """Write the devices as an Ansible inventory."""
    project = open_project(folder, lab)
    devices = fleet(project)
    chosen = {device.name for device in select(project.fabric, limit)}
    found = {name: endpoint for name, endpoint in devices.endpoints.items() if name in chosen}
    sys.stdout.write(ansible_inventory.text(ansible_inventory.inventory(project.fabric, found)))
