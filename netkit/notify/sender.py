"""What sends to a receiver: its message is made from what the outbox holds, and handed over."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netkit.errors import NotifyError, Problem
from netkit.notify import alert, slack, webhook
from netkit.notify.mail import mail
from netkit.notify.message import Message, message
from netkit.notify.request import Request, post
from netkit.notify.settings import Alertmanager, AnyReceiver, Email, NotifySettings, Slack, Web, Webhook, checked_url
from netkit.notify.smtp import Delivery, hand_over
from netkit.notify.trust import trusted
from netkit.store import Source

Secrets = Callable[[str], str]
ALERTS = "/api/v2/alerts"


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends to one receiver what a fabric, or a lab of it, has to tell."""

    receiver: AnyReceiver
    settings: NotifySettings
    source: Source
    secrets: Secrets

    @property
    def outdated(self) -> Callable[[Any], Any] | None:
        """Return what is left of a body after a later one, where how things stand now says most; else None."""
        return alert.outdated if isinstance(self.receiver, Alertmanager) else None

    def send(self, name: str, bodies: Sequence[Mapping[str, Any]]) -> None:
        """Send a message; NotifyError when it is not taken."""
        if isinstance(self.receiver, Alertmanager):
            self._alert(self.receiver, bodies)
            return
        told = message(name, self.source.fabric, self.source.lab, bodies, self.settings.link)
        if isinstance(self.receiver, Email):
            self._mail(self.receiver, told)
        else:
            self._post(self.receiver, told)

    def _alert(self, receiver: Alertmanager, bodies: Sequence[Mapping[str, Any]]) -> None:
        found = alert.payload(bodies, time.time(), receiver.expires_minutes * 60.0, self.settings.link)
        url = self._url(receiver).rstrip("/")
        self._request(receiver, url if url.endswith(ALERTS) else f"{url}{ALERTS}", webhook.encoded(found), {})

    def _post(self, receiver: Webhook | Slack, told: Message) -> None:
        makes = slack.payload if isinstance(receiver, Slack) else webhook.payload
        data, headers = webhook.encoded(makes(told, receiver.groups)), {"X-Netkit-Message": told.id}
        if isinstance(receiver, Webhook) and receiver.hmac_secret is not None:
            headers["X-Netkit-Signature"] = webhook.signature(data, self.secrets(receiver.hmac_secret))
        self._request(receiver, self._url(receiver), data, headers)

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

    def _mail(self, receiver: Email, told: Message) -> None:
        password = self.secrets(receiver.password_secret) if receiver.password_secret else ""
        hand_over(Delivery(receiver, mail(told, receiver), password, trusted(receiver.ca_file)))


def senders(settings: NotifySettings, source: Source, secrets: Secrets) -> tuple[Sender, ...]:
    """Return what sends to each receiver."""
    return tuple(Sender(receiver, settings, source, secrets) for receiver in settings.receivers)
