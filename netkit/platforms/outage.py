"""The last link outage of a port, computed from two timestamps of the device's clock and its current time."""

import re
from calendar import monthrange, timegm
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from netkit.facts import Absent
from netkit.facts.device import Interface
from netkit.platforms.json_access import documents, named, text, whole

LAST_YEAR, HOURS, MINUTES, MINUTE_S = 9999, 24, 60, 60.0
SKEW_S = 60.0
"""The clock is read slightly before or after the timestamps."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WORDS = re.compile(
    rf"({'|'.join(MONTHS)}) {{1,2}}(\d{{1,2}}) (\d\d):(\d\d):(\d\d)(?:\.\d{{1,9}})? (?P<year>\d{{4}})",
    re.ASCII,
)
SLASHED = re.compile(r"(\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)", re.ASCII)


class LinkOutage(NamedTuple):
    """How long a link was down and how long ago it came back; 0 and None if it never went down."""

    lasted_s: float
    ended_ago_s: float | None = None


NEVER = LinkOutage(0.0)


def with_outages(
    interfaces: Mapping[str, Interface] | Absent, outages: Mapping[str, LinkOutage]
) -> Mapping[str, Interface] | Absent:
    """Add the outages to the ports."""
    if isinstance(interfaces, Absent):
        return interfaces
    found = dict(interfaces)
    for name in found.keys() & outages.keys():
        last = outages[name]
        found[name] = replace(found[name], outage_s=last.lasted_s, outage_ended_ago_s=last.ended_ago_s)
    return found


def outage(went_s: float | None, came_s: float | None, now_s: float | None) -> LinkOutage | None:
    """Compute the last outage; None if a timestamp is missing, it is not over, or the clock was set in between."""
    if went_s is None or came_s is None or now_s is None or came_s < went_s or came_s > now_s + SKEW_S:
        return None
    return LinkOutage(round(came_s - went_s, 2), round(max(0.0, now_s - came_s), 2))


def moment(year: int, month: int, day: int, hour: int, minute: int, second: float) -> float | None:
    """Convert a date to seconds; only differences between values of one clock are meaningful."""
    is_day = 1 <= year <= LAST_YEAR and 1 <= month <= len(MONTHS) and 1 <= day <= monthrange(year, month)[1]
    is_time = 0 <= hour < HOURS and 0 <= minute < MINUTES and 0 <= second < MINUTE_S
    return timegm((year, month, day, hour, minute, 0)) + second if is_day and is_time else None


def in_words(text: str) -> float | None:
    """Find a timestamp such as `Mon Nov 23 08:40:02 2026` in a text."""
    found = WORDS.search(text)
    if found is None:
        return None
    month, day, hour, minute, second, year = found.groups()
    return moment(int(year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), float(second))


def in_digits(text: str) -> float | None:
    """Find a timestamp such as `2026/11/23 08:40:02.89` in a text."""
    found = SLASHED.search(text)
    if found is None:
        return None
    year, month, day, hour, minute = map(int, found.groups()[:-1])
    return moment(year, month, day, hour, minute, float(found[6]))


def of_zebra(printed: str) -> Mapping[str, LinkOutage]:
    """Parse outages by interface from `date` in zebra's format followed by FRR's `show interface json`."""
    now_s = in_digits(printed.partition("{")[0])
    found = next((one for one in documents(printed) if isinstance(one, dict)), None)
    outages = {
        name: NEVER
        if whole(one.get("linkDowns")) == 0
        else outage(in_digits(text(one.get("lastLinkDown"))), in_digits(text(one.get("lastLinkUp"))), now_s)
        for name, one in named(found)
    }
    return {name: one for name, one in outages.items() if one is not None}
