"""Configurations → which hosts reach each other, in each state that a deploy passes through. Pure, and fast."""

from netkit.routing.network import Cabling, Network, NetworkState, Outlook

__all__ = ["Cabling", "Network", "NetworkState", "Outlook"]
