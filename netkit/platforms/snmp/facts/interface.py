"""Ports, and who is at their other ends: IF-MIB and LLDP-MIB."""

from collections.abc import Iterator, Mapping

from netkit.facts import Absent, Facts
from netkit.facts.device import Interface, Neighbor
from netkit.platforms.agents import agents_of
from netkit.platforms.snmp.transport import Oid, Table, mac, number, octets, table, words

MTU, ADDRESS, ADMIN, OPERATION = 4, 6, 7, 8
SPEED_MBPS, ALIAS = 15, 18
UP = 1
UNKNOWN = {None, 4}
"""States that say nothing."""
PORT_ID = 3
REMOTE_KIND, REMOTE_PORT, REMOTE_TEXT, REMOTE_SYSTEM = 6, 7, 8, 9
IS_MAC = 3
MBPS_PER_GBPS = 1000


def interfaces(if_text: str, names_text: str, platform: str) -> Facts:
    """Return the ports."""
    if_table, if_names = table(if_text), table(names_text)
    named = ports(platform, if_table, if_names)
    called = aliases(if_names, named)
    found = {name: _interface(if_table, if_names, (index,), called.get(name, "")) for index, name in named.items()}
    return Facts(interfaces=found or Absent("ifTable and ifXTable show no ports"))


def _interface(if_table: Table, if_names: Table, at: Oid, alias: str) -> Interface:
    speed = number(if_names, SPEED_MBPS, at)
    return Interface(
        is_up=_is(number(if_table, OPERATION, at)),
        is_enabled=_is(number(if_table, ADMIN, at)),
        speed_gbps=speed / MBPS_PER_GBPS if speed else None,
        mtu_bytes=number(if_table, MTU, at) or None,
        mac=mac(octets(if_table, ADDRESS, at)),
        description=words(if_names, ALIAS, at),
        alias=alias,
    )


def _is(state: int | None) -> bool | None:
    return None if state in UNKNOWN else state == UP


def neighbors(if_text: str, names_text: str, local_text: str, remote_text: str, platform: str) -> Facts:
    """Return who was heard. Nobody heard is an answer, when there are local ports."""
    if_table, if_names, local, remote = (table(one) for one in (if_text, names_text, local_text, remote_text))
    if not local and not remote:
        return Facts(neighbors=Absent("the agent has no LLDP-MIB"))
    by_number = _ports_of_lldp(local, ports(platform, if_table, if_names), labels(platform, if_table, if_names))
    heard: dict[str, list[tuple[int, Neighbor]]] = {}
    for at in sorted({at for column in remote.values() for at in column if len(at) == 3}):
        port = by_number.get(at[1])
        if port is not None:
            heard.setdefault(port, []).append((at[0], _neighbor(remote, at)))
    return Facts(neighbors={port: _freshest_first(ends) for port, ends in heard.items()})


def _ports_of_lldp(local: Table, named: Mapping[int, str], called: Mapping[str, str]) -> Mapping[int, str]:
    """Return LLDP's number of a port → port. What a port announces tells it; else the number is the ifIndex."""
    told = {at[0]: called.get(words(local, PORT_ID, at), "") for at in local.get(PORT_ID, {}) if len(at) == 1}
    return {**named, **{number: name for number, name in told.items() if name}}


def _freshest_first(ends: list[tuple[int, Neighbor]]) -> tuple[Neighbor, ...]:
    """Return neighbours in the order of their time marks."""
    return tuple(neighbor for _, neighbor in sorted(ends, key=lambda end: end[0], reverse=True))


def _neighbor(remote: Table, at: Oid) -> Neighbor:
    address = mac(octets(remote, REMOTE_PORT, at)) if number(remote, REMOTE_KIND, at) == IS_MAC else ""
    return Neighbor(
        system=words(remote, REMOTE_SYSTEM, at),
        port=address or words(remote, REMOTE_PORT, at),
        description=words(remote, REMOTE_TEXT, at),
    )


IF_NAME, IF_DESCR = 1, 2


def ports(platform: str, if_table: Table, if_names: Table) -> Mapping[int, str]:
    """Return ifIndex → port."""
    found = {}
    for index in _indexes(if_table, if_names):
        labels = (words(if_names, IF_NAME, (index,)), words(if_table, IF_DESCR, (index,)))
        name = next(_names(platform, index, labels), "")
        if name:
            found[index] = name
    return found


def labels(platform: str, if_table: Table, if_names: Table) -> Mapping[str, str]:
    """Return what the agent calls a port → port; the port's own name is among them."""
    found = {}
    for index, name in ports(platform, if_table, if_names).items():
        said = {words(if_names, IF_NAME, (index,)), words(if_table, IF_DESCR, (index,)), name}
        found.update(dict.fromkeys(said - {""}, name))
    return found


def aliases(if_names: Table, named: Mapping[int, str]) -> Mapping[str, str]:
    """Return port → what the agent calls it, where that is not its name."""
    said = {name: words(if_names, IF_NAME, (index,)) for index, name in named.items()}
    return {name: label for name, label in said.items() if label and label != name}


def _indexes(if_table: Table, if_names: Table) -> list[int]:
    columns = (if_names.get(IF_NAME, {}), if_table.get(IF_DESCR, {}))
    return sorted({index[0] for column in columns for index in column if len(index) == 1})


def _names(platform: str, index: int, labels: tuple[str, str]) -> Iterator[str]:
    known = agents_of(platform)
    if known is not None:
        yield from filter(known.port.fullmatch, labels)
        if known.snmp.port_at is not None and any(labels):
            yield known.snmp.port_at(index)
