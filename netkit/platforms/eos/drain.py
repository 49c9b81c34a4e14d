"""A drain of netkit's own: a maintenance unit around every BGP interface, under a name that nothing else has.

It runs and is never saved, so that a reboot ends it. The built-in unit System stays what the configuration says of it,
so that a drain that is intended is told from this one.
"""

from collections.abc import Iterator

from netkit.platforms.config import Config
from netkit.platforms.eos.model import GRAMMAR
from netkit.platforms.written import lines

UNIT = "NETKIT-DRAIN"
GROUP = f"group interface {UNIT}"
MAINTENANCE = "maintenance"
OWN = (GROUP, f"unit {UNIT}")
NEIGHBOR = "neighbor interface "
SYSTEM = (MAINTENANCE, "unit System", "quiesce")


def is_own(text: str) -> bool:
    """Whether a running configuration has netkit's drain."""
    return f"unit {UNIT}" in text


def is_intended(running: Config) -> bool:
    """Whether the whole switch is in maintenance by its configuration."""
    return SYSTEM in running


def begun(running: Config) -> list[str]:
    """Return the lines that drain; none when there is no neighbour to ask."""
    ports = [path[-1].removeprefix(NEIGHBOR) for path in running if path[-1].startswith(NEIGHBOR)]
    members = [f"interface {port}" for port in ports if port.startswith("Ethernet")]
    if not members:
        return []
    return [GROUP, *members, "exit", MAINTENANCE, f"unit {UNIT}", GROUP, "quiesce", "exit", "exit"]


def ended(text: str) -> list[str]:
    """Return the lines that end it; the section goes too when nothing else is in it."""
    is_alone = all(line.headers[:1] != (MAINTENANCE,) for line in lines(unseen(text), GRAMMAR))
    unit = [MAINTENANCE, f"unit {UNIT}", "no quiesce", "exit", f"no unit {UNIT}", "exit"]
    return [*unit, *([f"no {MAINTENANCE}"] if is_alone else []), f"no {GROUP}"]


def unseen(text: str) -> str:
    """Return a running configuration as it would be without netkit's drain."""
    return "".join(_kept(text)) if is_own(text) else text


def _kept(text: str) -> Iterator[str]:
    rows = text.splitlines(keepends=True)
    kept = list(_without(rows, OWN))
    is_empty = not any(row.startswith("   ") and row.strip() != "!" for row in _section(kept, MAINTENANCE))
    return _without(kept, (MAINTENANCE,)) if is_empty else iter(kept)


def _section(rows: list[str], head: str) -> Iterator[str]:
    is_in = False
    for row in rows:
        if not row.startswith(" "):
            is_in = row.strip() == head
        elif is_in:
            yield row


def _without(rows: list[str], heads: tuple[str, ...]) -> Iterator[str]:
    """Yield the rows without some sections; the mark before a section goes with it."""
    depth, marks = -1, list[str]()
    for row in rows:
        indent, words = len(row) - len(row.lstrip()), row.strip()
        if 0 <= depth < indent:
            continue
        depth = indent if words in heads and not (words == GROUP and indent) else -1
        if depth >= 0:
            marks = []
        elif words == "!":
            yield from marks
            marks = [row]
        else:
            yield from marks
            marks = []
            yield row
    yield from marks
