"""Handing a mail to a server."""

import smtplib
import ssl
from dataclasses import dataclass, field
from email.message import EmailMessage

from netkit.errors import NotifyError, Problem
from netkit.notify.patience import SEND_S, within
from netkit.notify.request import CA, STEP_S
from netkit.notify.settings import Email
from netkit.report.plan_view import shown

LONGEST_ANSWER = 160


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
        within(SEND_S, lambda: _hand_over(delivery))
    except ssl.SSLCertVerificationError as error:
        raise NotifyError(Problem(f"its certificate is not trusted: {error.verify_message}", CA)) from None
    except smtplib.SMTPNotSupportedError:
        raise NotifyError(Problem("it does not offer what is asked of it", "see security and user")) from None
    except smtplib.SMTPAuthenticationError:
        raise NotifyError(Problem("it refuses the login", "see user and password_secret")) from None
    except smtplib.SMTPRecipientsRefused as error:
        raise NotifyError(Problem(f"it refuses {', '.join(error.recipients)}", "see to and sender")) from None
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error
        text = shown(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))[:LONGEST_ANSWER]
        raise NotifyError(Problem(f"it says {error.smtp_code} {text}", "see its own log")) from None
    except smtplib.SMTPServerDisconnected:
        raise NotifyError(Problem("it hangs up", "see its own log")) from None
    except (smtplib.SMTPException, OSError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise NotifyError(Problem(f"it cannot be reached: {why}", "see host and port, and whether it runs")) from None


def _hand_over(delivery: Delivery) -> None:
    receiver = delivery.receiver
    with _connected(delivery) as server:
        if receiver.security == "starttls":
            server.starttls(context=delivery.trust)
        if receiver.user is not None:
            server.login(receiver.user, delivery.password)
        refused = server.send_message(delivery.mail)
    if refused:
        # The others have it: sent again, they would have it twice.
        raise PartlyTakenError(Problem(f"it refuses {', '.join(refused)}; the others have it", "see to"))


def _connected(delivery: Delivery) -> smtplib.SMTP:
    receiver = delivery.receiver
    if receiver.security == "tls":
        return smtplib.SMTP_SSL(receiver.host, receiver.port, timeout=STEP_S, context=delivery.trust)
    return smtplib.SMTP(receiver.host, receiver.port, timeout=STEP_S)


class PartlyTakenError(NotifyError):
    """Some have the message: it counts as sent."""
