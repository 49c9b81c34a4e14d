"""How changes get onto a Linux switch with FRR, and what that costs."""

from collections.abc import Iterator

from netkit.platforms.change import NOTHING, Constraint, Strategy
from netkit.platforms.compare import Situation

# File → how it takes effect, and what that costs beside the change itself.
STEPS = {
    "frr.conf": ("frr-reload.py brings FRR to the file, line by line", ""),
    "netplan.yaml": ("write netplan.yaml, netplan apply", "netplan apply: interfaces whose settings change start over"),
    "sysctl.conf": ("write sysctl.conf, load it", ""),
    "daemons": ("write daemons, restart FRR", "daemons: FRR restarts, and every BGP session with it"),
    "lldpd.conf": ("write lldpd.conf, restart lldpd", ""),
    "chrony.conf": ("write chrony.conf, restart chrony", ""),
    "rsyslog.conf": ("write rsyslog.conf, restart rsyslog", ""),
    "snmpd.conf": ("write snmpd.conf, restart snmpd", ""),
}
KEPT = "sysctl.conf: the kernel keeps what is no longer in it until the switch restarts"


def way(situation: Situation) -> Strategy:
    """Return how the changes are made: file by file, the interfaces before the routing."""
    if not situation.changes:
        return Strategy(NOTHING)
    changed = {change.path[0] for change in situation.changes}
    order = ("netplan.yaml", "sysctl.conf", "daemons", "frr.conf", *STEPS)
    files = [file for file in dict.fromkeys(order) if file in changed]
    costs = [STEPS[file][1] for file in files if STEPS[file][1]]
    if any(change.is_removal and change.path[0] == "sysctl.conf" for change in situation.changes):
        costs.append(KEPT)
    return Strategy("files", tuple(STEPS[file][0] for file in files), tuple(costs))


def limits() -> Iterator[Constraint]:
    """Yield what changes cost, and what is refused."""
    for file, (step, cost) in STEPS.items():
        yield Constraint(file, cost.partition(": ")[2] or step)
