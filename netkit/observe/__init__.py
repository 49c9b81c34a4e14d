"""Stage: devices → facts. Concurrent, bounded, and whatever fails on one device is a fact of its own."""

from netkit.observe.collector import NATIVE, Collected, CollectOptions, Target, collect, target
from netkit.observe.probing import subject

__all__ = ["NATIVE", "CollectOptions", "Collected", "Target", "collect", "subject", "target"]
