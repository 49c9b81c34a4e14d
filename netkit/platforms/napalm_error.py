"""netkit's errors under the names NAPALM scripts catch: each is both."""

from napalm.base.exceptions import ConnectionException, MergeConfigException, ReplaceConfigException

from netkit.errors import AccessError, DeviceError


class NotConnectedError(AccessError, ConnectionException):  # type: ignore[misc]
    """A device cannot be opened."""


class MergeRefusedError(DeviceError, MergeConfigException):  # type: ignore[misc]
    """A device refuses what is to be merged."""


class ReplaceRefusedError(DeviceError, ReplaceConfigException):  # type: ignore[misc]
    """A device refuses what is to replace its configuration, or would be cut off by it."""
