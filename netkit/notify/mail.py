"""Mails: a message as a mail, and handing it over to a server."""

import smtplib
import ssl
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from netkit.errors import NotifyError, Problem
from netkit.notify.message import Message, digest, text
from netkit.notify.request import CA, STEP_S, RefusedError, within
from netkit.notify.settings import Email
from netkit.report.plan_view import shown

LONGEST_SUBJECT = 180
DOMAIN = "netkit.invalid"


def mail(told: Message, receiver: Email) -> EmailMessage:
    """Return a message as a mail; its Message-ID is the same however often it is sent."""
    found = EmailMessage()
    found["Subject"] = f"[netkit] {digest(told)}"[:LONGEST_SUBJECT]
    found["From"], found["To"] = receiver.sender, ", ".join(receiver.to)
    found["Date"] = format_datetime(datetime.fromtimestamp(told.at_s, UTC))
    found["Message-ID"] = f"<{told.id}@{receiver.sender.rpartition('@')[2] or DOMAIN}>"
    found["Auto-Submitted"] = "auto-generated"
    found.set_content(text(told, receiver.groups))
    return found


LONGEST_ANSWER = 160
MAIL_S = 120.0
"""How long handing over one mail may take in all."""
ANSWER_S = 60.0
"""How long a server may look at a mail before it says whether it takes it: sent again, it would be there twice."""
QUIT_S = 2.0
REFUSED = range(550, 555)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A mail, and how its server is spoken to."""

    receiver: Email
    mail: EmailMessage = field(repr=False)
    password: str = field(repr=False)
    trust: ssl.SSLContext


def hand_over(delivery: Delivery) -> None:
    """Hand a mail over; NotifyError when the server does not take it."""
    try:
        within(MAIL_S, lambda: _hand_over(delivery))
    except ssl.SSLCertVerificationError as error:
        raise NotifyError(Problem(f"its certificate is not trusted: {error.verify_message}", CA)) from None
    except smtplib.SMTPNotSupportedError:
        raise NotifyError(Problem("it does not offer what is asked of it", "see security and user")) from None
    except smtplib.SMTPAuthenticationError:
        raise NotifyError(Problem("it refuses the login", "see user and password_secret")) from None
    except smtplib.SMTPRecipientsRefused as error:
        kind = _kind(code for code, _ in error.recipients.values())
        raise kind(Problem(f"it refuses {', '.join(error.recipients)}", "see to and sender")) from None
    except (smtplib.SMTPConnectError, smtplib.SMTPHeloError) as error:
        raise NotifyError(_said(error)) from None
    except smtplib.SMTPResponseException as error:
        raise _kind([error.smtp_code])(_said(error)) from None
    except smtplib.SMTPServerDisconnected:
        raise NotifyError(Problem("it hangs up", "see its own log")) from None
    except (smtplib.SMTPException, OSError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise NotifyError(Problem(f"it cannot be reached: {why}", "see host and port, and whether it runs")) from None
    except ValueError:  # its words may hold the password
        what = "its host, user, password or an address holds what mail cannot carry"
        raise NotifyError(Problem(what, "write them in ASCII; see notify.yaml")) from None


def _kind(codes: Iterable[int]) -> type[NotifyError]:
    """Return whether it is this mail that is refused, for good."""
    return RefusedError if all(code in REFUSED for code in codes) else NotifyError


def _said(error: smtplib.SMTPResponseException) -> Problem:
    said = error.smtp_error
    text = shown(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))[:LONGEST_ANSWER]
    return Problem(f"it says {error.smtp_code} {text}", "see its own log")


def _hand_over(delivery: Delivery) -> None:
    server = _connected(delivery)
    try:
        refused = _sent(server, delivery)
        with suppress(OSError, ValueError, smtplib.SMTPException):  # it has the mail, however it parts
            _patient(server, QUIT_S)
            server.quit()
    finally:
        server.close()
    if refused:
        # The others have it: sent again, they would have it twice.
        raise PartlyTakenError(Problem(f"it refuses {', '.join(refused)}; the others have it", "see to"))


def _sent(server: smtplib.SMTP, delivery: Delivery) -> dict[str, tuple[int, bytes]]:
    """Send the mail, and return the recipients that were refused."""
    receiver = delivery.receiver
    if receiver.security == "starttls":
        server.starttls(context=delivery.trust)
    if receiver.user is not None:
        server.login(receiver.user, delivery.password)
    _patient(server, ANSWER_S)
    return server.send_message(delivery.mail)


def _patient(server: smtplib.SMTP, seconds: float) -> None:
    if server.sock is not None:
        server.sock.settimeout(seconds)


def _connected(delivery: Delivery) -> smtplib.SMTP:
    receiver = delivery.receiver
    if receiver.security == "tls":
        return smtplib.SMTP_SSL(receiver.host, receiver.port, timeout=STEP_S, context=delivery.trust)
    return smtplib.SMTP(receiver.host, receiver.port, timeout=STEP_S)


class PartlyTakenError(NotifyError):
    """Some recipients were refused; the message counts as sent."""
