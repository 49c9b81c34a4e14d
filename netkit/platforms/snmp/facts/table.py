"""The tables netkit asks for, with the columns it reads. The numbers are those of the published MIBs."""

from netkit.platforms.snmp.transport import Oid, SnmpQuery

MIB_2: Oid = (1, 3, 6, 1, 2, 1)
CUMULUS: Oid = (1, 3, 6, 1, 4, 1, 40310, 2)
CISCO: Oid = (1, 3, 6, 1, 4, 1, 9, 9)
"""SONiC's agent shows its own counters in two MIBs of Cisco."""
ARISTA: Oid = (1, 3, 6, 1, 4, 1, 30065, 3)


def _asked(name: str, root: Oid, *columns: int) -> str:
    return SnmpQuery(name, root, columns).command


SYSTEM = _asked("system", (*MIB_2, 1), 1, 5)
"""sysDescr and sysName. sysUpTime is the agent's on Linux, and so on most switches: nothing follows from it."""
HOST_UPTIME = _asked("hrSystemUptime", (*MIB_2, 25, 1), 1)
IF_TABLE = _asked("ifTable", (*MIB_2, 2, 2, 1), 2, 4, 6, 7, 8, 13, 14, 19, 20)
IF_NAMES = _asked("ifXTable", (*MIB_2, 31, 1, 1, 1), 1, 6, 7, 8, 9, 10, 11, 12, 13, 15, 18)
LLDP_PORTS = _asked("lldpLocPortTable", (1, 0, 8802, 1, 1, 2, 1, 3, 7, 1), 2, 3)
LLDP_REMOTE = _asked("lldpRemTable", (1, 0, 8802, 1, 1, 2, 1, 4, 1, 1), 6, 7, 8, 9)
ENTITIES = _asked("entPhysicalTable", (*MIB_2, 47, 1, 1, 1, 1), 2, 9, 11, 12, 13)
SENSORS = _asked("entPhySensorTable", (*MIB_2, 99, 1, 1, 1), 1, 2, 3, 4, 5)
PFC = _asked("ieee8021PfcTable", (1, 3, 111, 2, 802, 1, 1, 21, 1, 1, 1), 2, 3)

CUMULUS_DISCARDS = _asked("discardClCountersTable", (*CUMULUS, 1, 2, 1), 3)
CUMULUS_PFC = _asked("pfcClCountersTable", (*CUMULUS, 2, 3, 1), *range(4, 20))
CUMULUS_UP_DOWN = _asked("upDownCountersTable", (*CUMULUS, 2, 5, 1), 3, 4)
CUMULUS_CLASSES = _asked("tcClNewCountersTable", (*CUMULUS, 2, 6, 1), 3, 4, 5, 7)

SONIC_PFC = _asked("cpfcIfPriorityTable", (*CISCO, 813, 1, 2, 1), 2, 3)
SONIC_QUEUES = _asked("csqIfQosGroupStatsTable", (*CISCO, 580, 1, 5, 5, 1), 4)

ARISTA_QUEUES = _asked("aristaEgressQueueTable", (*ARISTA, 6, 1, 2, 1), 4, 5, 6)
ARISTA_PFC = _asked("aristaPfcPriorityTable", (*ARISTA, 11, 1, 1, 1), 3, 4)
ARISTA_WATCHDOG = _asked("aristaPfcWatchdogTable", (*ARISTA, 11, 1, 2, 1), 4, 5)
ARISTA_ECN = _asked("aristaEcnQueueTable", (*ARISTA, 13, 1, 9, 1), 4)
ARISTA_LIMITS = _asked("aristaEntSensorThresholdTable", (*ARISTA, 12, 1, 1, 1), 1, 2, 3, 4)
