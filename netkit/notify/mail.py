"""Messages for mailboxes. Pure."""

from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from netkit.notify.message import Message, digest, text
from netkit.notify.settings import Email

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
