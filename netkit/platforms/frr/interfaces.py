"""What the kernel makes of a netplan file: systemd-networkd takes a while, and says nothing when it fails."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netkit.platforms.change import Change
from netkit.platforms.frr.files import NETPLAN
from netkit.platforms.frr.model import MODEL

KINDS = ("ethernets", "bridges")
MTU, ADDRESSES = "mtu", "addresses"
OURS = re.compile(r"lo|swp[\w.-]*", re.ASCII)


def left(running: str, intended: str) -> list[str]:
    """Return the ports that one netplan file has and another has not."""
    return sorted(port for port in _ports(running) - _ports(intended) if OURS.fullmatch(port))


def _ports(text: str) -> set[str]:
    found = MODEL.parse({NETPLAN: text}) if text else {}
    return {path[3] for path in found if path[1:3] == ("network", KINDS[0]) and len(path) > 3}


def differing(changes: Iterable[Change], links: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what changes of addresses and MTUs the interfaces do not show; without a carrier they need not."""
    shown = {str(link.get("ifname", "")): link for link in links if "LOWER_UP" in link.get("flags", [])}
    for change in changes:
        file, _, kind, name, key, *rest = (*change.path, *[""] * 5)[:6]
        if file == NETPLAN and kind in KINDS and name in shown and not _is_shown(change, key, rest[0], shown[name]):
            yield f"{name} {key}"


def _is_shown(change: Change, key: str, item: str, link: Mapping[str, Any]) -> bool:
    if key == MTU:
        return change.intended is None or str(link.get("mtu")) == change.intended
    if key == ADDRESSES and item:
        is_there = item.removeprefix("- ") in set(_addresses(link))
        return is_there != change.is_removal
    return True


def _addresses(link: Mapping[str, Any]) -> Iterator[str]:
    for one in link.get("addr_info", []):
        yield f"{one.get('local')}/{one.get('prefixlen')}"
