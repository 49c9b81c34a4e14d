"""Commands, and parsers of their answers: FRR's."""

from netkit.platforms.frr.facts import views

__all__ = ["views"]
