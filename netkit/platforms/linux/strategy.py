"""How changes are applied to a GPU host, and their risk."""

from collections.abc import Iterator

from netkit.platforms.change import NOTHING, Constraint, Risk, RiskTable, Rule, Strategy
from netkit.platforms.compare import Situation

DERIVED = "derived"
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
    objects=((*RAILS, "*"), ("10-*.network",), ("15-netkit-*.network",), ("netplan.yaml",)),
    in_use=(
        (*RAILS, "*", "addresses"),
        ("10-*.network", "[Network]", "Address"),
        ("10-*.network", "[[]Match]", "Name"),
        ("15-netkit-*.network", "[[]Network]", "Address"),
    ),
    rules=(
        Rule((*RAILS, "*", "mtu"), Risk.PORT, "the NIC goes down and up", DERIVED),
        Rule((*RAILS, "*", "routes"), Risk.LOW, "a destination that was unreachable before", DERIVED, when="added"),
        Rule((*RAILS, "*", "routes"), Risk.SESSION, "flows of the rail may break", DERIVED),
        Rule((*RAILS, "*"), Risk.SESSION, "the rail is reconfigured", DERIVED),
        Rule(("netplan.yaml",), Risk.SESSION, "rails are reconfigured", DERIVED),
        Rule(("10-*.network", "[[]Link]", "MTUBytes"), Risk.PORT, "the NIC goes down and up", DERIVED),
        Rule(("10-*.network",), Risk.SESSION, "the rail is reconfigured", DERIVED),
        Rule(("15-netkit-*.netdev",), Risk.PORT, "the LAG goes down and up", DERIVED),
        Rule(("15-netkit-*.network", "[[]Link]", "MTUBytes"), Risk.PORT, "the interface goes down and up", DERIVED),
        Rule(("15-netkit-*.network",), Risk.SESSION, "the interface is reconfigured", DERIVED),
        Rule(("10-*.link",), Risk.LOW, "takes effect with the next boot or driver reload", DERIVED),
        Rule(("oif.conf",), Risk.SESSION, "lookups by interface may briefly find no route", DERIVED),
        Rule(("90-netkit-rails.conf",), Risk.LOW, source=DERIVED),
        *(Rule(("netkit-nic-qos", name), Risk.BUFFER, "the NIC reallocates its buffers", DERIVED) for name in SETTINGS),
        Rule(("netkit-nic-qos",), Risk.LOW, "the settings are applied again", DERIVED),
        Rule(("netkit-nic-qos@.service",), Risk.LOW, source=DERIVED),
        Rule(("70-netkit-rails.rules",), Risk.LOW, "takes effect with the next boot or driver reload", DERIVED),
        Rule(("nccl.conf",), Risk.LOW, "applies to jobs that start afterwards", DERIVED),
        Rule(
            ("mlxconfig.conf",),
            Risk.LOW,
            "takes effect after a firmware reset or a reboot, which netkit leaves to you",
            DERIVED,
        ),
        Rule(("nicctl.conf",), Risk.LOW, "takes effect when you run its commands", DERIVED),
    ),
)


# File → side effect, or what remains to be done after Ansible has installed it.
COSTS = {
    "netplan.yaml": "networkd reconfigures rails with changed settings, one after the other; others are not affected",
    "70-netkit-rails.rules": "udev rules: names of interfaces change with the next boot or driver reload",
    "netkit-nic-qos": "NIC QoS: brief packet loss on each rail with changed settings",
    "mlxconfig.conf": "firmware settings take effect after mlxfwreset or a reboot; drain the host before",
    "nicctl.conf": "QoS of AMD Pollara NICs changes when you run the commands of nicctl.conf",
    "nccl.conf": "running jobs keep the settings they started with",
}


def strategy(situation: Situation) -> Strategy:
    """Apply the changes with the playbooks, in check mode first, in batches of hosts."""
    if not situation.changes:
        return Strategy(NOTHING)
    changed = dict.fromkeys(change.path[0] for change in situation.changes)
    has_rails = any(path[0] == "netplan.yaml" or path[0].endswith(".network") for path in situation.running)
    order = (
        "rail by rail, the same rail on all hosts of a batch; all together where a host carries no traffic"
        if has_rails
        else "all rails together where none has an address, else rail by rail"
    )
    steps = (
        "hosts-apply in check mode",
        f"hosts-apply under a timer, {order}",
        "links, addresses and routes verified",
    )
    return Strategy("ansible", steps, tuple(COSTS[file] for file in changed if file in COSTS))


def constraints() -> Iterator[Constraint]:
    """Yield the side effects by file."""
    for file, cost in COSTS.items():
        yield Constraint(file, cost)
