"""Configurations → which hosts reach each other, in each state that a deploy passes through. Pure, and fast."""

from netkit.routing.address import Cabling
from netkit.routing.dual_stack import Network
from netkit.routing.network import NetworkState, Outlook

__all__ = ["Cabling", "Network", "NetworkState", "Outlook"]
