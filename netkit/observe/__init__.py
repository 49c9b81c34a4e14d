"""Stage: devices → facts. Concurrent, bounded, and whatever fails on one device is a fact of its own."""

from netkit.observe.collect import NATIVE, Collected, Options, collect, target
from netkit.observe.look import Target
from netkit.observe.subject import subject

__all__ = ["NATIVE", "Collected", "Options", "Target", "collect", "subject", "target"]
