"""Which MIBs each platform shows. The object identifiers are those of the published MIBs."""

from collections.abc import Callable, Iterable, Mapping

from netkit.lab.agents.snmp import arista, cumulus, entity, interfaces, lldp, pfc, sonic
from netkit.lab.agents.snmp.row import Oid, Row
from netkit.lab.agents.snmp.scene import Scene, Surroundings
from netkit.lab.agents.snmp.tree import Mib

Draw = Callable[[Scene], Iterable[Row]]

COMMON: Mapping[Oid, Draw] = {
    interfaces.NUMBER[:-2]: interfaces.rows,
    interfaces.X_TABLE[:-1]: interfaces.extended_rows,
    entity.PHYSICAL[:-1]: entity.rows,
    entity.SENSOR[:-1]: entity.sensor_rows,
    pfc.TABLE[:-3]: pfc.rows,
}
VENDORS: Mapping[str, Mapping[Oid, Draw]] = {
    "nvue": {cumulus.COUNTERS: cumulus.rows},
    "sonic": {
        sonic.PFC_OF_PORT[:-3]: sonic.pfc_rows,
        sonic.QUEUES[:-2]: sonic.queue_rows,
    },
    "eos": {arista.ARISTA: arista.rows},
}


def mibs(platform: str, look: Callable[[], Scene], listen: Callable[[], Surroundings]) -> list[Mib]:
    """Return the MIBs of a platform over two ways to see: the ports now, and LLDP now."""
    found = [_mib(root, draw, look) for root, draw in {**COMMON, **VENDORS.get(platform, {})}.items()]
    return [*found, Mib(lldp.LLDP[:-1], lambda: lldp.rows(look(), listen()))]


def _mib(root: Oid, draw: Draw, look: Callable[[], Scene]) -> Mib:
    return Mib(root, lambda: draw(look()))
