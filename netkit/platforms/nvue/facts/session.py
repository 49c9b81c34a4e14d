"""BGP sessions, with what BFD and a drain say of them."""

from collections.abc import Iterator

from netkit.facts import Facts
from netkit.facts.host import BgpSession
from netkit.platforms.nvue.facts.shown import (
    Shown,
    document,
    duration_s,
    objects,
    switched,
    tree,
    under,
    unread,
    whole,
    word,
)
from netkit.platforms.view import View

NEIGHBORS = "nv show vrf default router bgp neighbor"
BFD = "nv show vrf default router bfd peers -o json"
BFD_BEFORE = "sudo -n vtysh -c 'show bfd peers json'"
"""What tells of BFD in releases whose NVUE does not."""
BGP = "nv show router bgp --applied -o json"


def view(*, is_brief: bool, has_bfd: bool) -> View:
    """Return the view; releases that show neighbours in brief are asked for detail."""
    neighbors = f"{NEIGHBORS}{' --view=detail' if is_brief else ''} -o json"
    return View((neighbors, BFD if has_bfd else BFD_BEFORE, BGP), frozenset({"sessions"}), parse)


def parse(neighbor_text: str, bfd_text: str, bgp_text: str) -> Facts:
    """Return the sessions by the interface they run on."""
    shown = tree(neighbor_text)
    if shown is None:
        return Facts(sessions=unread(NEIGHBORS, neighbor_text))
    bfd, bgp = document(bfd_text), tree(bgp_text)
    alive, unlisted = dict(_alive(bfd)), _unlisted(bfd)
    is_draining = None if bgp is None else bool(switched(bgp.get("graceful-shutdown")))
    sessions = {
        name: _session(found, alive.get(name, unlisted), is_draining=is_draining) for name, found in objects(shown)
    }
    return Facts(sessions=sessions)


def _peers(found: object) -> list[object]:
    """Return the peers of BFD: NVUE lists them by address or discriminator, FRR one by one."""
    return [*found.values()] if isinstance(found, dict) else found if isinstance(found, list) else []


def _alive(found: object) -> Iterator[tuple[str, bool]]:
    """Yield whether BFD is up, by interface."""
    for peer in _peers(found):
        if isinstance(peer, dict) and (interface := _interface(peer)):
            yield interface, word(peer, "status", "state", "session-state").lower() == "up"


def _unlisted(found: object) -> bool | None:
    """Return whether BFD is up where no peer is listed: it is not, if all that are listed have an interface."""
    return False if isinstance(found, dict | list) and all(map(_interface, _peers(found))) else None


def _interface(peer: object) -> str:
    return word(peer, "interface", "local-interface") if isinstance(peer, dict) else ""


def _session(found: Shown, is_bfd_up: bool | None, *, is_draining: bool | None) -> BgpSession:
    state = word(found, "session-state", "state").lower()
    family = under(found, "address-family", "ipv4-unicast")
    is_established = state == "established"
    own = switched(found.get("graceful-shutdown"))
    return BgpSession(
        is_established=is_established,
        state=state,
        peer_asn=whole(found.get("remote-as")),
        received_prefixes=whole(family.get("rx-prefix")),
        sent_prefixes=whole(family.get("tx-prefix")),
        uptime_s=duration_s(found.get("uptime")) if is_established else None,
        drops=whole(found.get("connections-dropped")),
        is_bfd_up=is_bfd_up,
        is_draining=True if own else is_draining if is_draining is not None else own,
    )
