"""When links went and came, by the log of a switch: its tables have the last change only.

Verified by what others publish of real switches: the words of the lines, the traditional form of their stamps with and
without year, RFC 3339, and that `last N days` and `grep` go over eAPI. Not verified: stamps of sub-second resolution.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from netkit.platforms.outage import MONTHS, NEVER, WORDS, Outage, in_words, moment, outage

LINE = re.compile(
    r"%LINEPROTO-5-UPDOWN: Line protocol on Interface (?P<port>Ethernet[\d/]{1,12})(?: \(.*\))?, "
    r"changed state to (?P<way>up|down)$",
    re.ASCII,
)
TRADITIONAL = re.compile(
    rf"(?:(\d{{4}}) )?({'|'.join(MONTHS)}) {{1,2}}(\d{{1,2}})(?: (\d{{4}}))? (\d\d):(\d\d):(\d\d(?:\.\d{{1,9}})?)",
    re.ASCII,
)
RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)", re.ASCII)
DAY_S = 86_400.0
MOST_LINES = 20_000


class Now(NamedTuple):
    """What the clock says: lines may stand without a year."""

    at_s: float
    year: int


class Change(NamedTuple):
    """A link that went or came."""

    at_s: float
    port: str
    is_up: bool


def last_outages(log: str, clock: str, ports: Collection[str]) -> Mapping[str, Outage]:
    """Return the last outage of each port; those the log does not name were not gone. One that names none is no log."""
    now = _now(clock)
    changes = sorted(_changes(log, now), key=lambda one: one.at_s) if now else []
    if not now or not changes:
        return {}
    by_port: dict[str, list[Change]] = {}
    for one in changes:
        by_port.setdefault(one.port, []).append(one)
    found = {port: _last(by_port.get(port, []), now) for port in ports}
    return {port: one for port, one in found.items() if one is not None}


def _now(clock: str) -> Now | None:
    at_s, found = in_words(clock), WORDS.search(clock)
    return None if at_s is None or found is None else Now(at_s, int(found["year"]))


def _last(changes: list[Change], now: Now) -> Outage | None:
    """Return the last outage of one port: from when it went to when it came; None while it is gone."""
    went_s: float | None = None
    last: Outage | None = NEVER
    for one in changes:
        if not one.is_up:
            went_s = one.at_s if went_s is None else went_s
        elif went_s is not None:
            last, went_s = outage(went_s, one.at_s, now.at_s), None
    return last if went_s is None else None


def _changes(log: str, now: Now) -> Iterator[Change]:
    for line in log.splitlines()[-MOST_LINES:]:
        found = LINE.search(line.rstrip())
        at_s = _moment(line[: found.start()], now) if found else None
        if found and at_s is not None:
            yield Change(at_s, found["port"], found["way"] == "up")


def _moment(head: str, now: Now) -> float | None:
    """Return when a line was written, by the local time that all lines and the clock have; the offset says nothing."""
    iso = RFC3339.search(head)
    if iso:
        year, month, day, hour, minute = map(int, iso.groups()[:-1])
        return moment(year, month, day, hour, minute, float(iso[6]))
    found = TRADITIONAL.search(head)
    if found is None:
        return None
    before, month_, day_, after, hour_, minute_, second = found.groups()
    at = (MONTHS.index(month_) + 1, int(day_), int(hour_), int(minute_), float(second))
    told = before or after
    if told:
        return moment(int(told), *at)
    this = moment(now.year, *at)
    return moment(now.year - 1, *at) if this is None or this > now.at_s + DAY_S else this
