"""The configuration model of each platform. Apart from the platforms themselves: only planning reads configurations."""

from collections.abc import Mapping

from netkit.platforms.compare import ConfigModel
from netkit.platforms.registry import Parts

MODELS: Mapping[str, ConfigModel] = Parts("model", "MODEL")
"""`linux` are the GPU hosts."""
