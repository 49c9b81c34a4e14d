"""What of a Linux switch's configuration is netkit's."""

from netkit.platforms.ownership import Ownership

# hostname and service integrated-vtysh-config are rendered, but they belong to each vtysh, which prints its own.
ROUTING = (
    ("frr defaults",),
    ("log *",),
    ("no zebra nexthop kernel enable",),
    ("interface *", "description"),
    ("ip prefix-list *",),
    ("route-map *",),
    ("bfd",),
    ("router bgp*",),
)
OWNERSHIP = Ownership(
    owned=(
        *(("frr.conf", *path) for path in ROUTING),
        ("daemons",),
        ("netplan.yaml",),
        ("sysctl.conf",),
        ("lldpd.conf",),
        ("chrony.conf",),
        ("rsyslog.conf",),
        ("snmpd.conf",),
    ),
    # How the switch is reached must not depend on what netkit was not told; nor is a service removed with its file.
    claimed=(
        ("netplan.yaml", "network", "ethernets", "eth*"),
        ("netplan.yaml", "network", "vrfs"),
        ("chrony.conf",),
        ("rsyslog.conf",),
        ("snmpd.conf",),
    ),
)
