"""What a host's kernel answers when it is asked for a route, compared with the design."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from netkit.design import Nic
from netkit.design.fabric import CableEnd
from netkit.facts import Absent
from netkit.facts.host import Lookup
from netkit.judge.context import CheckContext, DeviceContext


@lru_cache(maxsize=64)
def _network(address: str, length: int) -> IPv4Network | IPv6Network:
    return ip_network(f"{address}/{length}", strict=False)


_address = lru_cache(maxsize=1024)(ip_address)
"""Most hosts are asked for the same destinations."""


def wrong(context: CheckContext, lookup: Lookup, nic: Nic, far: Nic) -> str:
    """What is wrong with the answer; empty if it is as designed."""
    if context.fabric.cross_rail == "blocked" and far.rail != nic.rail:
        # A kernel may call a blocked destination on-link when asked with an interface: no gateway is what counts.
        is_kept_apart = lookup.failure or not lookup.gateway
        return "" if is_kept_apart else f"goes to {lookup.gateway}, though rails are kept apart"
    if lookup.failure:
        return lookup.failure
    if lookup.out_interface != nic.interface:
        return f"leaves by {lookup.out_interface}"
    is_ipv6 = ":" in lookup.destination
    address, length = (nic.address_v6, nic.prefix_length_v6) if is_ipv6 else (nic.address, nic.prefix_length)
    own = _network(address, length)
    wanted = "" if _address(lookup.destination) in own else nic.gateway_v6 if is_ipv6 else nic.gateway
    if lookup.gateway == wanted:
        return ""
    shown = lookup.gateway or "no gateway, as if it were on-link"
    return f"goes to {shown}, not to {wanted or 'the link itself'}"


def astray(end: CableEnd) -> str:
    """The cause name of packets that a host's routes or rules lead elsewhere."""
    return f"packets of {end} on a wrong path"


def is_astray(context: CheckContext, device: DeviceContext, interface: str, far: Nic, *, is_ipv6: bool) -> bool:
    """Whether packets from a NIC to another leave on a wrong way: by lookups to its leaf, else to its rail."""
    nic, asked = device.nics[interface], device.facts.lookups
    nics = context.nics_by_address
    of_nic = [
        (one, nics[one.destination])
        for one in (() if isinstance(asked, Absent) else asked)
        if one.source and one.interface == interface and (":" in one.destination) == is_ipv6 and one.destination in nics
    ]
    alike = [(one, other) for one, other in of_nic if other.leaf == far.leaf]
    alike = alike or [(one, other) for one, other in of_nic if other.rail == far.rail]
    return any(wrong(context, one, nic, other) for one, other in alike)
