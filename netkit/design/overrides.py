"""Checks of the overrides of an intent against the devices they apply to."""

import fnmatch
from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from netkit.design.fabric import Fabric, Host, Switch
from netkit.design.hardware_lookup import version_problems
from netkit.errors import Path, Problem
from netkit.intent.model import Intent, Override

BY_RAIL = frozenset({"macs", "leaves"})
FOR_ALL = frozenset({"rack"})


def problems(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield every override that does not fit the devices it names."""
    for name, override in intent.overrides.items():
        switches, hosts = _targets(designed, name)
        path: Path = ("overrides", name)
        if not switches and not hosts:
            continue  # reported where overrides that match nothing are
        yield from _wrong_kind(name, override, path, has_switches=bool(switches), has_hosts=bool(hosts))
        yield from _of_switches(designed, override, switches, path)
        yield from _of_hosts(override, hosts, path)


def _targets(designed: Fabric, name: str) -> tuple[Sequence[Switch], Sequence[Host]]:
    device = designed.device(name)
    if device is not None:
        return ((device,), ()) if isinstance(device, Switch) else ((), (device,))
    switches = [switch for switch in designed.switches if fnmatch.fnmatchcase(switch.name, name)]
    return switches, [host for host in designed.hosts if fnmatch.fnmatchcase(host.name, name)]


def _wrong_kind(name: str, override: Override, path: Path, *, has_switches: bool, has_hosts: bool) -> Iterator[Problem]:
    for key in sorted(override.model_fields_set):
        if key in BY_RAIL and not has_hosts:
            yield Problem(
                f"{key} belongs to hosts, but {name} names switches", "remove it, or name a host", (*path, key)
            )
        if key not in BY_RAIL | FOR_ALL and not has_switches:
            yield Problem(
                f"{key} belongs to switches, but {name} names hosts", "remove it, or name a switch", (*path, key)
            )


def _of_switches(designed: Fabric, override: Override, switches: Sequence[Switch], path: Path) -> Iterator[Problem]:
    neighbours = {port.peer for switch in switches for port in switch.fabric_ports}
    for other in sorted(set(override.drain_neighbors) - neighbours if switches else ()):
        close = ", ".join(sorted(neighbours)[:4]) or "none"
        remedy = f"name switches it is cabled to, such as {close}"
        yield Problem(f"no session leads to {other}", remedy, (*path, "drain_neighbors"))
    if override.version:
        found = {
            problem
            for switch in switches
            for problem in version_problems(switch.platform, override.version, switch.routing_mode, path)
        }
        yield from sorted(found, key=str)
    given = {key for key in ("loopback", "management") if getattr(override, key) is not None}
    for switch in switches[:1] if given else ():
        yield from addresses(designed, switch, given, path)


def addresses(designed: Fabric, switch: Switch, given: Collection[str], path: Path) -> Iterator[Problem]:
    """Yield what is wrong with the given ones among the addresses of a switch."""
    loopbacks, management = IPv4Network(designed.loopback_pool), switch.management
    if "loopback" in given and IPv4Address(switch.loopback) not in loopbacks:
        message = f"{switch.loopback} is outside the loopback pool {loopbacks}, and no switch accepts routes to it"
        yield Problem(message, "name an address of the pool", (*path, "loopback"))
    key = next((one for one in ("management", "management_gateway") if one in given), None)
    if key is None:
        return
    if management is None:
        yield Problem("no management address is behind this gateway", "give management too", (*path, key))
    elif not management.gateway:
        yield Problem("a management address needs a gateway", "add management with pool and gateway", (*path, key))
    else:
        own = IPv4Interface(f"{management.address}/{management.prefix_length}")
        pool = next((one for one in (designed.loopback_pool, designed.host_pool) if own.ip in IPv4Network(one)), "")
        if IPv4Address(management.gateway) not in own.network:
            message = f"{own.network} does not hold the gateway {management.gateway}"
            yield Problem(message, "use an address beside the gateway", (*path, key))
        elif pool:
            message = f"{own.ip} is within {pool}, which numbers the fabric"
            yield Problem(message, "use an address of the management network", (*path, key))
        elif own.ip in {own.network.network_address, own.network.broadcast_address}:
            message = f"{own.ip} is the first or last address of {own.network}, which no device can have"
            yield Problem(message, "use one between them", (*path, key))


def _of_hosts(override: Override, hosts: Sequence[Host], path: Path) -> Iterator[Problem]:
    rails = {nic.rail for host in hosts for nic in host.nics}
    for key in sorted(BY_RAIL):
        for rail in sorted(set(getattr(override, key)) - rails if hosts else ()):
            yield Problem(f"there is no NIC on rail {rail}", "name a rail the host has", (*path, key, rail))
    for host in hosts:
        for nic in host.nics:
            wired = override.leaves.get(nic.rail, nic.leaf)
            if wired != nic.leaf:
                yield Problem(
                    f"rail {nic.rail} of unit {host.unit} would be on two leaves:"
                    f" {host.name} on {wired}, its peers on {nic.leaf}",
                    f"wire it to {nic.leaf} {nic.leaf_port}",
                    (*path, "leaves", nic.rail),
                )
