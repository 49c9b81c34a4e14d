"""What of an NVUE configuration is netkit's."""

from netkit.platforms.ownership import Ownership

# What the templates render, as whole branches: a port or a server that is no longer intended goes away. Not here, so
# left alone: aaa, api, ssh-server, control-plane ACLs, config, security, telemetry, VRFs that netkit does not render.
OWNERSHIP = Ownership(
    owned=(
        ("bridge", "domain", "br_default"),
        ("interface",),
        ("qos",),
        ("router", "adaptive-routing"),
        ("router", "bfd"),
        ("router", "bgp"),
        ("router", "policy"),
        ("service", "dns", "mgmt"),
        ("service", "lldp"),
        ("service", "ntp", "mgmt"),
        ("service", "snmp-server"),
        ("service", "syslog", "mgmt"),
        ("system", "date-time"),
        ("system", "dns"),
        ("system", "hostname"),
        ("system", "lldp"),
        ("system", "ntp"),
        ("system", "snmp-server"),
        ("system", "syslog"),
        ("system", "timezone"),
        ("vrf", "default", "router", "bgp"),
    ),
    # How the switch is reached must not depend on what netkit was not told.
    claimed=(
        ("interface", "eth*"),
        ("system", "aaa", "user", "*"),
        ("vrf", "mgmt", "router", "static"),
    ),
)
