"""The fabric as the tables of an intent: with them, an intent designs the same fabric again."""

from collections.abc import Callable, Iterator, Mapping

from netkit.design.entries import keys_of
from netkit.design.fabric import Fabric, Host, Switch

TableRow = Mapping[str, object]
"""Column → value; columns that are not there are empty."""


def devices(fabric: Fabric) -> Iterator[TableRow]:
    """Yield a row for each device."""
    for switch in fabric.switches:
        management = switch.management
        yield {
            **_place(fabric, switch),
            "management": f"{management.address}/{management.prefix_length}" if management else "",
            "management_gateway": management.gateway if management else "",
            "loopback": switch.loopback,
            "asn": switch.asn,
        }
    for host in fabric.hosts:
        yield {**_place(fabric, host), "management": host.management}


def _place(fabric: Fabric, device: Switch | Host) -> TableRow:
    role = device.role if isinstance(device, Switch) else "host"
    return {
        "role": role,
        **{key: getattr(device, key) for key in keys_of(fabric, role)},
        "name": device.name,
        "serial": device.serial,
        "rack": device.rack,
        "rack_unit": device.rack_unit,
    }


TABLES: Mapping[str, Callable[[Fabric], Iterator[TableRow]]] = {"devices": devices}
