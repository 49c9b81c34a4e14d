"""Files to stage on a switch, the lines of a drain, and whether interfaces reflect a change."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netkit.platforms.change import Change
from netkit.platforms.compare import apply
from netkit.platforms.config import Files
from netkit.platforms.config_lines import lines
from netkit.platforms.frr.files import DAEMONS, FRR_CONF, NETPLAN
from netkit.platforms.frr.model import DATACENTER_GRAMMAR, GRAMMAR, MODEL
from netkit.platforms.ownership import LEFT, Ownership

KINDS = ("ethernets", "bridges")
MTU, ADDRESSES = "mtu", "addresses"
OURS = re.compile(r"lo|swp[\w.-]*", re.ASCII)


def left(running: str, intended: str) -> list[str]:
    """List the ports that only the first netplan file has."""
    return sorted(port for port in _ports(running) - _ports(intended) if OURS.fullmatch(port))


def _ports(text: str) -> set[str]:
    found = MODEL.parse({NETPLAN: text}) if text else {}
    return {path[3] for path in found if path[1:3] == ("network", KINDS[0]) and len(path) > 3}


def differing(changes: Iterable[Change], links: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield changes of addresses and MTUs that the interfaces do not reflect; those without a carrier are skipped."""
    up = {str(link.get("ifname", "")): link for link in links if "LOWER_UP" in link.get("flags", [])}
    for change in changes:
        file, _, kind, name, key, item = (*change.path, *[""] * 5)[:6]
        if file != NETPLAN or kind not in KINDS or name not in up:
            continue
        link, is_applied = up[name], True
        if key == MTU:
            is_applied = change.intended is None or str(link.get("mtu")) == change.intended
        elif key == ADDRESSES and item:
            addresses = {f"{one.get('local')}/{one.get('prefixlen')}" for one in link.get("addr_info", [])}
            is_applied = (item.removeprefix("- ") in addresses) != change.is_removal
        if not is_applied:
            yield f"{name} {key}"


# State of FRR and the kernel that FRR prints among its configuration.
STATE = ("frr version", "frr defaults", "ip forwarding", "ipv6 forwarding", "no ip forwarding", "no ipv6 forwarding")
CLOSERS = {"address-family": "exit-address-family", "vrf": "exit-vrf"}


def merged(changes: Iterable[Change], running: Files, intended: Files) -> dict[str, str | None]:
    """Build the complete text of each file that changes; None for a file to remove."""
    changes = tuple(changes)
    changed = {change.path[0] for change in changes}
    if DAEMONS in changed:  # FRR restarts, from its file
        changed.add(FRR_CONF)
    ownership = MODEL.ownership.on(intended)
    files: dict[str, str | None] = {file: intended.get(file) for file in changed}
    for file in files:
        if file == FRR_CONF:
            routing = without_left(intended.get(file, ""), ownership)
            files[file] = routing + "".join(foreign(running.get(file, ""), routing, ownership))
        else:
            have, want = (MODEL.parse({file: side[file]} if file in side else {}) for side in (running, intended))
            ours = ownership.restrict(have, ownership.claims(want))
            left = {path for path in want if ownership.precedence(path) == LEFT}
            # Entries that netkit neither owns nor intends, or that are left though the intent has them.
            if left or have.keys() - ours.keys() - want.keys():
                only = apply(have, (one for one in changes if one.path[0] == file))
                files[file] = MODEL.text(only).get(file, "" if file in intended else None)
    return files


def without_left(intended: str, ownership: Ownership) -> str:
    """Drop the lines that `leave` of the intent keeps as they run, with the sections below them."""
    if not ownership.left:
        return intended
    left = {
        (*line.headers, line.text)
        for line in lines(intended, DATACENTER_GRAMMAR, (FRR_CONF,))  # with the lines that are defaults elsewhere
        for path in line.paths
        if LEFT in {ownership.precedence(path), ownership.precedence((*path[:-1], f"no {path[-1]}"))}
    }
    kept: list[str] = []
    above: list[tuple[int, str]] = []
    dropped: int | None = None
    """The depth of the dropped section that this line may still belong to."""
    for raw in intended.splitlines(keepends=True):
        text, depth = raw.strip(), len(raw) - len(raw.lstrip())
        if dropped is not None and (depth > dropped or (depth == dropped and text in GRAMMAR.closers)):
            dropped = None if depth == dropped else dropped
            continue
        dropped = None
        while above and above[-1][0] >= depth:
            above.pop()
        if (*(header for _, header in above), text) in left:
            dropped = depth
            continue
        if text and text not in GRAMMAR.closers and not text.startswith(GRAMMAR.comments):
            above.append((depth, text))
        kept.append(raw)
    return "".join(kept)


def foreign(running: str, intended: str, ownership: Ownership) -> Iterator[str]:
    """Yield the lines of a running configuration that netkit does not own, with their section headers."""
    wanted = {path for line in lines(intended, GRAMMAR, (FRR_CONF,)) for path in line.paths}
    every = tuple(lines(running, GRAMMAR, (FRR_CONF,)))
    sections = {line.headers for line in every}
    above: tuple[str, ...] = ()
    for line in every:
        is_ours = any(ownership.precedence(path) >= 0 or path in wanted for path in line.paths)
        is_header = (*line.headers, line.text) in sections
        if is_header or is_ours or not line.paths or line.text.startswith(STATE):
            continue
        yield from _moved(above, line.headers)
        yield f"{' ' * len(line.headers)}{line.text}\n"
        above = line.headers
    yield from _moved(above, ())


def _moved(above: tuple[str, ...], headers: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines that leave one section and enter another."""
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
    """Drop the AS number of a router line, which a change may replace during a drain."""
    return NUMBER.sub(ROUTER.rstrip(), router)


def drain_lines(running: str) -> str:
    """Write the lines that drain every router its configuration does not drain already."""
    routers: dict[str, bool] = {}
    for line in lines(running, GRAMMAR):
        if not line.headers and line.text.startswith(ROUTER):
            routers.setdefault(line.text, False)
        elif line.text == WORDS and len(line.headers) == 1:
            routers[line.headers[0]] = True
    return "".join(f"{router}\n {WORDS}\nexit\n" for router, is_drained in routers.items() if not is_drained)


def undrain_lines(own: str, intended: str) -> str:
    """Write the lines that end a drain; a router that its configuration drains by now stays drained."""
    found = list(lines(intended, GRAMMAR))
    now = {drain_place(line.text): line.text for line in found if not line.headers and line.text.startswith(ROUTER)}
    kept = {drain_place(line.headers[0]) for line in found if line.text == WORDS and line.headers}
    routers = [row for row in own.splitlines() if row.startswith(ROUTER) and drain_place(row) not in kept]
    return "".join(f"{now.get(drain_place(row), row)}\n no {WORDS}\nexit\n" for row in routers)
