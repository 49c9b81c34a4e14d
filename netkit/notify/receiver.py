"""Receivers: a webhook, Slack, and mail."""

import hashlib
import hmac
import json
import smtplib
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from netkit.errors import NotifyError, Problem
from netkit.notify.event import plain
from netkit.notify.message import MOST_ENDS, EventGroup, Message, details_command, digest, groups, lines, place, text
from netkit.notify.request import CA, STEP_S, RefusedError, within
from netkit.notify.settings import Email
from netkit.report.plan_view import counted, shown

FORMAT = 1


def webhook_payload(message: Message, most: int) -> dict[str, Any]:
    """A message: every event, and the groups as people would read them."""
    found = groups(message.events)
    return {
        "format": FORMAT,
        "id": message.id,
        "fabric": message.fabric,
        "lab": message.lab,
        "at_s": message.at_s,
        "rounds": message.rounds,
        "digest": digest(message),
        "open": dict(message.open),
        "groups": [_group(group) for group in found[:most]],
        "groups_left_out": max(0, len(found) - most),
        "events": [plain(event) for event in message.events],
        "silences_ended": list(message.ends),
        "look": details_command(message),
    }


def _group(group: EventGroup) -> dict[str, Any]:
    verdict = max(event.now for event in group.events)
    return {
        "change": group.change,
        "word": group.word,
        "verdict": verdict.word,
        "where": place(group),
        "check": group.head.key.check,
        "text": group.head.text,
        "events": [event.id for event in group.events],
    }


def encoded(value: object) -> bytes:
    """The bytes that are sent and signed."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()


def signature(data: bytes, secret: str) -> str:
    """The HMAC that authenticates a message."""
    return "sha256=" + hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()


LONGEST_HEADER, LONGEST_SECTION, LONGEST_TEXT = 150, 2900, 3500
LONGEST_GROUP = 900
LONGEST_FOOTER = 1000
MOST_TEXT = 10_000
"""The limit of all blocks together."""
ICONS = {
    "error": ":boom:",
    "fail": ":red_circle:",
    "warn": ":large_yellow_circle:",
    "flapping": ":zap:",
    "silenced": ":mute:",
}
WELL = ":large_green_circle:"


def slack_payload(message: Message, most: int) -> dict[str, Any]:
    """A message for Slack; `text` is shown by notifications and clients without blocks."""
    found = groups(message.events)
    parts = list(_fitting([_slack_group(group) for group in found[:most]], message))
    left = len(found) - len(parts)
    rest = [f"… and {counted(left, 'group')} more"] if left else []
    ended = [escaped(one) for one in message.ends[:MOST_ENDS]]
    text = _cut("\n".join((escaped(digest(message)), *parts, *rest, *ended)), LONGEST_TEXT)
    return {"text": text, "blocks": list(_blocks(message, parts, rest))}


def _fitting(parts: Iterable[str], message: Message) -> Iterator[str]:
    """Yield the first parts, as many as fit into a message."""
    digest_length = min(len(escaped(digest(message))), LONGEST_SECTION)
    free = MOST_TEXT - LONGEST_HEADER - digest_length - LONGEST_FOOTER - LONGEST_GROUP * bool(message.ends)
    for part in parts:
        free -= len(part)
        if free < 0:
            return
        yield part


def _blocks(message: Message, parts: list[str], rest: list[str]) -> Iterator[dict[str, Any]]:
    header = {"type": "plain_text", "text": _cut(shown(f"netkit: {message.fabric}"), LONGEST_HEADER), "emoji": False}
    yield {"type": "header", "text": header}
    ends = [_cut("\n".join(f":alarm_clock: {escaped(one)}" for one in message.ends[:MOST_ENDS]), LONGEST_GROUP)]
    for part in (escaped(digest(message)), *parts, *(ends if message.ends else [])):
        yield {"type": "section", "text": {"type": "mrkdwn", "text": _cut(part, LONGEST_SECTION)}}
    footer = _cut("\n".join((*rest, escaped(details_command(message)), f"message {message.id}")), LONGEST_FOOTER)
    yield {"type": "context", "elements": [{"type": "mrkdwn", "text": footer}]}


def _slack_group(group: EventGroup) -> str:
    icon = WELL if group.word == "well" else ICONS[group.word]
    named = group.change if group.change in {"gone", "flapping", "silenced"} else f"{group.change} {group.word}"
    first, *more = (escaped(_cut(line, LONGEST_GROUP // 3)) for line in lines(group))
    return _cut("\n".join((f"{icon} *{named}* {first}", *(f"      {line}" for line in more))), LONGEST_SECTION)


def escaped(text: str) -> str:
    """Escape text so that it contains no mentions or links."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


