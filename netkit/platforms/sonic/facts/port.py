"""Ports and who is at their other ends: APPL_DB says what was told and is so, STATE_DB what the chip runs."""

from collections.abc import Iterator, Mapping

from netkit.facts import Absent, Facts
from netkit.facts.device import Interface, Neighbor
from netkit.platforms import outage
from netkit.platforms.sonic.facts.dump import Database, Row, database, number, unread, whole, without, word
from netkit.platforms.sonic.facts.system import now_s

PORTS, STATES, NEIGHBORS = "PORT_TABLE:", "PORT_TABLE|", "LLDP_ENTRY_TABLE:"
NOT_PORTS = ("PortInitDone", "PortConfigDone")
"""Rows that say how far orchagent is."""
SWITCHED = {"up": True, "down": False}
MBPS_PER_GBPS = 1000


def interfaces(appl: str, state: str, config: str, identity: str) -> Facts:
    """Return the ports. APPL_DB alone is enough; the others add what only they know."""
    told, running = database(appl), database(state) or Database({})
    if told is None:
        return Facts(interfaces=unread("APPL_DB"))
    mac = word((database(config) or Database({})).row("DEVICE_METADATA|localhost").get("mac"))
    found = _ports(told, running, mac) or without("APPL_DB", "PORT_TABLE")
    return Facts(interfaces=outage.with_outages(found, dict(_outages(told, now_s(identity)))))


def _outages(told: Database, now: float | None) -> Iterator[tuple[str, outage.LinkOutage]]:
    """Yield the last outage of each port. portsorch stamps each way in UTC, and has no stamp before the first."""
    for name, row in told.table(PORTS).items():
        went, came = (row.get(f"last_{way}_time", "") for way in ("down", "up"))
        found = outage.outage(outage.in_words(went), outage.in_words(came), now)
        if found is not None:
            yield name, found
        elif came and not went:
            yield name, outage.NEVER


def _ports(told: Database, running: Database, mac: str) -> Mapping[str, Interface]:
    return {
        name: _interface(row, running.row(f"{STATES}{name}"), mac)
        for name, row in told.table(PORTS).items()
        if name not in NOT_PORTS
    }


def _interface(row: Row, state: Row, mac: str) -> Interface:
    speed = number(state.get("speed")) or number(row.get("speed"))
    return Interface(
        is_up=SWITCHED.get(row.get("oper_status", state.get("netdev_oper_status", ""))),
        is_enabled=SWITCHED.get(row.get("admin_status", "")),
        speed_gbps=speed / MBPS_PER_GBPS if speed else None,
        mtu_bytes=whole(row.get("mtu")),
        fec=word(state.get("fec")) or word(row.get("fec")),
        mac=mac.lower(),
        description=word(row.get("description")),
        alias=word(row.get("alias")),
    )


def neighbors(appl: str) -> Facts:
    """Return who was heard. Nobody heard is an answer; that LLDP does not run looks the same here."""
    found = database(appl)
    if found is None:
        return Facts(neighbors=unread("APPL_DB"))
    return Facts(neighbors={name: (_neighbor(row),) for name, row in found.table(NEIGHBORS).items()})


def _neighbor(row: Row) -> Neighbor:
    names = ("lldp_rem_sys_name", "lldp_rem_port_id", "lldp_rem_port_desc")
    system, port, description = (word(row.get(name)) for name in names)
    return Neighbor(system, port, description)


def flaps(appl: Database) -> dict[str, int]:
    """Return how often each port went up or down; SONiC counts both ways, and has no field before the first."""
    counts = {name: whole(row.get("flap_count")) for name, row in appl.table(PORTS).items()}
    return {name: count for name, count in counts.items() if count is not None}


def adaptive_routing() -> Absent:
    """Return why there is none."""
    return Absent("community SONiC has no adaptive routing")
