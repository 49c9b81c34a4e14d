"""A receiver that answers, and will not take this message however often it is sent."""

from netkit.errors import NotifyError


class RefusedError(NotifyError):
    """The message itself is not taken: what comes after it may be."""
