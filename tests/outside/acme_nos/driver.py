"""The driver: that of a Linux switch with FRR."""

from netkit.platforms.frr.driver import FrrDriver


class AcmeDriver(FrrDriver):
    """One switch."""


DRIVER = AcmeDriver
