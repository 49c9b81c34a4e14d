"""BGP sessions, of drivers that tell them by interface."""

from netkit.facts import Absent, Facts
from netkit.facts.routing import BgpSession
from netkit.platforms.napalm.facts.getter import SESSIONS
from netkit.platforms.shown import Shown, flag, named, number, parsed, table, whole


def sessions(shown: str, ports: tuple[str, ...]) -> Facts:
    """Return the sessions that run on ports in use; those that are told by address only are nobody's."""
    peers = {name: one for _, vrf in named(parsed(shown)) for name, one in named(vrf, "peers")}
    found = {
        name: session
        for name, one in peers.items()
        if (name in ports or not ports) and (session := _session(one)) is not None
    }
    if found:
        return Facts(sessions=found)
    why = "tells sessions by address, and those of a fabric run by interface" if peers else "shows no sessions"
    return Facts(sessions=Absent(f"{SESSIONS} {why}"))


def _session(shown: Shown) -> BgpSession | None:
    is_up = flag(shown.get("is_up"))
    if is_up is None:
        return None
    uptime = number(shown.get("uptime"))
    families = dict(named(shown, "address_family"))
    ipv4 = table(families.get("ipv4", {}))
    return BgpSession(
        is_established=is_up,
        peer_asn=whole(shown.get("remote_as")) or None,
        received_prefixes=whole(ipv4.get("received_prefixes")),
        sent_prefixes=whole(ipv4.get("sent_prefixes")),
        uptime_s=uptime if is_up and uptime is not None and uptime >= 0 else None,
    )
