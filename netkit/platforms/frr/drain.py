"""A drain of netkit's own: BGP graceful shutdown in what runs, remembered where a reboot forgets it.

The file that remembers it is what FRR is told again after it has been reloaded.
"""

import re

from netkit.platforms.frr.model import GRAMMAR
from netkit.platforms.written import lines

WORDS = "bgp graceful-shutdown"
ROUTER = "router bgp "
NUMBER = re.compile(r"^router bgp \d+")


def place(router: str) -> str:
    """Return a line without the AS number of its router, which a change may replace while the drain lasts."""
    return NUMBER.sub(ROUTER.rstrip(), router)


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
    found = list(lines(intended, GRAMMAR))
    now = {place(line.text): line.text for line in found if not line.headers and line.text.startswith(ROUTER)}
    kept = {place(line.headers[0]) for line in found if line.text == WORDS and line.headers}
    routers = [row for row in own.splitlines() if row.startswith(ROUTER) and place(row) not in kept]
    return "".join(f"{now.get(place(row), row)}\n no {WORDS}\nexit\n" for row in routers)
