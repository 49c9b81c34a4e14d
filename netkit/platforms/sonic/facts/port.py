"""Ports and LLDP neighbours: APPL_DB has what is configured and the state, STATE_DB what the chip runs."""

from collections.abc import Iterator

from netkit.facts import Absent, Facts
from netkit.facts.device import Interface, Neighbor
from netkit.platforms import outage
from netkit.platforms.sonic.facts.dump import Database, Row, database, number, unread, whole, without, word
from netkit.platforms.sonic.facts.system import now_s

PORTS, STATES, NEIGHBORS = "PORT_TABLE:", "PORT_TABLE|", "LLDP_ENTRY_TABLE:"
NOT_PORTS = ("PortInitDone", "PortConfigDone")
"""Rows about the progress of orchagent."""
SWITCHED = {"up": True, "down": False}
MBPS_PER_GBPS = 1000


def interfaces(appl: str, state: str, config: str, identity: str) -> Facts:
    """Parse the ports; APPL_DB alone is enough, the other sources add to it."""
    configured, running = database(appl), database(state) or Database({})
    if configured is None:
        return Facts(interfaces=unread("APPL_DB"))
    mac = word((database(config) or Database({})).row("DEVICE_METADATA|localhost").get("mac"))
    found = {
        name: _interface(row, running.row(f"{STATES}{name}"), mac)
        for name, row in configured.table(PORTS).items()
        if name not in NOT_PORTS
    }
    outages = dict(_outages(configured, now_s(identity)))
    return Facts(interfaces=outage.with_outages(found or without("APPL_DB", "PORT_TABLE"), outages))


def _outages(appl: Database, now: float | None) -> Iterator[tuple[str, outage.LinkOutage]]:
    """Yield the last outage of each port, from portsorch's UTC timestamps of the last down and up."""
    for name, row in appl.table(PORTS).items():
        down, up = row.get("last_down_time", ""), row.get("last_up_time", "")
        found = outage.outage(outage.in_words(down), outage.in_words(up), now)
        if found is not None:
            yield name, found
        elif up and not down:
            yield name, outage.NEVER


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
    """Parse LLDP neighbours. Having none is a valid result, although it looks the same if LLDP does not run."""
    found = database(appl)
    if found is None:
        return Facts(neighbors=unread("APPL_DB"))
    fields = ("lldp_rem_sys_name", "lldp_rem_port_id", "lldp_rem_port_desc")
    neighbors = {}
    for name, row in found.table(NEIGHBORS).items():
        system, port, description = (word(row.get(field)) for field in fields)
        neighbors[name] = (Neighbor(system, port, description),)
    return Facts(neighbors=neighbors)


def flaps(appl: Database) -> dict[str, int]:
    """Return how often each port went up or down; SONiC counts both, and has no field before the first."""
    counts = {name: whole(row.get("flap_count")) for name, row in appl.table(PORTS).items()}
    return {name: count for name, count in counts.items() if count is not None}


def adaptive_routing() -> Absent:
    return Absent("community SONiC has no adaptive routing")
