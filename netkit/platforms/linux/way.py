"""How changes get onto a GPU host, and what that costs."""

from netkit.platforms.change import NOTHING, Way
from netkit.platforms.compare import Situation

# File → what remains to be done once Ansible has put it in place.
COSTS = {
    "netplan.yaml": "networkd sets up rails whose settings change, one after the other; the others notice nothing",
    "70-netkit-rails.rules": "udev rules: names of interfaces change with the next boot or driver reload",
    "netkit-nic-qos": "NIC QoS: a moment of loss on each rail whose settings change",
    "mlxconfig.conf": "firmware settings hold after mlxfwreset or a reboot; drain the host before",
    "nccl.conf": "jobs that run keep what they started with",
}


def way(situation: Situation) -> Way:
    """Return how the changes are made: by the playbooks, in check mode first, in batches of hosts."""
    if not situation.changes:
        return Way(NOTHING)
    changed = dict.fromkeys(change.path[0] for change in situation.changes)
    steps = (
        "hosts-apply in check mode",
        "hosts-apply, the same rail on all hosts of a batch, under a timer",
        "links, addresses and routes verified",
    )
    return Way("ansible", steps, tuple(COSTS[file] for file in changed if file in COSTS))
