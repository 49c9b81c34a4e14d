"""Ports and LLDP neighbours, from IF-MIB and LLDP-MIB."""

from collections.abc import Mapping

from netkit.facts import Absent, Facts
from netkit.facts.device import Interface, Neighbor
from netkit.platforms.agents import agents_of
from netkit.platforms.snmp.transport import Oid, Table, mac, number, octets, table, words

MTU, ADDRESS, ADMIN, OPERATION = 4, 6, 7, 8
SPEED_MBPS, ALIAS = 15, 18
UP = 1
UNKNOWN = {None, 4}
"""States without information."""
PORT_ID = 3
REMOTE_KIND, REMOTE_PORT, REMOTE_TEXT, REMOTE_SYSTEM = 6, 7, 8, 9
IS_MAC = 3
MBPS_PER_GBPS = 1000


def interfaces(if_text: str, names_text: str, platform: str) -> Facts:
    if_table, if_names = table(if_text), table(names_text)
    named = ports(platform, if_table, if_names)
    found = {name: _interface(if_table, if_names, (index,), name) for index, name in named.items()}
    return Facts(interfaces=found or Absent("ifTable and ifXTable show no ports"))


def _interface(if_table: Table, if_names: Table, at: Oid, name: str) -> Interface:
    speed = number(if_names, SPEED_MBPS, at)
    label = words(if_names, IF_NAME, at)
    return Interface(
        is_up=_is(number(if_table, OPERATION, at)),
        is_enabled=_is(number(if_table, ADMIN, at)),
        speed_gbps=speed / MBPS_PER_GBPS if speed else None,
        mtu_bytes=number(if_table, MTU, at) or None,
        mac=mac(octets(if_table, ADDRESS, at)),
        description=words(if_names, ALIAS, at),
        alias=label if label != name else "",
    )


def _is(state: int | None) -> bool | None:
    return None if state in UNKNOWN else state == UP


def neighbors(if_text: str, names_text: str, local_text: str, remote_text: str, platform: str) -> Facts:
    """Parse LLDP-MIB. If it lists local ports, having no neighbours is a valid result."""
    if_table, if_names, local, remote = (table(one) for one in (if_text, names_text, local_text, remote_text))
    if not local and not remote:
        return Facts(neighbors=Absent("the agent has no LLDP-MIB"))
    # lldpLocPortNum is the ifIndex, unless the port ID that the port announces names another port
    by_number = dict(ports(platform, if_table, if_names))
    by_label = labels(platform, if_table, if_names)
    for at in local.get(PORT_ID, {}):
        name = by_label.get(words(local, PORT_ID, at), "")
        if name and len(at) == 1:
            by_number[at[0]] = name
    found: dict[str, list[tuple[int, Neighbor]]] = {}
    for at in sorted({at for column in remote.values() for at in column if len(at) == 3}):
        port = by_number.get(at[1])
        if port is not None:
            found.setdefault(port, []).append((at[0], _neighbor(remote, at)))
    return Facts(
        neighbors={
            port: tuple(neighbor for _, neighbor in sorted(ends, key=lambda end: end[0], reverse=True))  # newest first
            for port, ends in found.items()
        }
    )


def _neighbor(remote: Table, at: Oid) -> Neighbor:
    address = mac(octets(remote, REMOTE_PORT, at)) if number(remote, REMOTE_KIND, at) == IS_MAC else ""
    return Neighbor(
        system=words(remote, REMOTE_SYSTEM, at),
        port=address or words(remote, REMOTE_PORT, at),
        description=words(remote, REMOTE_TEXT, at),
    )


IF_NAME, IF_DESCR = 1, 2


def ports(platform: str, if_table: Table, if_names: Table) -> Mapping[int, str]:
    """Map ifIndex to port, from ifName, ifDescr, or the number itself."""
    known = agents_of(platform)
    if known is None:
        return {}
    columns = (if_names.get(IF_NAME, {}), if_table.get(IF_DESCR, {}))
    found = {}
    for index in sorted({at[0] for column in columns for at in column if len(at) == 1}):
        labels = [words(if_names, IF_NAME, (index,)), words(if_table, IF_DESCR, (index,))]
        name = next(filter(known.port.fullmatch, labels), "")
        if not name and known.snmp.port_at is not None and any(labels):
            name = known.snmp.port_at(index)
        if name:
            found[index] = name
    return found


def labels(platform: str, if_table: Table, if_names: Table) -> Mapping[str, str]:
    """Map every name the agent uses for a port, and its own, to the port."""
    found = {}
    for index, name in ports(platform, if_table, if_names).items():
        known = {words(if_names, IF_NAME, (index,)), words(if_table, IF_DESCR, (index,)), name}
        found.update(dict.fromkeys(known - {""}, name))
    return found
