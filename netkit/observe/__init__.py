"""Stage: devices → facts. Concurrent, bounded, and whatever fails on one device is a fact of its own."""

from netkit.observe.collect import Collected, Options, Target, collect, target
from netkit.observe.subject import subject

__all__ = ["Collected", "Options", "Target", "collect", "subject", "target"]
