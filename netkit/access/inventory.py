"""The fabric as a Nornir inventory and as an Ansible inventory: groups by role, rail, unit, plane and platform."""

import ipaddress
from collections.abc import Callable, Iterator, Mapping

import yaml
from nornir.core.inventory import ConnectionOptions, Defaults, Group, Groups, Inventory, ParentGroups
from nornir.core.inventory import Host as NornirHost
from nornir.core.inventory import Hosts as NornirHosts

from netkit.access.connect import arguments
from netkit.access.settings import Endpoint
from netkit.design.fabric import Fabric, Host, Switch
from netkit.design.hosts import RoutePlan
from netkit.design.select import ATTRIBUTES
from netkit.design.select import groups as group_names
from netkit.platforms.linux import install, rails
from netkit.platforms.registry import ACCESS
from netkit.private import PASSWORD


def inventory(fabric: Fabric, found: Mapping[str, Endpoint], secrets: Callable[[str], str]) -> Inventory:
    """The devices that have an endpoint; others cannot be reached, and are left out."""
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


PLACE = ("rack", "rack_unit", "serial")
"""What of a device becomes a variable, where it is known."""


def ansible_inventory(fabric: Fabric, endpoints: Mapping[str, Endpoint]) -> dict[str, object]:
    """The devices that have an endpoint, with their groups, connection variables, and the rails of hosts."""
    plan = RoutePlan(fabric)
    variables: dict[str, dict[str, object]] = {}
    groups: dict[str, dict[str, object]] = {}
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    for device in devices:
        if device.name not in endpoints:
            continue
        found = connection(endpoints[device.name])
        if isinstance(device, Host):
            found["netkit_rails"] = rails.as_variables(rails.rails(_wanted(plan, device)))
        found |= {f"netkit_{key}": value for key in PLACE if (value := getattr(device, key))}
        variables[device.name] = found
        for name in (*group_names(device), f"pod_{ATTRIBUTES['pod'](device)}"):
            groups.setdefault(name, {})[device.name] = {}
    return {"all": {"hosts": variables, "children": {name: {"hosts": group} for name, group in groups.items()}}}


def connection(endpoint: Endpoint) -> dict[str, object]:
    """The connection variables of a device. The password is looked up in the environment, never written."""
    if endpoint.transport == "ssh":
        found = install.variables(endpoint)
    else:
        found = {
            "ansible_host": endpoint.host,
            "ansible_port": endpoint.port,
            "ansible_user": endpoint.user,
            "ansible_connection": "ansible.netcommon.httpapi",
            "ansible_network_os": ACCESS[endpoint.platform].ansible_network_os,
            "ansible_httpapi_use_ssl": True,
        }
    if endpoint.password:
        found["ansible_password"] = f"{{{{ lookup('ansible.builtin.env', '{PASSWORD}') }}}}"
    return found


def inventory_text(found: Mapping[str, object]) -> str:
    return yaml.dump(dict(found), Dumper=yaml.CSafeDumper, sort_keys=False, width=4096)


def _wanted(plan: RoutePlan, host: Host) -> Iterator[rails.ConfiguredRail]:
    for nic in host.nics:
        routes = (
            rails.NetplanRoute(ipaddress.IPv4Network(one.prefix), one.via, one.table, one.kind == "unreachable")
            for one in plan.routes(nic)
        )
        yield rails.ConfiguredRail(nic.interface, f"{nic.address}/{nic.prefix_length}", host.mtu_bytes, tuple(routes))
