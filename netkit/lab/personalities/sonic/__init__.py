"""Community SONiC: the generic updater, CONFIG_DB, the other databases and `show`."""

from netkit.lab.personalities.sonic.personality import Sonic

PERSONALITY = Sonic
