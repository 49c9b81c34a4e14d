"""Network operating systems netkit can render for."""

from netkit.platforms.platform import FEATURES, LOSSLESS_FEATURES, Capability, Ignored, Platform, version_key
from netkit.platforms.registry import HOSTS, PLATFORMS

__all__ = [
    "FEATURES",
    "HOSTS",
    "LOSSLESS_FEATURES",
    "PLATFORMS",
    "Capability",
    "Ignored",
    "Platform",
    "version_key",
]
