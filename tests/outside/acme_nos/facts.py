"""Commands and parsers: those of FRR."""

from netkit.platforms.frr.facts import views

__all__ = ["views"]
