"""What changing a file of a GPU host puts at risk. All derived, on the careful side: nothing was measured on a host."""

from netkit.platforms.change import Risk
from netkit.platforms.risk import RiskTable, Rule

OURS = "derived"
RAILS = ("netplan.yaml", "network", "ethernets")
SETTINGS = (
    "PRIORITY",
    "PFC",
    "DSCP_MAP",
    "PRIORITY_TO_CLASS",
    "CLASS_ALGORITHM",
    "CLASS_WEIGHT",
    "CLASSES_IN_USE",
)

RISKS = RiskTable(
    objects=((*RAILS, "*"), ("10-*.network",), ("netplan.yaml",)),
    in_use=(
        (*RAILS, "*", "addresses"),
        ("10-*.network", "[Network]", "Address"),
        ("10-*.network", "[[]Match]", "Name"),
    ),
    rules=(
        Rule((*RAILS, "*", "mtu"), Risk.PORT, "the NIC goes down and up", OURS),
        Rule((*RAILS, "*", "routes"), Risk.LOW, "a destination that was not reachable", OURS, when="added"),
        Rule((*RAILS, "*", "routes"), Risk.SESSION, "flows of the rail may break", OURS),
        Rule((*RAILS, "*"), Risk.SESSION, "the rail is set up anew", OURS),
        Rule(("netplan.yaml",), Risk.SESSION, "rails are set up anew", OURS),
        Rule(("10-*.network", "[[]Link]", "MTUBytes"), Risk.PORT, "the NIC goes down and up", OURS),
        Rule(("10-*.network",), Risk.SESSION, "the rail is set up anew", OURS),
        Rule(("10-*.link",), Risk.LOW, "holds from the next boot or driver reload", OURS),
        Rule(("oif.conf",), Risk.SESSION, "lookups by interface may find no route for a moment", OURS),
        Rule(("90-netkit-rails.conf",), Risk.LOW, source=OURS),
        *(Rule(("netkit-nic-qos", name), Risk.BUFFER, "the NIC lays out its buffers anew", OURS) for name in SETTINGS),
        Rule(("netkit-nic-qos",), Risk.LOW, "the settings are applied again", OURS),
        Rule(("netkit-nic-qos@.service",), Risk.LOW, source=OURS),
        Rule(("70-netkit-rails.rules",), Risk.LOW, "holds from the next boot or driver reload", OURS),
        Rule(("nccl.conf",), Risk.LOW, "holds for jobs that start afterwards", OURS),
        Rule(
            ("mlxconfig.conf",), Risk.LOW, "holds after a firmware reset or a reboot, which netkit leaves to you", OURS
        ),
    ),
)
