"""Linux with FRR: vtysh and frr-reload.py are real; systemd and netplan are emulated."""

from netkit.lab.personalities.frr.personality import Frr

PERSONALITY = Frr
