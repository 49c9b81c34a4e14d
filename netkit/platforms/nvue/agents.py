"""The SNMP agent and the gNMI server of Cumulus Linux."""

import re

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.platforms.agents import Agents, GnmiDialect, SnmpDialect
from netkit.platforms.snmp.facts import LAST_PRIORITY, counters, named, numbered
from netkit.platforms.snmp.transport import Oid, SnmpQuery, number, table

MIB: Oid = (1, 3, 6, 1, 4, 1, 40310, 2)
DISCARDS = SnmpQuery("discardClCountersTable", (*MIB, 1, 2, 1), (3,)).command
PFC = SnmpQuery("pfcClCountersTable", (*MIB, 2, 3, 1), tuple(range(4, 20))).command
UP_DOWN = SnmpQuery("upDownCountersTable", (*MIB, 2, 5, 1), (3, 4)).command
CLASSES = SnmpQuery("tcClNewCountersTable", (*MIB, 2, 6, 1), (3, 4, 5, 7)).command
OF_CLASS = {"queue_tx_packets": 3, "queue_tx_bytes": 4, "queue_drops": 5, "queue_ecn_marked": 7}
FIRST_PFC = 4


def snmp_counters(if_text: str, names_text: str, *texts: str, wanted: tuple[str, ...]) -> Facts:
    """Parse CUMULUS-COUNTERS-MIB: buffer drops, pauses by priority, link changes and traffic classes."""
    discards, pauses, changes, classes = (table(text) for text in texts)
    by_index = named("nvue", if_text, names_text, wanted)
    found = list(numbered(classes, by_index, OF_CLASS))
    for index, port in by_index.items():
        found.append(("port_buffer_drops", port, number(discards, 3, (index,))))
        found.append(("link_downs", port, number(changes, 3, (index,))))
        found.append(("carrier_changes", port, number(changes, 4, (index,))))
        for priority in range(LAST_PRIORITY + 1):
            column = FIRST_PFC + 2 * priority  # columns alternate: received and sent on priority 0, then on 1, …
            found.append(("rx_pause", place(port, priority), number(pauses, column, (index,))))
            found.append(("tx_pause", place(port, priority), number(pauses, column + 1, (index,))))
    return counters(found, "CUMULUS-COUNTERS-MIB")


AGENTS = Agents(
    port=re.compile(r"swp\d{1,4}(?:s\d{1,2})?", re.ASCII),
    snmp=SnmpDialect(
        release=re.compile(r"Cumulus[- ]Linux (\d\S{0,38})"),
        tables=(DISCARDS, PFC, UP_DOWN, CLASSES),
        counters=snmp_counters,
    ),
    gnmi=GnmiDialect(
        streamed=(
            "/interfaces/interface[name=*]/state/counters",
            "/interfaces/interface[name=*]/ethernet/state/counters",
            "/interfaces/interface[name=*]/ethernet/phy/state",
            "/qos/interfaces/interface[interface-id=*]/output/queues/queue[name=*]/state",
            "/qos/interfaces/interface[interface-id=*]/state/switch-priority/counters",
        ),
        only_streams=Absent("Cumulus Linux only streams: use gNMI for the watch, and another source for checks"),
    ),
)
