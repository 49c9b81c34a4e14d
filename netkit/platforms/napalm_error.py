"""netkit's errors that NAPALM scripts can catch as NAPALM's own."""

from napalm.base.exceptions import ConnectionException, MergeConfigException, ReplaceConfigException

from netkit.errors import AccessError, DeviceError


class NotConnectedError(AccessError, ConnectionException):  # type: ignore[misc]
    """A device cannot be opened."""


class MergeRefusedError(DeviceError, MergeConfigException):  # type: ignore[misc]
    """A device refuses a merge candidate."""


class ReplaceRefusedError(DeviceError, ReplaceConfigException):  # type: ignore[misc]
    """A device refuses a replacement configuration, or would become unreachable through it."""
