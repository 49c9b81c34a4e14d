"""FRR's configuration of a SONiC switch in split mode: reading it, and writing it without removing what is not ours."""

from collections.abc import Iterator

from netkit.platforms.frr.model import FRR_CONF, ROUTING
from netkit.platforms.frr.staging import foreign, without_left
from netkit.platforms.ownership import LEFT, Ownership, declared

OWNERSHIP = declared("sonic")
SPLIT_MODES = frozenset({"split", "split-unified"})
DRAIN = " bgp graceful-shutdown"
ENDS = ("!", "exit", "end")
OF_VTYSH = ("frr version", "hostname", "service integrated-vtysh-config")
# The container adds these to frr.conf itself; not every FRR release shows them.
FORWARDING = ("no fpm ", "fpm ", "no zebra nexthop ")


def shown(text: str) -> str:
    """Strip the header of `show running-config`."""
    head, mark, rest = text.partition("\n!\n")
    return rest if mark and "Current configuration" in head else text


def running(text: str, forwarding: str, *, is_draining: bool = False) -> str:
    """Return the running configuration with the zebra lines of frr.conf, and without netkit's own drain."""
    lines = [line for line in shown(text).splitlines() if not (is_draining and line == DRAIN)]
    saved = (line for line in map(str.rstrip, forwarding.splitlines()) if line.startswith(FORWARDING))
    missing = [line for line in dict.fromkeys(saved) if line not in lines]
    return "\n".join([*missing, *lines]) + "\n"


def whole(running_text: str, rendered: str, ownership: Ownership = OWNERSHIP) -> str:
    """Add what runs and is not netkit's to the intended file: frr-reload removes what a file lacks."""
    intended = without_left(rendered, ownership)
    known = ROUTING.parse(intended, FRR_CONF)
    others = []
    for block in _blocks(shown(running_text)):
        entries = ROUTING.parse(block, FRR_CONF)
        is_known = entries.keys() <= known.keys()
        if entries and not is_known and all(ownership.standing(path) < 0 for path in entries):
            others.append(block)
        elif any(ownership.standing(path) == LEFT for path in entries):
            others.append("".join(foreign(block, intended, ownership)).rstrip())
    lines = intended.rstrip().removesuffix("\nend").rstrip()
    return "\n".join([lines, *(f"!\n{block}" for block in others), "!", "end"]) + "\n"


def _blocks(text: str) -> Iterator[str]:
    """Yield each top-level line with the lines below it."""
    block: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            block.append(line)
        elif line == "exit":
            block.append(line)
            yield "\n".join(block)
            block = []
        else:
            if block:
                yield "\n".join(block)
            block = [line] if line.strip() and line not in ENDS and not line.startswith(OF_VTYSH) else []
    if block:
        yield "\n".join(block)
