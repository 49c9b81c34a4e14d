"""Network operating systems netkit can render for."""

from netkit.platforms.eos import EOS
from netkit.platforms.frr import FRR
from netkit.platforms.nvue import NVUE
from netkit.platforms.platform import FEATURES, LOSSLESS_FEATURES, Capability, Ignored, Platform, version_key
from netkit.platforms.sonic import SONIC

PLATFORMS = {platform.name: platform for platform in (NVUE, SONIC, EOS, FRR)}

__all__ = ["FEATURES", "LOSSLESS_FEATURES", "PLATFORMS", "Capability", "Ignored", "Platform", "version_key"]
