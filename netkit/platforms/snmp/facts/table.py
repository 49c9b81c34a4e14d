"""The tables netkit asks every agent for, with the columns it reads. The numbers are those of the published MIBs."""

from netkit.platforms.snmp.transport import Oid, SnmpQuery

MIB_2: Oid = (1, 3, 6, 1, 2, 1)


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
