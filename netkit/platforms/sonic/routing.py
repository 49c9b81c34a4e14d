"""FRR's configuration on a SONiC switch in split mode: as vtysh shows it, and as a file that keeps what is not ours."""

from collections.abc import Iterator

from netkit.platforms.config import Config
from netkit.platforms.frr.model import FRR_CONF, ROUTING
from netkit.platforms.ownership import NOT_OURS, declared

OWNERSHIP = declared("sonic")
SPLIT_MODES = frozenset({"split", "split-unified"})
DRAIN = " bgp graceful-shutdown"
ENDS = ("!", "exit", "end")
OF_VTYSH = ("frr version", "hostname", "service integrated-vtysh-config")
# The container adds these to frr.conf itself; not every FRR prints them back.
FORWARDING = ("no fpm ", "fpm ", "no zebra nexthop ")


def shown(text: str) -> str:
    """Return what `show running-config` prints without what vtysh says before it."""
    head, mark, rest = text.partition("\n!\n")
    return rest if mark and "Current configuration" in head else text


def running(text: str, forwarding: str, *, is_draining: bool = False) -> str:
    """Return the running configuration, with the lines about the switch chip, and without a drain of netkit's own."""
    lines = [line for line in shown(text).splitlines() if not (is_draining and line == DRAIN)]
    wanted = (line for line in map(str.rstrip, forwarding.splitlines()) if line.startswith(FORWARDING))
    missing = [line for line in dict.fromkeys(wanted) if line not in lines]
    return "\n".join([*missing, *lines]) + "\n"


def whole(running_text: str, intended: str) -> str:
    """Return the intended file with what runs beside it and is not netkit's: frr-reload removes what a file lacks."""
    known = ROUTING.parse(intended, FRR_CONF)
    kept = [block for block in _blocks(shown(running_text)) if _is_foreign(block, known)]
    lines = intended.rstrip().removesuffix("\nend").rstrip()
    return "\n".join([lines, *(f"!\n{block}" for block in kept), "!", "end"]) + "\n"


def _is_foreign(block: str, known: Config) -> bool:
    entries = ROUTING.parse(block, FRR_CONF)
    is_known = entries.keys() <= known.keys()
    return bool(entries) and not is_known and all(OWNERSHIP.standing(path) == NOT_OURS for path in entries)


def _blocks(text: str) -> Iterator[str]:
    """Yield the lines of the top level, each with what stands below it."""
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
