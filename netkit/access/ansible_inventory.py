"""The fabric as an Ansible inventory, for the playbooks and for a user's own."""

import ipaddress
from collections.abc import Iterator, Mapping

import yaml

from netkit.access.endpoint import Endpoint
from netkit.design.fabric import Fabric, Host
from netkit.design.hosts import RoutePlan
from netkit.design.select import ATTRIBUTES
from netkit.environment import PASSWORD
from netkit.platforms.linux import rails, reach

GROUPED = ("role", "unit", "pod", "platform")


def inventory(fabric: Fabric, endpoints: Mapping[str, Endpoint]) -> dict[str, object]:
    """Return the GPU hosts that have an endpoint, in groups, with how they are reached and what their rails are."""
    plan = RoutePlan(fabric)
    variables: dict[str, dict[str, object]] = {}
    groups: dict[str, dict[str, object]] = {}
    for host in fabric.hosts:
        if host.name not in endpoints:
            continue
        found = rails.rails(_wanted(plan, host))
        variables[host.name] = {**connection(endpoints[host.name]), "netkit_rails": rails.as_variables(found)}
        for attribute in GROUPED:
            group = groups.setdefault(f"{attribute}_{ATTRIBUTES[attribute](host)}", {})
            group[host.name] = {}
    return {"all": {"hosts": variables, "children": {name: {"hosts": group} for name, group in groups.items()}}}


def connection(endpoint: Endpoint) -> dict[str, object]:
    """Return how Ansible reaches a host. A password is asked of the environment, and never written."""
    found = reach.variables(endpoint)
    if endpoint.password:
        found["ansible_password"] = f"{{{{ lookup('ansible.builtin.env', '{PASSWORD}') }}}}"
    return found


def text(found: Mapping[str, object]) -> str:
    """Return an inventory as YAML."""
    return yaml.dump(dict(found), Dumper=yaml.CSafeDumper, sort_keys=False, width=4096)


def _wanted(plan: RoutePlan, host: Host) -> Iterator[rails.ConfiguredRail]:
    for nic in host.nics:
        routes = (
            rails.NetplanRoute(ipaddress.IPv4Network(one.prefix), one.via, one.table, one.kind == "unreachable")
            for one in plan.routes(nic)
        )
        yield rails.ConfiguredRail(nic.interface, f"{nic.address}/{nic.prefix_length}", host.mtu_bytes, tuple(routes))
