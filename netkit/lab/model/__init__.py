"""The declared hardware model: what namespaces lack, computed from the design, the configuration and the faults."""

from netkit.lab.model.inputs import KernelPort, NicSettings, NicTraffic
from netkit.lab.model.model import Model

__all__ = ["KernelPort", "Model", "NicSettings", "NicTraffic"]
