"""Interfaces of rail NICs, and the addresses they have."""

from collections.abc import Mapping, Sequence
from typing import Any

from netkit.facts import Absent
from netkit.facts.system import Interface
from netkit.platforms.linux.facts.reading import document, members, number, whole, word
from netkit.platforms.linux.facts.tree import Card, Tree

UNREADABLE = Absent("ip address, or the files below /sys, could not be read")


def links(text: str) -> dict[str, Mapping[str, Any]] | None:
    """Return what `ip -j address` printed, by interface; None when it cannot be read."""
    found = document(text)
    if not isinstance(found, list):
        return None
    return {word(link, "ifname"): link for link in members(found) if word(link, "ifname")}


def interfaces(
    told: Mapping[str, Mapping[str, Any]] | None, tree: Tree, cards: Sequence[Card], fec: Mapping[str, str]
) -> Mapping[str, Interface] | Absent:
    """Return the interfaces of the NICs that are there."""
    if told is None or not tree.files:
        return UNREADABLE
    return {
        card.interface: _interface(told[card.interface], tree.text(f"{card.net}/speed"), fec.get(card.interface, ""))
        for card in cards
        if card.interface in told
    }


def _interface(link: Mapping[str, Any], speed: str, fec: str) -> Interface:
    told = link.get("flags")
    flags = set(map(str, told)) if isinstance(told, list) else None
    speed_mbps = whole(speed)  # -1 while there is no link
    return Interface(
        is_up=None if flags is None else {"UP", "LOWER_UP"} <= flags,
        is_enabled=None if flags is None else "UP" in flags,
        speed_gbps=speed_mbps / 1000 if speed_mbps else None,
        mtu_bytes=whole(link.get("mtu")),
        fec=fec,
        mac=word(link, "address"),
        description=word(link, "ifalias"),
    )


def addresses(told: Mapping[str, Mapping[str, Any]] | None) -> dict[str, tuple[str, ...]]:
    """Return the addresses of all interfaces, with prefix length."""
    return {name: _addresses(link) for name, link in (told or {}).items()}


def _addresses(link: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    for one in members(link.get("addr_info")):
        length = number(one.get("prefixlen"))
        if word(one, "local") and length is not None and word(one, "scope") != "link":
            found.append(f"{word(one, 'local')}/{length:.0f}")
    return tuple(found)
