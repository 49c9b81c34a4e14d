"""Stage 2: Intent → Fabric."""

from netkit.design.build import build, with_numbers
from netkit.design.fabric import Fabric, Host, Link, Nic, Port, Session, Switch

__all__ = ["Fabric", "Host", "Link", "Nic", "Port", "Session", "Switch", "build", "with_numbers"]
