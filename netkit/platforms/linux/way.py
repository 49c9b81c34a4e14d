"""How changes get onto a GPU host, and what that costs."""

from collections.abc import Iterator

from netkit.platforms.change import NOTHING, Constraint, Strategy
from netkit.platforms.compare import Situation

# File → what remains to be done once Ansible has put it in place.
COSTS = {
    "netplan.yaml": "networkd sets up rails whose settings change, one after the other; the others notice nothing",
    "70-netkit-rails.rules": "udev rules: names of interfaces change with the next boot or driver reload",
    "netkit-nic-qos": "NIC QoS: a moment of loss on each rail whose settings change",
    "mlxconfig.conf": "firmware settings hold after mlxfwreset or a reboot; drain the host before",
    "nccl.conf": "jobs that run keep what they started with",
}


def way(situation: Situation) -> Strategy:
    """Return how the changes are made: by the playbooks, in check mode first, in batches of hosts."""
    if not situation.changes:
        return Strategy(NOTHING)
    changed = dict.fromkeys(change.path[0] for change in situation.changes)
    has_rails = any(path[0] == "netplan.yaml" or path[0].endswith(".network") for path in situation.running)
    order = (
        "rail by rail, the same rail on all hosts of a batch; at once where a host carries no traffic"
        if has_rails
        else "all rails at once where none has an address, else rail by rail"
    )
    steps = (
        "hosts-apply in check mode",
        f"hosts-apply under a timer, {order}",
        "links, addresses and routes verified",
    )
    return Strategy("ansible", steps, tuple(COSTS[file] for file in changed if file in COSTS))


def limits() -> Iterator[Constraint]:
    """Yield what changes cost, and what is refused."""
    for file, cost in COSTS.items():
        yield Constraint(file, cost)
