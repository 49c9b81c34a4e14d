"""Ports as the kernel has them, and what it counts on them."""

import re
from collections.abc import Iterator, Mapping

from netkit.facts import Absent, Counters
from netkit.facts.device import Interface
from netkit.platforms.frr.facts.routing import configuration
from netkit.platforms.shown import Shown, parsed, rows, table, text, whole

NET = "/sys/class/net"
CABLED = frozenset({"", "veth"})
"""Kinds of interfaces that have a cable, or what a lab has instead. The speed of the latter says nothing."""
STATISTICS = {"bytes": "bytes", "packets": "packets", "errors": "errors", "drops": "dropped"}
FILES = {"carrier_changes": "carrier_changes", "link_downs": "carrier_down_count"}
DESCRIPTION = "description "
SPEED = re.compile(r"\d{1,9}", re.ASCII)
MBPS_PER_GBPS = 1000
UNREADABLE = Absent("ip does not show the links")


def ports(links: str) -> dict[str, Shown]:
    """Return the links that are ports."""
    found = {text(link.get("ifname")): link for link in rows(parsed(links))}
    return {name: link for name, link in found.items() if name and _is_port(link)}


def _is_port(link: Shown) -> bool:
    return text(link.get("link_type")) == "ether" and _kind(link) in CABLED


def _kind(link: Shown) -> str:
    return text(table(link, "linkinfo").get("info_kind"))


def interfaces(
    found: Mapping[str, Shown], files: Mapping[str, str], routing: str, fec: Mapping[str, str]
) -> Mapping[str, Interface] | Absent:
    """Return the ports."""
    said = dict(_descriptions(routing))
    return {
        name: _interface(link, files.get(f"{NET}/{name}/speed", ""), said.get(name, ""), fec.get(name, ""))
        for name, link in found.items()
    } or UNREADABLE


def _interface(link: Shown, speed: str, description: str, fec: str) -> Interface:
    told = link.get("flags")
    flags = {flag for flag in told if isinstance(flag, str)} if isinstance(told, list) else None
    speed_mbps = int(speed) if SPEED.fullmatch(speed) and not _kind(link) else 0
    return Interface(
        is_up=None if flags is None else {"UP", "LOWER_UP"} <= flags,
        is_enabled=None if flags is None else "UP" in flags,
        speed_gbps=speed_mbps / MBPS_PER_GBPS if speed_mbps else None,
        mtu_bytes=whole(link.get("mtu")),
        fec=fec,
        mac=text(link.get("address")),
        description=description or text(link.get("ifalias")),
    )


def _descriptions(routing: str) -> Iterator[tuple[str, str]]:
    for line in configuration(routing):
        if line.text.startswith(DESCRIPTION) and line.headers and line.headers[0].startswith("interface "):
            yield line.headers[0].split(" ")[1], line.text.removeprefix(DESCRIPTION)


def counters(found: Mapping[str, Shown], files: Mapping[str, str]) -> Counters | Absent:
    """Return what the kernel counts."""
    counted: dict[str, dict[str, int]] = {}
    for name, link in found.items():
        for counter, count in (*_statistics(link), *_files(name, files)):
            counted.setdefault(counter, {})[name] = count
    return counted or UNREADABLE


def _statistics(link: Shown) -> Iterator[tuple[str, int]]:
    for way in ("rx", "tx"):
        told = table(link, "stats64", way)
        for name, key in STATISTICS.items():
            if (count := whole(told.get(key))) is not None:
                yield f"{way}_{name}", count


def _files(port: str, files: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for counter, file in FILES.items():
        if (count := whole(files.get(f"{NET}/{port}/{file}"))) is not None:
            yield counter, count
