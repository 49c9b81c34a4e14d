"""GPU hosts of the lab: netplan and systemd-networkd as shipped, and the tools of their NICs."""

from netkit.lab.personalities.linux_host.host import LinuxHost

PERSONALITY = LinuxHost
