"""Who is at the other end of each cable, by LLDP."""

from netkit.facts import Facts
from netkit.facts.device import Neighbor
from netkit.platforms.nvue.facts.link import PORT
from netkit.platforms.nvue.facts.shown import Shown, duration_s, objects, tree, under, unread, word
from netkit.platforms.view import View

COMMAND = "nv show interface lldp -o json"


def parse(text: str) -> Facts:
    """Return the neighbours of each port, the freshest first: NVUE keeps showing who was there before."""
    shown = tree(text)
    if shown is None:
        return Facts(neighbors=unread(COMMAND, text))
    found = {name: _ends(under(port, "lldp", "neighbor")) for name, port in objects(shown) if PORT.fullmatch(name)}
    return Facts(neighbors={name: ends for name, ends in found.items() if ends})


def _ends(neighbors: Shown) -> tuple[Neighbor, ...]:
    ends = [_neighbor(name, found) for name, found in objects(neighbors)]
    return tuple(sorted(ends, key=lambda end: (end.age_s is None, end.age_s or 0, end.system)))


def _neighbor(name: str, found: Shown) -> Neighbor:
    port = under(found, "port")
    return Neighbor(
        system=word(under(found, "chassis"), "system-name") or name,
        port=word(port, "name"),
        description=word(port, "description"),
        age_s=duration_s(found.get("age")),
    )


VIEW = View((COMMAND,), frozenset({"neighbors"}), parse)
