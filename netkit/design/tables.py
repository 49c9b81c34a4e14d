"""The fabric as the tables of an intent: with them, an intent designs the same fabric again."""

from collections import Counter
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


def cables(fabric: Fabric) -> Iterator[TableRow]:
    """Yield a row for each cable, lower end first."""
    links: Counter[tuple[str, str]] = Counter()
    for link in fabric.links():
        links[(link.device, link.peer)] += 1
        yield {
            "device": link.device,
            "port": link.port,
            "peer": link.peer,
            "peer_port": link.peer_port,
            "link": "" if link.kind == "host" else links[(link.device, link.peer)],
            "length_m": f"{link.cable.length_m:.12g}",
            "media": link.cable.media,
            "label": link.label,
        }


TABLES: Mapping[str, Callable[[Fabric], Iterator[TableRow]]] = {"devices": devices, "cables": cables}
