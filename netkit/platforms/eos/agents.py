"""Specifics of EOS's SNMP agent and gNMI server."""

import re

from netkit.facts import Facts
from netkit.platforms.agents import Agents, GnmiDialect, SnmpDialect
from netkit.platforms.gnmi.facts import QUEUES as GNMI_QUEUES
from netkit.platforms.snmp.facts import counters, named, numbered
from netkit.platforms.snmp.transport import Oid, SnmpQuery, Table, table

MIB: Oid = (1, 3, 6, 1, 4, 1, 30065, 3)
QUEUES = SnmpQuery("aristaEgressQueueTable", (*MIB, 6, 1, 2, 1), (4, 5, 6)).command
PFC = SnmpQuery("aristaPfcPriorityTable", (*MIB, 11, 1, 1, 1), (3, 4)).command
WATCHDOG = SnmpQuery("aristaPfcWatchdogTable", (*MIB, 11, 1, 2, 1), (4, 5)).command
ECN = SnmpQuery("aristaEcnQueueTable", (*MIB, 13, 1, 9, 1), (4,)).command
SENSOR_LIMITS = SnmpQuery("aristaEntSensorThresholdTable", (*MIB, 12, 1, 1, 1), (1, 2, 3, 4)).command
UNICAST = 0


def snmp_counters(if_text: str, names_text: str, *texts: str, wanted: tuple[str, ...]) -> Facts:
    """Parse the counters of Arista's MIBs: queues, pauses by priority, watchdog storms, and ECN marks."""
    queues, pauses, storms, marks = (table(text) for text in texts)
    by_index = named("eos", if_text, names_text, wanted)
    found = (
        *numbered(_unicast(queues, 2), by_index, {"queue_tx_packets": 4, "queue_tx_bytes": 5, "queue_drops": 6}),
        *numbered(pauses, by_index, {"tx_pause": 3, "rx_pause": 4}),
        *numbered(_unicast(storms, 1), by_index, {"watchdog_detected": 4, "watchdog_restored": 5}),
        *numbered(marks, by_index, {"queue_ecn_marked": 4}),
    )
    return counters(found, "the MIBs of Arista")


def _unicast(rows: Table, at: int) -> Table:
    """Keep the unicast rows of a table, and drop the part of the index, at `at`, that marks them."""
    return {
        column: {
            index[:at] + index[at + 1 :]: value
            for index, value in values.items()
            if len(index) == 3 and index[at] == UNICAST
        }
        for column, values in rows.items()
    }


AGENTS = Agents(
    port=re.compile(r"Ethernet\d{1,4}(?:/\d{1,3}){0,2}", re.ASCII),
    snmp=SnmpDialect(
        release=re.compile(r"Arista Networks EOS version (\S{1,39})"),
        model=re.compile(r"running on an Arista Networks (\S{1,60})"),
        tables=(QUEUES, PFC, WATCHDOG, ECN),
        counters=snmp_counters,
        sensor_limits=(SENSOR_LIMITS,),
        is_lane_a_port=True,
    ),
    gnmi=GnmiDialect(("/interfaces/interface/state/counters", GNMI_QUEUES)),
)
