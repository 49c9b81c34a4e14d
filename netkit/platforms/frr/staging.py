"""What is put on a switch: merged files, the lines of a drain, and how interfaces show a change."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netkit.platforms.change import Change
from netkit.platforms.compare import apply
from netkit.platforms.config import Files
from netkit.platforms.config_lines import ConfigLine, lines
from netkit.platforms.frr.files import DAEMONS, FRR_CONF, NETPLAN
from netkit.platforms.frr.model import GRAMMAR, MODEL

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


# What FRR prints of itself and of the kernel: nobody's configuration.
STATE = ("frr version", "frr defaults", "ip forwarding", "ipv6 forwarding", "no ip forwarding", "no ipv6 forwarding")
CLOSERS = {"address-family": "exit-address-family", "vrf": "exit-vrf"}


def merged(changes: Iterable[Change], running: Files, intended: Files) -> dict[str, str | None]:
    """Return the files that change, whole; None for one that is not to be there."""
    changes = tuple(changes)
    changed = {change.path[0] for change in changes}
    if DAEMONS in changed:  # FRR starts anew, from its file
        changed.add(FRR_CONF)
    files: dict[str, str | None] = {file: intended.get(file) for file in changed}
    for file in files:
        if file == FRR_CONF:
            routing = intended.get(file, "")
            files[file] = routing + "".join(_foreign(running.get(file, ""), routing))
        elif _has_foreign(file, running, intended):
            only = apply(MODEL.parse({file: running[file]}), (one for one in changes if one.path[0] == file))
            files[file] = MODEL.text(only).get(file, "" if file in intended else None)
    return files


def _has_foreign(file: str, running: Files, intended: Files) -> bool:
    """Whether there is something in a file that netkit was not told of and does not own."""
    have, want = (MODEL.parse({file: files[file]} if file in files else {}) for files in (running, intended))
    ours = MODEL.ownership.restrict(have, MODEL.ownership.claims(want))
    return bool(have.keys() - ours.keys() - want.keys())


def _foreign(running: str, intended: str) -> Iterator[str]:
    """Yield the lines of a running configuration that are not netkit's, with the sections they stand in."""
    wanted = {path for line in lines(intended, GRAMMAR, (FRR_CONF,)) for path in line.paths}
    every = tuple(lines(running, GRAMMAR, (FRR_CONF,)))
    sections = {line.headers for line in every}
    above: tuple[str, ...] = ()
    for line in every:
        if (*line.headers, line.text) in sections or not _is_foreign(line, wanted):
            continue
        yield from _moved(above, line.headers)
        yield f"{' ' * len(line.headers)}{line.text}\n"
        above = line.headers
    yield from _moved(above, ())


def _is_foreign(line: ConfigLine, wanted: set[tuple[str, ...]]) -> bool:
    is_ours = any(MODEL.ownership.standing(path) >= 0 or path in wanted for path in line.paths)
    return bool(line.paths) and not is_ours and not line.text.startswith(STATE)


def _moved(above: tuple[str, ...], headers: tuple[str, ...]) -> Iterator[str]:
    """Yield what leads from one section to another."""
    if above == headers:
        return
    for depth in reversed(range(len(above))):
        yield f"{' ' * depth}{CLOSERS.get(above[depth].split(' ')[0], 'exit')}\n"
    for depth, header in enumerate(headers):
        yield f"{' ' * depth}{header}\n"


WORDS = "bgp graceful-shutdown"
ROUTER = "router bgp "
NUMBER = re.compile(r"^router bgp \d+")


def drain_place(router: str) -> str:
    """Return a line without the AS number of its router, which a change may replace while the drain lasts."""
    return NUMBER.sub(ROUTER.rstrip(), router)


def drain_lines(running: str) -> str:
    """Return what drains every router that is not drained by its configuration; empty when none is left."""
    routers: dict[str, bool] = {}
    for line in lines(running, GRAMMAR):
        if not line.headers and line.text.startswith(ROUTER):
            routers.setdefault(line.text, False)
        elif line.text == WORDS and len(line.headers) == 1:
            routers[line.headers[0]] = True
    return "".join(f"{router}\n {WORDS}\nexit\n" for router, is_drained in routers.items() if not is_drained)


def undrain_lines(own: str, intended: str) -> str:
    """Return what ends a drain; a router that is drained by its configuration by now stays so."""
    found = list(lines(intended, GRAMMAR))
    now = {drain_place(line.text): line.text for line in found if not line.headers and line.text.startswith(ROUTER)}
    kept = {drain_place(line.headers[0]) for line in found if line.text == WORDS and line.headers}
    routers = [row for row in own.splitlines() if row.startswith(ROUTER) and drain_place(row) not in kept]
    return "".join(f"{now.get(drain_place(row), row)}\n no {WORDS}\nexit\n" for row in routers)
