"""Counters of IF-MIB and IEEE8021-PFC-MIB, and the helpers that counter tables of vendors need."""

from collections.abc import Iterable, Iterator, Mapping

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.platforms.snmp.facts.interface import ports
from netkit.platforms.snmp.transport import Table, number, table

Found = Iterable[tuple[str, str, int | None]]
"""Counter, place and count; None where the agent has no count."""
Named = Mapping[int, str]
IF_COLUMNS: Mapping[str, int] = {"rx_drops": 13, "rx_errors": 14, "tx_drops": 19, "tx_errors": 20}
WIDE_COLUMNS: Mapping[str, int] = {"rx_bytes": 6, "tx_bytes": 10}
PACKET_COLUMNS: Mapping[str, tuple[int, int, int]] = {"rx_packets": (7, 8, 9), "tx_packets": (11, 12, 13)}
"""Unicast, multicast and broadcast."""
LAST_PRIORITY = 7


def named(platform: str, if_text: str, names_text: str, wanted: tuple[str, ...]) -> Named:
    """Map ifIndex to port, for the wanted ports; for all of them if none is given."""
    found = ports(platform, table(if_text), table(names_text))
    return {index: name for index, name in found.items() if not wanted or name in wanted}


def interface_counters(if_text: str, names_text: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Parse IF-MIB. Only 64-bit byte and packet counters are used: 32 bits wrap within a second at 40G."""
    if_table, if_names = table(if_text), table(names_text)
    return counters(_of_ports(if_table, if_names, named(platform, if_text, names_text, wanted)), "ifXTable")


def _of_ports(if_table: Table, if_names: Table, ports_by_index: Named) -> Found:
    for index, port in ports_by_index.items():
        for name, column in IF_COLUMNS.items():
            yield name, port, number(if_table, column, (index,))
        for name, column in WIDE_COLUMNS.items():
            yield name, port, number(if_names, column, (index,))
        for name, columns in PACKET_COLUMNS.items():
            offered = [column for column in columns if column == columns[0] or if_names.get(column)]
            counts = [number(if_names, column, (index,)) for column in offered]
            known = [count for count in counts if count is not None]
            # a sum that misses one of its terms this time would be less than before
            yield name, port, sum(known) if len(known) == len(counts) else None


def pauses_of_ports(if_text: str, names_text: str, text: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Parse IEEE8021-PFC-MIB, which counts pauses of all priorities together."""
    rows, by_index = table(text), named(platform, if_text, names_text, wanted)
    found = (
        (name, port, number(rows, column, (index,)))
        for name, column in (("port_tx_pause", 2), ("port_rx_pause", 3))
        for index, port in by_index.items()
    )
    return counters(found, "ieee8021PfcTable")


def numbered(rows: Table, by_index: Named, columns: Mapping[str, int]) -> Iterator[tuple[str, str, int | None]]:
    """Yield the counts of a table that is indexed by port, and priority or queue."""
    for name, column in columns.items():
        for at in rows.get(column, {}):
            port = by_index.get(at[0]) if len(at) == 2 and at[1] <= LAST_PRIORITY else None
            if port is not None:
                yield name, place(port, at[1]), number(rows, column, at)


def counters(found: Found, source: str) -> Facts:
    """Group counts by counter; a negative count is dropped."""
    counted: dict[str, dict[str, int]] = {}
    for name, at, count in found:
        if count is not None and count >= 0:
            counted.setdefault(name, {})[at] = count
    absent = Absent(f"the agent has no counters in {source}")
    return Facts(counters=counted or absent)
