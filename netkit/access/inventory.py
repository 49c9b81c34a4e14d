"""The fabric as a Nornir inventory: groups by role, rail, unit, plane and platform, and how each device is opened.

InitNornir(inventory={"plugin": "NetkitInventory", "options": {"fabric": "inventory/ai1"}})
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nornir.core.inventory import ConnectionOptions, Defaults, Group, Groups, Inventory, ParentGroups
from nornir.core.inventory import Host as NornirHost
from nornir.core.inventory import Hosts as NornirHosts

from netkit import design, intent
from netkit.access import settings as access
from netkit.access.connect import arguments
from netkit.access.endpoint import Endpoint
from netkit.access.endpoints import endpoints, lab_endpoints
from netkit.access.secrets import SecretStore
from netkit.design.fabric import Fabric, Host, Switch
from netkit.design.select import ATTRIBUTES
from netkit.errors import AccessError, Problem
from netkit.hardware import Catalog
from netkit.platforms.registry import ACCESS

GROUPED = ("role", "rail", "unit", "plane", "platform")


class NetkitInventory:
    """Nornir's plugin. `lab` is the folder of a running lab: then its devices are reached, and nothing else."""

    def __init__(self, fabric: str, lab: str = "", models: str = "") -> None:
        self.folder = Path(fabric).expanduser()
        self.lab = Path(lab).expanduser() if lab else None
        self.models = Path(models).expanduser() if models else self.folder / "models"

    def load(self) -> Inventory:
        """Read the fabric and how it is reached."""
        loaded = intent.load(self.folder)
        catalog = Catalog((self.models,) if self.models.is_dir() else ())
        fabric = design.build(loaded.intent, catalog)
        settings = access.load(loaded.folder)
        if self.lab is None:
            found = endpoints(fabric, settings, loaded.folder)
        else:
            found = lab_endpoints(_record(self.lab), self.lab, settings)
        return inventory(fabric, found, SecretStore(settings.secrets))


def _record(folder: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((folder / "lab.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise AccessError(Problem(f"no lab runs in {folder}", "netkit lab status"))
    return found


def inventory(fabric: Fabric, found: Mapping[str, Endpoint], secrets: Callable[[str], str]) -> Inventory:
    """Return the devices that have an endpoint; one without cannot be reached, and is not there."""
    groups: dict[str, Group] = {}
    hosts = NornirHosts()
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    for device in devices:
        if device.name in found:
            names = list(_group_names(device))
            for name in names:
                groups.setdefault(name, Group(name))
            hosts[device.name] = _host(device, found[device.name], [groups[name] for name in names], secrets)
    return Inventory(hosts=hosts, groups=Groups(groups), defaults=Defaults())


def _group_names(device: Switch | Host) -> Iterator[str]:
    is_leaf = isinstance(device, Switch) and device.role == "leaf"
    foreign = {"plane"} if is_leaf else {"unit"} if isinstance(device, Switch) else set()
    for attribute in GROUPED:
        value = ATTRIBUTES[attribute](device)
        if value and attribute not in foreign:
            yield f"{attribute}_{value}"


def _host(device: Switch | Host, endpoint: Endpoint, groups: list[Group], secrets: Callable[[str], str]) -> NornirHost:
    return NornirHost(
        name=device.name,
        hostname=endpoint.host,
        port=endpoint.port,
        username=endpoint.user,
        password=endpoint.password,
        platform=endpoint.platform,
        groups=ParentGroups(groups),
        data={attribute: value(device) for attribute, value in ATTRIBUTES.items() if attribute != "name"},
        connection_options=_options(endpoint, secrets),
    )


def _options(endpoint: Endpoint, secrets: Callable[[str], str]) -> dict[str, ConnectionOptions]:
    napalm = {"timeout": endpoint.timeout_s, "optional_args": arguments(endpoint, secrets)}
    options = {"napalm": ConnectionOptions(extras=napalm)}
    if endpoint.transport == "ssh":
        options["netmiko"] = ConnectionOptions(
            platform=ACCESS[endpoint.platform].netmiko,
            extras={
                "key_file": str(endpoint.key_file) if endpoint.key_file else None,
                "allow_agent": endpoint.key_file is None,
                "ssh_config_file": str(endpoint.ssh_config) if endpoint.ssh_config else None,
                "ssh_strict": True,
                "alt_host_keys": endpoint.known_hosts is not None,
                "alt_key_file": str(endpoint.known_hosts or ""),
                "conn_timeout": endpoint.timeout_s,
            },
        )
    return options
