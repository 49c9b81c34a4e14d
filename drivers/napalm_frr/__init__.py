"""Linux switches with FRR for NAPALM: `napalm.get_network_driver("frr")`."""

from netkit.platforms.frr.driver import FrrDriver

__all__ = ["FrrDriver"]
