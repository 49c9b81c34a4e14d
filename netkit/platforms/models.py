"""The configuration model of each platform. Apart from the platforms themselves: only planning reads configurations."""

from netkit.platforms.compare import ConfigModel
from netkit.platforms.eos.model import MODEL as EOS
from netkit.platforms.frr.model import MODEL as FRR
from netkit.platforms.linux.model import MODEL as LINUX
from netkit.platforms.nvue.model import MODEL as NVUE
from netkit.platforms.sonic.model import MODEL as SONIC

MODELS: dict[str, ConfigModel] = {model.platform: model for model in (NVUE, SONIC, EOS, FRR, LINUX)}
"""`linux` are the GPU hosts."""
