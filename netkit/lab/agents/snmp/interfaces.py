"""IF-MIB. Octets, packets, MTU and state are those of the veth, the speed is the model's: a veth has none."""

from collections.abc import Iterator

from netkit.lab.agents.snmp.row import (
    MIB_2,
    Row,
    counter32,
    counter64,
    gauge,
    integer,
    mac_octets,
    octets,
    string,
    truth,
)
from netkit.lab.agents.snmp.scene import Interface, Scene

NUMBER = (*MIB_2, 2, 1, 0)
TABLE = (*MIB_2, 2, 2, 1)
X_TABLE = (*MIB_2, 31, 1, 1, 1)
ETHERNET = 6
UP, DOWN, NOT_PRESENT = 1, 2, 6
TRAPS_DISABLED = 2


def rows(shown: Scene) -> Iterator[Row]:
    """Yield ifNumber and ifTable."""
    yield integer(NUMBER, len(shown.interfaces))
    for interface in shown.interfaces:
        yield from _entry(interface)


def extended_rows(shown: Scene) -> Iterator[Row]:
    """Yield ifXTable."""
    for interface in shown.interfaces:
        yield from _extended_entry(interface)


def _entry(interface: Interface) -> Iterator[Row]:
    index, reading, traffic = interface.index, interface.reading, interface.reading.traffic
    yield integer((*TABLE, 1, index), index)
    yield string((*TABLE, 2, index), interface.label)
    yield integer((*TABLE, 3, index), ETHERNET)
    yield integer((*TABLE, 4, index), reading.mtu_bytes)
    yield gauge((*TABLE, 5, index), reading.speed_gbps * 10**9)
    yield octets((*TABLE, 6, index), mac_octets(reading.mac))
    yield integer((*TABLE, 7, index), UP if reading.is_enabled else DOWN)
    yield integer((*TABLE, 8, index), UP if reading.is_up else DOWN if reading.module else NOT_PRESENT)
    counted = {
        10: traffic.rx_bytes,
        11: traffic.rx_packets,
        13: traffic.rx_dropped,
        14: traffic.rx_errors,
        16: traffic.tx_bytes,
        17: traffic.tx_packets,
        19: traffic.tx_dropped,
        20: traffic.tx_errors,
    }
    for column, value in counted.items():
        yield counter32((*TABLE, column, index), value)


def _extended_entry(interface: Interface) -> Iterator[Row]:
    """Yield a row of ifXTable; a veth does not count multicast apart, so all packets stand as unicast."""
    index, reading, traffic = interface.index, interface.reading, interface.reading.traffic
    yield string((*X_TABLE, 1, index), interface.label)
    counted = {6: traffic.rx_bytes, 7: traffic.rx_packets, 10: traffic.tx_bytes, 11: traffic.tx_packets}
    for column, value in counted.items():
        yield counter64((*X_TABLE, column, index), value)
    yield integer((*X_TABLE, 14, index), TRAPS_DISABLED)
    yield gauge((*X_TABLE, 15, index), reading.speed_gbps * 1000)
    yield truth((*X_TABLE, 16, index), value=False)
    yield truth((*X_TABLE, 17, index), value=True)
    yield string((*X_TABLE, 18, index), interface.state.description)
