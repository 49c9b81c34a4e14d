"""`nv action …`: clearing counters."""

from collections.abc import Sequence

from netkit.lab.personalities.nvue.show.look import MISSING, Look
from netkit.lab.personalities.nvue.system import CommandError, System
from netkit.lab.personalities.nvue.usage import USAGE_EXIT
from netkit.lab.personality import Call

CLEARED = (
    "counters",
    "counters qos",
    "qos roce counters",
    "qos pfc-watchdog deadlock-count",
    "qos buffer",
)


def action(system: System, call: Call, given: Sequence[str]) -> int:
    """Answer one `nv action` command."""
    if tuple(given) == ("clear", "interface", "counters"):
        system.node.clear_counters()
    elif tuple(given[:2]) == ("clear", "interface") and " ".join(given[3:]) in CLEARED:
        if given[2] not in Look(system).ports:
            raise CommandError(MISSING)
        system.node.clear_counters(given[2])
    else:
        raise CommandError(f"Error: invalid choice: '{' '.join(given)}'\n", USAGE_EXIT)
    call.out("Action succeeded\n")
    return 0
