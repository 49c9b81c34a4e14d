"""From the news of a run to the messages of each receiver; failed messages stay in the outbox."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netkit.errors import NetkitError, NotifyError, Problem
from netkit.judge import Verdict
from netkit.judge.run import FABRIC
from netkit.notify import alert, message
from netkit.notify import receiver as slack
from netkit.notify import receiver as webhook
from netkit.notify.alert import alert_of
from netkit.notify.event import StateEvent, event_id
from netkit.notify.message import message_of
from netkit.notify.news import News
from netkit.notify.receiver import Delivery, PartlyTakenError, hand_over, mail
from netkit.notify.request import RefusedError, Request, post, trusted
from netkit.notify.settings import Alertmanager, AnyReceiver, Email, NotifySettings, Slack, Web, Webhook, checked_url
from netkit.report.plan_view import counted
from netkit.store import Source
from netkit.store.open_cause import open_counts
from netkit.store.outbox import LONGEST_PAUSE_S, ClaimedMessage, Outbox, QueuedNotification
from netkit.store.state import Key, SilenceEnd

Secrets = Callable[[str], str]
ALERTS = "/api/v2/alerts"


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends the notifications of a fabric, or of a lab of it, to one receiver."""

    receiver: AnyReceiver
    settings: NotifySettings
    source: Source
    secrets: Secrets

    @property
    def outdated(self) -> Callable[[Any], Any] | None:
        """What reduces a body once a later one exists, for receivers of the current state; else None."""
        return alert.outdated if isinstance(self.receiver, Alertmanager) else None

    def send(self, name: str, bodies: Sequence[Mapping[str, Any]]) -> None:
        """Send a message; NotifyError if it is not accepted."""
        if isinstance(self.receiver, Alertmanager):
            found = alert.payload(bodies, time.time(), self.receiver.expires_minutes * 60.0, self.settings.link)
            url = self._url(self.receiver).rstrip("/")
            self._request(self.receiver, url if url.endswith(ALERTS) else f"{url}{ALERTS}", webhook.encoded(found), {})
            return
        message = message_of(name, self.source.fabric, self.source.lab, bodies, self.settings.link)
        if isinstance(self.receiver, Email):
            password = self.secrets(self.receiver.password_secret) if self.receiver.password_secret else ""
            hand_over(Delivery(self.receiver, mail(message, self.receiver), password, trusted(self.receiver.ca_file)))
        else:
            payload = slack.slack_payload if isinstance(self.receiver, Slack) else webhook.webhook_payload
            data, headers = webhook.encoded(payload(message, self.receiver.groups)), {"X-Netkit-Message": message.id}
            if isinstance(self.receiver, Webhook) and self.receiver.hmac_secret is not None:
                headers["X-Netkit-Signature"] = webhook.signature(data, self.secrets(self.receiver.hmac_secret))
            self._request(self.receiver, self._url(self.receiver), data, headers)

    def _request(self, receiver: Web, url: str, data: bytes, headers: Mapping[str, str]) -> None:
        token = self.secrets(receiver.token_secret) if receiver.token_secret else ""
        all_headers = {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
        post(Request(url, data, all_headers, trusted(receiver.ca_file)))

    def _url(self, receiver: Web) -> str:
        if receiver.url is not None:
            return receiver.url
        name = receiver.url_secret or ""
        url = self.secrets(name)
        try:
            checked_url(url)
        except ValueError as error:
            what, _, remedy = str(error).partition("; ")
            raise NotifyError(Problem(f"the secret {name} {what}", remedy)) from None
        return url


def senders(settings: NotifySettings, source: Source, secrets: Secrets) -> tuple[Sender, ...]:
    return tuple(Sender(receiver, settings, source, secrets) for receiver in settings.receivers)


LEASE_S = 180.0
"""Longer than sending may take: a process that claimed a message this long ago has died."""
SHORTEST_S = 60.0
"""Pause after a receiver failed: doubled each time, up to LONGEST_PAUSE_S."""
MOST_ATTEMPTS = 3
"""The limit of attempts at a message that its receiver refuses."""


def deliver(outbox: Outbox, senders: Sequence[Sender], keep_s: float) -> Iterator[str]:
    """Send queued messages, and yield the failures."""
    now_s = time.time()
    lost = outbox.give_up([sender.receiver.name for sender in senders], now_s - keep_s, now_s)
    for name, rounds in lost.items():
        yield _lost(name, rounds)
    for sender in senders:
        yield from _to_one(outbox, sender)


def _lost(name: str, rounds: int) -> str:
    return f"{name} was not notified of {counted(rounds, 'round')}; these are dropped"


def _to_one(outbox: Outbox, sender: Sender) -> Iterator[str]:
    name = sender.receiver.name
    while claimed := outbox.claim(name, time.time(), LEASE_S, outdated=sender.outdated):
        try:
            sender.send(claimed.name, claimed.bodies)
        except PartlyTakenError as error:
            yield f"{name}: {error}"
        except Exception as error:  # must not affect other receivers
            if is_hopeless(error) and claimed.attempts + 1 >= MOST_ATTEMPTS:
                outbox.drop(claimed)
                yield f"{_lost(name, len(claimed.rows))}: {complaint(error)}"
                continue
            outbox.failed(claimed, time.time() + pause_s(claimed))
            yield f"{name} was not notified: {complaint(error)}; the next run tries again"
            return
        outbox.sent(claimed, time.time())


def is_hopeless(error: Exception) -> bool:
    """Whether the message itself cannot be delivered: it is refused, or was made for another kind of receiver."""
    return isinstance(error, RefusedError | LookupError)


def complaint(error: Exception) -> str:
    """Why a message was not delivered; without the text of unexpected errors, which may hold a secret."""
    return str(error) if isinstance(error, NetkitError) else f"{type(error).__name__}; see notify.yaml"


def pause_s(claimed: ClaimedMessage) -> float:
    """The time until the next attempt."""
    return min(SHORTEST_S * 2.0 ** min(claimed.attempts, 10), LONGEST_PAUSE_S)


def notifications(news: News, receivers: Iterable[AnyReceiver], source: Source) -> Iterator[QueuedNotification]:
    for receiver in receivers:
        if isinstance(receiver, Alertmanager):
            if found := alert.body(news, receiver, source):
                yield QueuedNotification(receiver.name, found)
            continue
        events = [event for event in news.events if receiver.wants(event)]
        ends = [one.text for one in news.ends if _covers_end(receiver, one)]
        if events or ends:
            covered = (item for item in news.states.items() if receiver.covers(item[0].check, item[0].device))
            bad = ((key, one) for key, one in covered if one.notified.now >= max(receiver.least, Verdict.WARN))
            open_now = open_counts((key, one.cause, one.notified.now) for key, one in bad)
            yield QueuedNotification(receiver.name, message.body(news.at_s, events, open_now, ends))


def _covers_end(receiver: AnyReceiver, end: SilenceEnd) -> bool:
    """Whether a receiver covers what a silence names, or what it silenced."""
    known = end.known
    named = ((check, place.partition(":")[0]) for check in known.checks for place in known.places)
    return any(receiver.covers(*one) for one in (*named, *((key.check, key.device) for key in known.keys)))


TEXT = "this is a test notification: nothing is wrong"
CHECK = "notify.test"
ALERT_S = 120.0
"""How long a sample alert fires."""


def sample(sender: Sender, at_s: float) -> dict[str, Any]:
    """A test message in the form of the outbox."""
    source, key = sender.source, Key(CHECK, FABRIC)
    if sender.outdated is not None:
        alert = alert_of(key, Verdict.WARN, source, at_s, {"summary": TEXT})
        return {"at_s": at_s, "alerts": [{**alert, "ended_s": at_s + ALERT_S}]}
    name = event_id(source.fabric, source.lab, key, "changed", at_s)
    event = StateEvent(name, key, "changed", Verdict.PASS, Verdict.WARN, at_s, at_s, TEXT)
    return message.body(at_s, [event], {})
