"""Which MIBs each platform shows. The object identifiers are those of the published MIBs."""

from collections.abc import Callable, Iterable, Mapping

from netkit.lab.agents import (
    snmp_arista,
    snmp_cumulus,
    snmp_entity,
    snmp_if,
    snmp_lldp,
    snmp_pfc,
    snmp_sonic,
)
from netkit.lab.agents.snmp_row import Oid, Row
from netkit.lab.agents.snmp_scene import Scene, Surroundings
from netkit.lab.agents.snmp_tree import Mib

Draw = Callable[[Scene], Iterable[Row]]

COMMON: Mapping[Oid, Draw] = {
    snmp_if.NUMBER[:-2]: snmp_if.rows,
    snmp_if.X_TABLE[:-1]: snmp_if.extended_rows,
    snmp_entity.PHYSICAL[:-1]: snmp_entity.rows,
    snmp_entity.SENSOR[:-1]: snmp_entity.sensor_rows,
    snmp_pfc.TABLE[:-3]: snmp_pfc.rows,
}
VENDORS: Mapping[str, Mapping[Oid, Draw]] = {
    "nvue": {snmp_cumulus.COUNTERS: snmp_cumulus.rows},
    "sonic": {
        snmp_sonic.PFC_OF_PORT[:-3]: snmp_sonic.pfc_rows,
        snmp_sonic.QUEUES[:-2]: snmp_sonic.queue_rows,
    },
    "eos": {snmp_arista.ARISTA: snmp_arista.rows},
}


def mibs(platform: str, look: Callable[[], Scene], listen: Callable[[], Surroundings]) -> list[Mib]:
    """Return the MIBs of a platform over two ways to see: the ports now, and LLDP now."""
    found = [_mib(root, draw, look) for root, draw in {**COMMON, **VENDORS.get(platform, {})}.items()]
    return [*found, Mib(snmp_lldp.LLDP[:-1], lambda: snmp_lldp.rows(look(), listen()))]


def _mib(root: Oid, draw: Draw, look: Callable[[], Scene]) -> Mib:
    return Mib(root, lambda: draw(look()))
