"""What a Linux switch is asked: few commands, because each starts a program, and vtysh asks every daemon."""

from netkit.platforms import disk

ABOUT = "cat /proc/uptime /proc/sys/kernel/random/boot_id /proc/sys/kernel/osrelease /proc/sys/kernel/hostname"
ROUTING = (
    "vtysh -c 'show version' -c 'show bgp ipv4 unicast summary json' -c 'show bfd peers json' "
    "-c 'show running-config' | sed '/password /d'"
)
"""Passwords of sessions stay on the switch."""
DISK = disk.command()
LINKS = "ip -j -s -d link show"
FILES = (
    "grep -s . /sys/class/net/*/speed /sys/class/net/*/carrier_changes /sys/class/net/*/carrier_down_count "
    "/sys/class/dmi/id/product_name /sys/class/dmi/id/product_serial; true"
)
"""Some cannot be read, such as the speed of a port that is down: they are not there, and no failure."""
NEIGHBORS = "lldpcli -f json0 show neighbors details"
ROUTES = "ip -j -4 route show table main"
OPTICS = (
    "command -v ethtool >/dev/null || exit 0; for n in $(ls /sys/class/net); do "
    'echo "#@ $n"; ethtool {what} $n 2>/dev/null; echo "#= $?"; done'
)
MODULES = OPTICS.format(what="-m")
FEC = OPTICS.format(what="--show-fec")
OUTAGES = "date '+%Y/%m/%d %H:%M:%S'; vtysh -d zebra -c 'show interface json'"
"""When links went and came by zebra's clock, and what that clock says now. One daemon answers sooner than all."""
