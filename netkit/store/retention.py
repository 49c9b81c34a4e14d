"""What is kept, and for how long."""

from sqlalchemy import Connection, and_, delete, exists, select

from netkit.judge import Verdict
from netkit.store import schema
from netkit.store.record import Source

DAY_S = 86_400
DAY_HOURS = 24
KEEP_S = 90.0 * DAY_S


def prune(connection: Connection, source: Source, before_s: float, now_s: float) -> None:
    """Drop what was seen before a time; of readings older than a day, keep one a day."""
    runs, findings, readings = schema.runs, schema.findings, schema.readings
    too_old = and_(runs.c.fabric == source.fabric, runs.c.lab == source.lab, runs.c.taken_s < before_s)
    connection.execute(delete(findings).where(findings.c.run.in_(select(runs.c.id).where(too_old))))
    connection.execute(delete(runs).where(too_old))
    mine = and_(readings.c.fabric == source.fabric, readings.c.lab == source.lab)
    connection.execute(delete(readings).where(mine, readings.c.at_s < before_s))
    _thin(connection, source, now_s)
    _forget(connection, source, before_s)


def _thin(connection: Connection, source: Source, now_s: float) -> None:
    """Keep the first reading of each day that is over."""
    one, other = schema.readings, schema.readings.alias()
    is_same = and_(*(one.c[name] == other.c[name] for name in ("fabric", "lab", "device")))
    is_earlier = and_(other.c.hour >= one.c.hour - one.c.hour % DAY_HOURS, other.c.hour < one.c.hour)
    has_earlier = exists().where(is_same, is_earlier)
    is_mine = and_(one.c.fabric == source.fabric, one.c.lab == source.lab)
    connection.execute(delete(one).where(is_mine, one.c.at_s < now_s - DAY_S, has_earlier))


def _forget(connection: Connection, source: Source, before_s: float) -> None:
    """Drop counters and states of what nobody saw for long, and what has been well for long."""
    counters, states = schema.counters, schema.states
    mine = and_(counters.c.fabric == source.fabric, counters.c.lab == source.lab)
    connection.execute(delete(counters).where(mine, counters.c.at_s < before_s))
    of_source = and_(states.c.fabric == source.fabric, states.c.lab == source.lab)
    is_long_well = and_(states.c.verdict == int(Verdict.PASS), states.c.since_s < before_s)
    connection.execute(delete(states).where(of_source, (states.c.seen_s < before_s) | is_long_well))
    told = schema.told
    is_same = and_(*(told.c[name] == states.c[name] for name in ("fabric", "lab", "check_name", "device", "place")))
    of_told = and_(told.c.fabric == source.fabric, told.c.lab == source.lab)
    connection.execute(delete(told).where(of_told, ~exists().where(is_same)))
