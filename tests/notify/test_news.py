"""The events of a run: changes only, grouped by cause, and none twice."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netkit.judge import Finding, Verdict, fail, warn
from netkit.judge.cause import cause_groups
from netkit.judge.run import FABRIC
from netkit.judge.silence import REACHED
from netkit.notify import alert
from netkit.notify.delivery import notifications
from netkit.notify.event import FlapLimits, StateEvent
from netkit.notify.news import News, NotifyRound, decide
from netkit.notify.settings import Alertmanager, Webhook
from netkit.store import CheckState, Source
from netkit.store.outbox import QueuedNotification
from netkit.store.state import GONE, UNCHECKED, Extent, Key

SOURCE = Source("small")
BEGAN_S = 1_763_769_600.0
DOWN, IDLE = Key("links.up", "leaf01", "swp1"), Key("bgp.sessions", "leaf01", "swp1")
DEVICES = frozenset({"leaf01", "leaf02"})
CALM = FlapLimits(changes=1000)


class Course:
    """Consecutive rounds, with the state between them."""

    def __init__(self, devices: frozenset[str] = DEVICES, limits: FlapLimits = CALM) -> None:
        self.limits = limits
        self.memory: dict[Key, str] = {}
        self.at_s, self.devices = BEGAN_S, devices
        self.checks: frozenset[str] | None = None
        self.last: News | None = None

    def round(self, states: Mapping[Key, tuple[Verdict, str]], *findings: Finding) -> list[StateEvent]:
        """The events of a run."""
        self.at_s += 600
        reported = {
            key: CheckState(key, verdict, self.at_s, self.at_s, text) for key, (verdict, text) in states.items()
        }
        found = cause_groups(findings, {"links.up": "link", "bgp.sessions": "routing"})
        now = NotifyRound(SOURCE, self.at_s, found, Extent(self.devices, self.checks), self.limits)
        telling = decide(self.memory, reported, now, self._noted)
        kept: dict[Key, str] = {**self.memory, **telling.memory}
        self.memory = {key: text for key, text in kept.items() if text}
        assert self.last is not None
        return list(self.last.events)

    def _noted(self, news: News) -> Sequence[QueuedNotification]:
        self.last = news
        return ()


def brief(events: Sequence[StateEvent]) -> list[tuple[Key, str, str]]:
    return [(one.key, one.before.word, one.now.word) for one in events]


def test_the_first_run_reports_all_open_findings_and_the_second_nothing() -> None:
    course = Course()
    states = {DOWN: (Verdict.FAIL, "down"), IDLE: (Verdict.WARN, "idle"), Key("x", "leaf02"): (Verdict.PASS, "")}
    assert brief(course.round(states)) == [(DOWN, "pass", "fail"), (IDLE, "pass", "warn")]
    assert course.round(states) == []
    assert course.round({}) == []


def test_a_resolved_finding_reports_what_was_wrong_and_is_forgotten() -> None:
    course = Course()
    course.round({DOWN: (Verdict.FAIL, "down")})
    (well,) = course.round({DOWN: (Verdict.PASS, "")})
    assert (well.is_well, well.before, well.text) == (True, Verdict.FAIL, "down")
    for _ in range(20):
        course.round({DOWN: (Verdict.PASS, "")})
    assert course.memory == {}


def test_symptoms_are_grouped_under_their_cause_also_when_resolved() -> None:
    course = Course()
    down = fail("swp1", "down", "see the cable", device="leaf01", cause="a")._replace(check="links.up")
    idle = fail("swp1", "idle", "see the link", device="leaf01", cause="a")
    idle = idle._replace(check="bgp.sessions", is_symptom=True)
    events = course.round({DOWN: (Verdict.FAIL, "down"), IDLE: (Verdict.FAIL, "idle")}, down, idle)
    assert [(one.cause, one.cause_text, one.remedy) for one in events] == [
        ("", "", "see the cable"),
        (DOWN.id, "down", "see the link"),
    ]
    well = course.round({DOWN: (Verdict.PASS, ""), IDLE: (Verdict.PASS, "")})
    assert [one.cause for one in well] == ["", DOWN.id]


def test_a_cause_reports_its_change_and_is_counted_once() -> None:
    course = Course()
    down = fail("swp1", "down", "see the cable", device="leaf01", cause="a")._replace(check="links.up")
    idle = fail("swp1", "idle", device="leaf01", cause="a")._replace(check="bgp.sessions", is_symptom=True)
    both = {DOWN: (Verdict.FAIL, "down"), IDLE: (Verdict.FAIL, "idle")}
    assert [one.change for one in course.round({DOWN: both[DOWN]}, down)] == ["new"]
    (worse,) = course.round(both, down, idle)
    assert (worse.key, worse.change) == (IDLE, "worse")
    assert opened(course) == {"fail": 1}
    (better,) = course.round({**both, DOWN: (Verdict.PASS, "")}, idle._replace(is_symptom=False))
    assert (better.key, better.change, better.cause) == (DOWN, "better", IDLE.id), "what it caused is left"
    (gone,) = course.round({IDLE: (Verdict.PASS, "")})
    assert (gone.change, opened(course)) == ("gone", {})


def opened(course: Course) -> Mapping[str, int]:
    """The findings that are open by all events."""
    assert course.last is not None
    (post,) = notifications(course.last, [Webhook(name="w", kind="webhook", url="http://127.0.0.1:1")], SOURCE)
    found: Mapping[str, int] = post.body["open"]
    return found


def test_findings_of_a_removed_device_are_closed() -> None:
    course = Course()
    course.round({DOWN: (Verdict.FAIL, "down"), Key("x", FABRIC): (Verdict.FAIL, "y")})
    course.devices = frozenset({"leaf02"})
    (gone,) = course.round({})
    assert (gone.key, gone.is_well, gone.text) == (DOWN, True, GONE)
    assert course.round({}) == []


def test_findings_of_a_removed_check_are_closed() -> None:
    course = Course()
    mine, lost = Key("my-rule.cables", "leaf01", "swp1"), Key(REACHED, "leaf02")
    course.round({DOWN: (Verdict.FAIL, "down"), mine: (Verdict.WARN, "crossed"), lost: (Verdict.FAIL, "away")})
    assert course.round({}) == []  # a run of some checks only
    course.checks = frozenset({"links.up", "bgp.sessions"})
    (gone,) = course.round({})
    assert (gone.key, gone.is_well, gone.text) == (mine, True, UNCHECKED)
    assert course.round({}) == []


RECEIVER = Alertmanager(name="am", kind="alertmanager", url="http://127.0.0.1:1")


def fired(news: News | None) -> Iterator[tuple[str, str, bool]]:
    assert news is not None
    reported = alert.body(news, RECEIVER, SOURCE) or {"alerts": []}
    for one in reported["alerts"]:
        yield one["labels"]["check"], one["labels"]["severity"], "ended_s" not in one


def test_an_alert_of_another_severity_replaces_the_previous_one() -> None:
    course = Course()
    course.round({DOWN: (Verdict.WARN, "dim")})
    assert list(fired(course.last)) == [("links.up", "warning", True)]
    course.round({DOWN: (Verdict.FAIL, "down")})
    assert list(fired(course.last)) == [("links.up", "critical", True), ("links.up", "warning", False)]
    course.round({})
    assert list(fired(course.last)) == [("links.up", "critical", True)]
    course.round({DOWN: (Verdict.PASS, "")})
    assert list(fired(course.last)) == [("links.up", "critical", False)]
    course.round({})
    assert list(fired(course.last)) == []


def test_a_worse_state_while_flapping_is_an_alert_of_its_severity() -> None:
    course = Course(limits=FlapLimits(changes=2))
    for verdict in (Verdict.WARN, Verdict.PASS, Verdict.WARN):
        events = course.round({DOWN: (verdict, "dim")})
    assert [(one.kind, one.level) for one in events] == [("flapping", Verdict.WARN)]
    assert list(fired(course.last)) == [("links.up", "warning", True)]
    (worse,) = course.round({DOWN: (Verdict.FAIL, "down")})
    assert (worse.kind, worse.before, worse.now) == ("flapping", Verdict.WARN, Verdict.FAIL)
    assert list(fired(course.last)) == [("links.up", "critical", True), ("links.up", "warning", False)]
    strict = Webhook(name="w", kind="webhook", url="http://127.0.0.1:1", minimum="fail")
    assert course.last is not None
    assert [one.receiver for one in notifications(course.last, [strict], SOURCE)] == ["w"]


def test_after_several_rounds_an_alertmanager_gets_the_final_state() -> None:
    course, bodies = Course(), list[Any]()
    for verdict in (Verdict.FAIL, Verdict.PASS, Verdict.FAIL, Verdict.WARN):
        course.round({DOWN: (verdict, "down")})
        assert course.last is not None
        bodies.append(alert.body(course.last, RECEIVER, SOURCE))
    reported = alert.payload(bodies, course.at_s + 5, 3600, "")
    ends = {one["labels"]["severity"]: one["endsAt"] for one in reported}
    assert ends == {"warning": alert.moment(course.at_s + 3605), "critical": alert.moment(course.at_s)}


def test_a_receiver_without_new_events_is_sent_nothing() -> None:
    course = Course()
    course.round({DOWN: (Verdict.WARN, "dim")})
    assert course.last is not None
    strict = Webhook(name="w", kind="webhook", url="http://127.0.0.1:1", minimum="fail")
    assert list(notifications(course.last, [strict], SOURCE)) == []
    course.round({DOWN: (Verdict.FAIL, "down")})
    assert [one.receiver for one in notifications(course.last, [strict], SOURCE)] == ["w"]
    course.round({DOWN: (Verdict.WARN, "dim")})
    (eased,) = notifications(course.last, [strict], SOURCE)
    assert (eased.body["open"], eased.body["events"][0]["now"]) == ({}, "warn")


def test_a_warning_that_explains_nothing_is_its_own_cause() -> None:
    course = Course()
    dim = warn("swp1", "dim", device="leaf01")._replace(check="links.up")
    (one,) = course.round({DOWN: (Verdict.WARN, "dim")}, dim)
    assert one.cause == ""
