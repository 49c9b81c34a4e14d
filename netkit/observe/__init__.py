"""Stage: devices → facts. Concurrent and bounded; a failure of one device does not affect the others."""

from netkit.observe.collector import NATIVE, Collected, CollectOptions, Target, collect, target
from netkit.observe.probing import subject

__all__ = ["NATIVE", "CollectOptions", "Collected", "Target", "collect", "subject", "target"]
