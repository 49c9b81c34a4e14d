"""The fabric as a Nornir inventory: groups by role, rail, unit, plane and platform, and connection options."""

from collections.abc import Callable, Mapping

from nornir.core.inventory import ConnectionOptions, Defaults, Group, Groups, Inventory, ParentGroups
from nornir.core.inventory import Host as NornirHost
from nornir.core.inventory import Hosts as NornirHosts

from netkit.access.connect import arguments
from netkit.access.endpoint import Endpoint
from netkit.design.fabric import Fabric, Host, Switch
from netkit.design.select import ATTRIBUTES
from netkit.design.select import groups as group_names
from netkit.platforms.registry import ACCESS


def inventory(fabric: Fabric, found: Mapping[str, Endpoint], secrets: Callable[[str], str]) -> Inventory:
    """Return the devices that have an endpoint; others cannot be reached, and are left out."""
    groups: dict[str, Group] = {}
    hosts = NornirHosts()
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    for device in devices:
        if device.name in found:
            names = list(group_names(device))
            for name in names:
                groups.setdefault(name, Group(name))
            hosts[device.name] = _host(device, found[device.name], [groups[name] for name in names], secrets)
    return Inventory(hosts=hosts, groups=Groups(groups), defaults=Defaults())


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
