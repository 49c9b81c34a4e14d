"""Messages as mails, and their delivery to a mail server."""

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


def mail(message: Message, receiver: Email) -> EmailMessage:
    """Return a message as a mail; its Message-ID is the same however often it is sent."""
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
    """Return the error type: RefusedError if this mail is refused permanently."""
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
        raise PartlyTakenError(Problem(f"it refuses {', '.join(refused)}; the others have it", "check to"))


def _set_timeout(server: smtplib.SMTP, seconds: float) -> None:
    if server.sock is not None:
        server.sock.settimeout(seconds)


class PartlyTakenError(NotifyError):
    """Some recipients were refused; the message counts as sent."""
