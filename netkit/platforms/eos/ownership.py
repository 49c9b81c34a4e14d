"""What of an EOS configuration is netkit's."""

from netkit.platforms.ownership import Ownership

OWNERSHIP = Ownership(
    owned=(
        ("service routing protocols model",),
        ("lldp *",),
        ("logging *",),
        ("platform trident mmu *",),
        ("hostname",),
        ("ip name-server *",),
        ("qos profile *",),
        ("snmp-server *",),
        ("no snmp-server *",),
        ("clock timezone",),
        ("vlan [0-9]*",),
        ("vlan internal order",),
        ("interface Ethernet*",),
        ("interface Loopback0",),
        ("interface Vlan*",),
        ("mac address-table aging-time",),
        ("group interface *",),
        ("ip routing*",),
        ("ip hardware fib load-balance*",),
        ("ip prefix-list *",),
        ("ipv6 unicast-routing",),
        ("maintenance",),
        ("ntp *",),
        ("qos map *",),
        ("priority-flow-control pause watchdog *",),
        ("route-map *",),
        ("router bfd",),
        ("router bgp",),
    ),
    # How the switch is reached, and by whom, must not depend on what netkit was not told.
    claimed=(
        ("username *",),
        ("aaa authorization exec *",),
        ("vrf instance *",),
        ("management api http-commands",),
        ("management ssh",),
        ("interface Management*",),
        ("no ip routing vrf *",),
        ("ip route *",),
    ),
)
