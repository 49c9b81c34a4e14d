"""The hardware model: what namespaces lack, computed from the design, the configuration and the faults."""

from netkit.lab.model.model import Model
from netkit.lab.model.wiring import KernelPort, NicSettings, NicTraffic

__all__ = ["KernelPort", "Model", "NicSettings", "NicTraffic"]
