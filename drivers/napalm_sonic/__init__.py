"""NAPALM finds its drivers by packages of this kind of name: `get_network_driver("sonic")`."""

from netkit.platforms.sonic.driver import SonicDriver

__all__ = ("SonicDriver",)
