"""stub"""
from dataclasses import dataclass
from netkit.design.fabric import Fabric, Switch
@dataclass(frozen=True, slots=True)
class Bgp:
    """x"""
def bgp(fabric: Fabric, switch: Switch) -> Bgp:
    """x"""
    return Bgp()