LONGEST_SUBJECT = 180
DOMAIN = "netkit.invalid"


def mail(message: Message, receiver: Email) -> EmailMessage:
    """A message as a mail; its Message-ID is the same however often it is sent."""
    found = EmailMessage()
    found["Subject"] = f"[netkit] {digest(message)}"[:LONGEST_SUBJECT]
    found["From"], found["To"] = receiver.sender, ", ".join(receiver.to)
    found["Date"] = format_datetime(datetime.fromtimestamp(message.at_s, UTC))
    found["Message-ID"] = f"<{message.id}@{receiver.sender.rpartition('@')[2] or DOMAIN}>"
    found["Auto-Submitted"] = "auto-generated"
    found.set_content(text(message, receiver.groups))
    return found


LONGEST_ANSWER = 160
MAIL_S = 120.0
"""The time limit for delivering one mail."""
ANSWER_S = 60.0
"""How long a server may take to accept a mail: sending it again would duplicate it."""
QUIT_S = 2.0
REFUSED = range(550, 555)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A mail, and the login at its server."""

    receiver: Email
    mail: EmailMessage = field(repr=False)
    password: str = field(repr=False)
    trust: ssl.SSLContext


def hand_over(delivery: Delivery) -> None:
    """Deliver a mail; NotifyError if the server does not accept it."""
    try:
        within(MAIL_S, lambda: _hand_over(delivery))
    except ssl.SSLCertVerificationError as error:
        raise NotifyError(Problem(f"its certificate is not trusted: {error.verify_message}", CA)) from None
    except smtplib.SMTPNotSupportedError:
        raise NotifyError(Problem("it does not support STARTTLS or login", "check security and user")) from None
    except smtplib.SMTPAuthenticationError:
        raise NotifyError(Problem("it refuses the login", "check user and password_secret")) from None
    except smtplib.SMTPRecipientsRefused as error:
        kind = _kind(code for code, _ in error.recipients.values())
        raise kind(Problem(f"it refuses {', '.join(error.recipients)}", "check to and sender")) from None
    except (smtplib.SMTPConnectError, smtplib.SMTPHeloError) as error:
        raise NotifyError(_answer(error)) from None
    except smtplib.SMTPResponseException as error:
        raise _kind([error.smtp_code])(_answer(error)) from None
    except smtplib.SMTPServerDisconnected:
        raise NotifyError(Problem("it closes the connection", "see the server's log")) from None
    except (smtplib.SMTPException, OSError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise NotifyError(Problem(f"it cannot be reached: {why}", "check host and port, and whether it runs")) from None
    except ValueError:  # its text may hold the password
        what = "its host, user, password or an address has characters that mail cannot carry"
        raise NotifyError(Problem(what, "write them in ASCII; see notify.yaml")) from None


def _kind(codes: Iterable[int]) -> type[NotifyError]:
    """The error type: RefusedError if this mail is refused permanently."""
    return RefusedError if all(code in REFUSED for code in codes) else NotifyError


def _answer(error: smtplib.SMTPResponseException) -> Problem:
    answer = error.smtp_error
    text = shown(answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer))[:LONGEST_ANSWER]
    return Problem(f"it answers {error.smtp_code} {text}", "see the server's log")


def _hand_over(delivery: Delivery) -> None:
    receiver = delivery.receiver
    if receiver.security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(receiver.host, receiver.port, timeout=STEP_S, context=delivery.trust)
    else:
        server = smtplib.SMTP(receiver.host, receiver.port, timeout=STEP_S)
    try:
        if receiver.security == "starttls":
            server.starttls(context=delivery.trust)
        if receiver.user is not None:
            server.login(receiver.user, delivery.password)
        _set_timeout(server, ANSWER_S)
        refused = server.send_message(delivery.mail)
        with suppress(OSError, ValueError, smtplib.SMTPException):  # the mail is delivered, however the session ends
            _set_timeout(server, QUIT_S)
            server.quit()
    finally:
        server.close()
    if refused:
        # The other recipients have it: another attempt would send them a duplicate.
        raise PartlyTakenError(Problem(f"it refuses {', '.join(refused)}; the others received it", "check to"))


def _set_timeout(server: smtplib.SMTP, seconds: float) -> None:
    if server.sock is not None:
        server.sock.settimeout(seconds)


class PartlyTakenError(NotifyError):
    """Some recipients were refused; the message counts as sent."""
