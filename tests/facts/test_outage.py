"""Link outages from timestamps of many forms, also malformed ones."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.facts import Absent
from netkit.facts.device import Interface
from netkit.platforms import outage
from netkit.platforms.eos.facts.interface import last_outages
from netkit.platforms.outage import NEVER, LinkOutage

MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(9998, 12, 31)).map(lambda one: one.replace(microsecond=0))
SPANS = st.integers(0, 86_000)
PORT = "Ethernet1/1"
EVENT = "leaf01 Ebra: %LINEPROTO-5-UPDOWN: Line protocol on Interface"
FORMS = {
    "traditional": "{at:%b} {at.day:2} {at:%H:%M:%S}",
    "year before": "{at.year:04} {at:%b} {at.day:2} {at:%H:%M:%S} IST",
    "year behind": "{at:%b} {at.day:2} {at.year:04} {at:%H:%M:%S}",
    "rfc3339": "{at.year:04}-{at:%m-%dT%H:%M:%S}.123456+05:30",
    "rfc5424": "<189>1 {at.year:04}-{at:%m-%dT%H:%M:%S}Z",
    "sequence": "000123: {at:%b} {at.day:2} {at:%H:%M:%S}.250",
}


def words(at: datetime) -> str:
    return f"{at:%a %b} {at.day:2} {at:%H:%M:%S} {at.year:04}"


def zebra(at: datetime) -> str:
    return f"{at.year:04}/{at:%m/%d %H:%M:%S}"


@given(MOMENTS, SPANS)
def test_timestamps_of_one_clock_are_as_far_apart_as_their_moments(at: datetime, seconds: int) -> None:
    later = at + timedelta(seconds=seconds)
    for read, written in ((outage.in_words, words), (outage.in_digits, zebra)):
        first, second = read(written(at)), read(f"{written(later)}.50 and more")
        assert first == at.replace(tzinfo=UTC).timestamp()
        assert second is not None
        assert int(second - first) == seconds


@pytest.mark.parametrize("stamp", ["Feb 29 10:00:00 2026", "Nov 31 10:00:00 2026", "Nov 23 24:00:00 2026",
                                   "Nov 23 10:60:00 2026", "Nov 23 10:00:60 2026", "Nov  0 10:00:00 2026",
                                   "Nov 23 10:00:00 0000", "23 Nov 10:00:00 2026", ""])  # fmt: skip
def test_an_impossible_moment_is_none(stamp: str) -> None:
    assert outage.in_words(stamp) is None
    assert outage.in_digits("2026/02/29 10:00:00") is outage.in_digits("0000/01/01 10:00:00") is None


@given(st.text(), st.text(alphabet="JanFebDec 0123456789:/.-TZ"))
def test_any_text_is_accepted(any_: str, alike: str) -> None:
    for text in (any_, alike):
        for found in (outage.in_words(text), outage.in_digits(text)):
            assert found is None or isinstance(found, float)
        assert isinstance(outage.of_zebra(text), dict)
        assert isinstance(last_outages(text, text, [PORT]), dict)
        assert isinstance(last_outages(f"{text} {EVENT} {PORT}, changed state to up", text, [PORT]), dict)


@pytest.mark.parametrize(
    ("went_s", "came_s", "now_s", "found"),
    [
        (100.0, 145.25, 200.0, LinkOutage(45.25, 54.75)),
        (100.0, 100.0, 100.0, LinkOutage(0.0, 0.0)),
        (100.0, 145.0, 130.0, LinkOutage(45.0, 0.0)),  # asked for the time first
        (100.0, 145.0, 40.0, None),  # the clock was set
        (145.0, 100.0, 200.0, None),  # the link is down now
        (None, 100.0, 200.0, None),
        (100.0, None, 200.0, None),
        (100.0, 145.0, None, None),
    ],
)
def test_an_outage_is_over_and_in_the_past(
    went_s: float | None, came_s: float | None, now_s: float | None, found: LinkOutage | None
) -> None:
    assert outage.outage(went_s, came_s, now_s) == found


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(at=MOMENTS, lasted=SPANS, ago=SPANS)
def test_the_log_of_eos_reports_an_outage_in_every_form(form: str, at: datetime, lasted: int, ago: int) -> None:
    """Also without a year and across New Year: no line is from the future."""
    came = at + timedelta(seconds=lasted)
    lines = [f"{form.format(at=when)} {EVENT} {PORT} (to {PORT}), changed state to {way}"
             for when, way in ((at, "down"), (came, "up"))]  # fmt: skip
    found = last_outages("\n".join(lines), words(came + timedelta(seconds=ago)), [PORT, "Ethernet1/2"])
    has_leap_day = {at.month, came.month} & {2, 3} and "year" not in form and "at.year" not in form
    if not has_leap_day:
        assert found["Ethernet1/2"] == NEVER
        assert round(found[PORT].lasted_s) == lasted
        assert abs((found[PORT].ended_ago_s or 0) - ago) < 1


def test_an_outage_lasts_from_its_first_down_to_its_up() -> None:
    """A port may be logged down twice; one that is down has no end yet, and a sub-interface is not a port."""
    lines = [
        f"Nov 23 08:00:{second:02} {EVENT} {port}, changed state to {way}"
        for second, port, way in (
            (0, PORT, "down"), (2, PORT, "up"), (10, PORT, "down"), (15, PORT, "down"), (40, PORT, "up"),
            (41, f"{PORT}.7", "down"), (42, "Ethernet2/1", "down"), (43, "Ethernet3/1", "up"),
        )
    ]  # fmt: skip
    clock = "Mon Nov 23 08:01:00 2026\nTimezone: UTC\n"
    assert last_outages("\n".join(lines), clock, [PORT, "Ethernet2/1", "Ethernet3/1"]) == {
        PORT: LinkOutage(30.0, 20.0),
        "Ethernet3/1": NEVER,
    }
    assert last_outages("\n".join(lines), "", [PORT]) == last_outages("", clock, [PORT]) == {}


def test_outages_are_added_to_known_ports_only() -> None:
    up, away = Interface(is_up=True), Absent("not told")
    assert outage.with_outages(away, {PORT: NEVER}) == away
    assert outage.with_outages({PORT: up, "x": up}, {PORT: LinkOutage(45.0, 5.0), "y": NEVER}) == {
        PORT: Interface(is_up=True, outage_s=45.0, outage_ended_ago_s=5.0),
        "x": up,
    }
