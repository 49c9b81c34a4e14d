"""Community SONiC: the generic updater, CONFIG_DB and the show commands of the toolkit."""

from netkit.lab.personalities.sonic.personality import Sonic

PERSONALITY = Sonic

__all__ = ["PERSONALITY"]
