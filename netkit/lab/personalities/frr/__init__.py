"""Linux with FRR: the real vtysh and frr-reload.py; what a switch's systemd and netplan do is stood in for."""

from netkit.lab.personalities.frr.personality import Frr

PERSONALITY = Frr
