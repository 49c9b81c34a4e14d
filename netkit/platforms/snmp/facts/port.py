"""Which ifIndex is which port: agents number and call ports in their own ways, the design in the platform's."""

from collections.abc import Iterator, Mapping

from netkit.platforms.agents import agents_of
from netkit.platforms.snmp.transport import Table, words

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
