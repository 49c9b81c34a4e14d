"""The fabric as an Ansible inventory, for netkit's playbooks and the user's own."""

import ipaddress
from collections.abc import Iterator, Mapping

import yaml

from netkit.access.endpoint import Endpoint
from netkit.design.fabric import Fabric, Host, Switch
from netkit.design.hosts import RoutePlan
from netkit.design.select import ATTRIBUTES
from netkit.design.select import groups as group_names
from netkit.environment import PASSWORD
from netkit.platforms.linux import install, rails
from netkit.platforms.registry import ACCESS

PLACE = ("rack", "rack_unit", "serial")
"""What of a device becomes a variable, where it is known."""


def inventory(fabric: Fabric, endpoints: Mapping[str, Endpoint]) -> dict[str, object]:
    """Return the devices that have an endpoint, with their groups, connection variables, and the rails of hosts."""
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
    """Return the connection variables of a device. The password is looked up in the environment, never written."""
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


def text(found: Mapping[str, object]) -> str:
    return yaml.dump(dict(found), Dumper=yaml.CSafeDumper, sort_keys=False, width=4096)


def _wanted(plan: RoutePlan, host: Host) -> Iterator[rails.ConfiguredRail]:
    for nic in host.nics:
        routes = (
            rails.NetplanRoute(ipaddress.IPv4Network(one.prefix), one.via, one.table, one.kind == "unreachable")
            for one in plan.routes(nic)
        )
        yield rails.ConfiguredRail(nic.interface, f"{nic.address}/{nic.prefix_length}", host.mtu_bytes, tuple(routes))
