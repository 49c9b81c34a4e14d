"""The configuration model of each platform. Apart from the platforms themselves: only planning reads configurations."""

from netkit.platforms.compare import ConfigModel
from netkit.platforms.nvue.model import MODEL as NVUE

MODELS: dict[str, ConfigModel] = {model.platform: model for model in (NVUE,)}
