"""NVIDIA Cumulus Linux (NVUE) for NAPALM: `napalm.get_network_driver("nvue")`."""

from netkit.platforms.nvue.driver import NvueDriver

__all__ = ["NvueDriver"]
