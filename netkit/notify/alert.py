"""Alerts for Prometheus' Alertmanager: one per state, with labels that stay the same until it passes again.

Alertmanager groups, silences and repeats by itself. It expects every firing alert in each round, and resolves those it
no longer receives. Labels include the severity, since routes select by it: a state that gets worse ends one alert and
starts another.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netkit.judge import Verdict
from netkit.notify.event import NotificationState, StateEvent
from netkit.notify.news import News
from netkit.notify.settings import Alertmanager
from netkit.store import Source
from netkit.store.state import Key

NAME = "NetkitCheck"
MOST = 2000
"""The most states in one post, the worst first."""
LONGEST = 1000
SEVERITY = {Verdict.WARN: "warning", Verdict.FAIL: "critical", Verdict.ERROR: "error"}
Plain = dict[str, Any]


def body(news: News, receiver: Alertmanager, source: Source) -> Plain | None:
    """The alerts that fire and that ended with this run; None if there are none."""
    over = [one for event in news.events for one in _ended(event, receiver, source, news)]
    bad = [(key, one) for key, one in news.states.items() if _is_wanted(key, one.notified.level, receiver)]
    bad.sort(key=lambda item: (-item[1].notified.level, item[0]))
    alerts = [_firing(key, one, source) for key, one in bad[:MOST]] + over
    return {"at_s": news.at_s, "alerts": alerts} if alerts else None


def _is_wanted(key: Key, level: Verdict, receiver: Alertmanager) -> bool:
    return level >= receiver.least and receiver.covers(key.check, key.device)


def _firing(key: Key, state: NotificationState, source: Source) -> Plain:
    cause = f"{state.cause}: {state.cause_text}" if state.cause_text else ""
    annotations = {"summary": f"{key.id}: {state.text}", "cause": cause, "remedy": state.remedy}
    annotations |= {"flapping": "it comes and goes"} if state.notified.is_flapping else {}
    return alert_of(key, state.notified.level, source, state.since_s, annotations)


def _ended(event: StateEvent, receiver: Alertmanager, source: Source, news: News) -> Iterator[Plain]:
    """Yield the alerts that end because their state passes now, or has another severity."""
    state = news.states.get(event.key)
    level = Verdict.PASS if state is None else state.notified.level
    for before in (Verdict.WARN, Verdict.FAIL, Verdict.ERROR):
        is_possible = before == event.before or event.kind == "settled"
        if before is not level and is_possible and _is_wanted(event.key, before, receiver):
            one = alert_of(event.key, before, source, event.since_s, {"summary": f"{event.key.id}: {event.text}"})
            yield {**one, "ended_s": event.at_s}


def alert_of(key: Key, verdict: Verdict, source: Source, since_s: float, annotations: Mapping[str, str]) -> Plain:
    """An alert in the form of the outbox."""
    labels = {
        "alertname": NAME,
        "fabric": source.fabric,
        "lab": source.lab,
        "check": key.check,
        "device": key.device,
        "place": key.place,
        "severity": SEVERITY[verdict],
    }
    return {"labels": _present(labels), "annotations": _present(annotations), "since_s": since_s}


def _present(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text[:LONGEST] for name, text in texts.items() if text}


def outdated(body: Any) -> Any:
    """What remains of a round after a later one: the alerts that ended."""
    if "alerts" not in body:
        return body  # the receiver was of another kind
    return {**body, "alerts": [one for one in body["alerts"] if "ended_s" in one]}


def payload(bodies: Sequence[Mapping[str, Any]], now_s: float, expires_s: float, link: str) -> list[Plain]:
    """The alerts to post: those of the last round, and those that ended in any round and do not fire again."""
    by_labels = {_identity(one): one for body in bodies[:-1] for one in body["alerts"] if "ended_s" in one}
    # Firing alerts come after ended ones and win, also within the last round.
    last = sorted(bodies[-1]["alerts"], key=lambda one: "ended_s" not in one)
    by_labels |= {_identity(one): one for one in last}
    return [_posted(one, now_s, expires_s, link) for one in by_labels.values()]


def _identity(alert: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(alert["labels"].items()))


def _posted(alert: Mapping[str, Any], now_s: float, expires_s: float, link: str) -> Plain:
    ends_s = alert.get("ended_s", now_s + expires_s)
    times = {"startsAt": moment(min(alert["since_s"], ends_s)), "endsAt": moment(ends_s)}
    return {"labels": alert["labels"], "annotations": alert["annotations"], **times, "generatorURL": link}


def moment(at_s: float) -> str:
    """Format a time for the API."""
    whole, milliseconds = divmod(int(at_s * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{milliseconds:03d}Z"
