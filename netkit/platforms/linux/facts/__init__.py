"""Facts of GPU hosts and their NICs over SSH: commands of Linux and of the NIC's tools, and pure parsers."""

from netkit.platforms.linux.facts.views import views

__all__ = ["views"]
