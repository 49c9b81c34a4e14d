"""A drain of netkit's own: BGP graceful shutdown in what runs, remembered where a reboot forgets it.

The file that remembers it is what FRR is told again after it has been reloaded.
"""

from netkit.platforms.frr.model import GRAMMAR
from netkit.platforms.written import lines

WORDS = "bgp graceful-shutdown"
ROUTER = "router bgp "


def begun(running: str) -> str:
    """Return what drains every router that is not drained by its configuration; empty when none is left."""
    routers: dict[str, bool] = {}
    for line in lines(running, GRAMMAR):
        if not line.headers and line.text.startswith(ROUTER):
            routers.setdefault(line.text, False)
        elif line.text == WORDS and len(line.headers) == 1:
            routers[line.headers[0]] = True
    return "".join(f"{router}\n {WORDS}\nexit\n" for router, is_drained in routers.items() if not is_drained)


def ended(own: str, intended: str) -> str:
    """Return what ends a drain; a router that is drained by its configuration by now stays so."""
    kept = {line.headers[0] for line in lines(intended, GRAMMAR) if line.text == WORDS and line.headers}
    routers = [row for row in own.splitlines() if row.startswith(ROUTER)]
    return "".join(f"{router}\n no {WORDS}\nexit\n" for router in routers if router not in kept)
