"""BGP sessions, with what BFD and a drain say of them."""

from collections.abc import Iterator

from netkit.facts import Facts
from netkit.facts.routing import BgpSession
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
    bfd, bgp = dict(_bfd(document(bfd_text))), tree(bgp_text)
    is_draining = None if bgp is None else bool(switched(bgp.get("graceful-shutdown")))
    sessions = {name: _session(found, bfd.get(name), is_draining=is_draining) for name, found in objects(shown)}
    return Facts(sessions=sessions)


def _bfd(found: object) -> Iterator[tuple[str, bool]]:
    """Yield whether BFD is up, by interface. NVUE lists peers by address or discriminator, FRR one by one."""
    peers = found if isinstance(found, list) else [peer for _, peer in objects(found)]
    for peer in peers:
        interface = word(peer, "interface", "local-interface") if isinstance(peer, dict) else ""
        if interface:
            yield interface, word(peer, "status", "state", "session-state").lower() == "up"


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
