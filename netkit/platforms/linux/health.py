"""How the rails of a GPU host are: what its kernel says of links and routes, and who answers from afar."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from netkit.errors import DeviceError, Problem
from netkit.platforms.driver import RailState
from netkit.platforms.linux.rails import Rail

Far = Mapping[str, Sequence[str]]
"""Interface → addresses that should answer on it."""
PING = "ping -4 -n -q -c 2 -i 0.2 -W 1"
WAYS, ANSWERS, END = "ways", "answers", "end"


def command(rails: Iterable[Rail], far: Far) -> str:
    """Return the command that asks a host; it ends well whatever the answers are, and changes nothing."""
    ways = [f'echo "$(ip -j -4 route get {words} 2>/dev/null)"' for _, words, _ in _questions(rails)]
    calls = [
        f"{{ {PING} -I {interface} {address} >/dev/null 2>&1 && echo {interface} {address}; }} &"
        for interface, addresses in far.items()
        for address in addresses
    ]
    return "\n".join(["ip -j address show", f"echo {WAYS}", *ways, f"echo {ANSWERS}", *calls, "wait", f"echo {END}"])


def states(printed: str, rails: Sequence[Rail], far: Far, device: str) -> tuple[RailState, ...]:
    """Return what the command printed, rail by rail; DeviceError when it makes no sense."""
    try:
        lines = printed.splitlines()
        ways, answers = lines.index(WAYS), lines.index(ANSWERS)
        links = {link["ifname"]: link for link in json.loads("".join(lines[:ways]))}
        wrong = _wrong_ways(rails, lines[ways + 1 : ways + 1 + len(tuple(_questions(rails)))])
        answered = [line.split() for line in lines[answers + 1 : lines.index(END)]]
        known = {rail.interface: rail for rail in rails}
        return tuple(
            _state(
                name, links.get(name), known.get(name), wrong.get(name, ()), [to for one, to in answered if one == name]
            )
            for name in dict.fromkeys((*known, *far))
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise DeviceError(Problem(f"{device}: what it says of its rails cannot be read", "look at `ip -j`")) from None


def _questions(rails: Iterable[Rail]) -> Iterator[tuple[str, str, str]]:
    """Yield what to ask for each route: the rail, the words, and the gateway the answer must have."""
    for rail in rails:
        source = rail.address.partition("/")[0]
        for lookup in rail.lookups:
            # What is bound to an interface is never refused: Linux takes it for on-link.
            bound = f" oif {rail.interface}" if lookup.via else ""
            yield rail.interface, f"{lookup.to} from {source}{bound}", lookup.via


def _wrong_ways(rails: Sequence[Rail], answers: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for (interface, words, via), answer in zip(_questions(rails), answers, strict=True):
        got: Mapping[str, object] = next(iter(json.loads(answer or "[]")), {})
        have = (str(got.get("gateway", "")), str(got.get("dev", "")))
        if have != ((via, interface) if via else ("", "")):
            shown = f"is via {have[0] or 'no gateway'} on {have[1]}" if have[1] else "is refused"
            found.setdefault(interface, []).append(f"the way to {words} {shown}")
    return found


def _state(
    name: str, link: Mapping[str, object] | None, rail: Rail | None, wrong: Sequence[str], answers: Sequence[str]
) -> RailState:
    flags = link["flags"] if link is not None else ()
    is_dark = not isinstance(flags, list) or "LOWER_UP" not in flags
    problems = () if rail is None or is_dark else (*_link_problems(link or {}, rail), *wrong)
    return RailState(name, rail is not None, is_dark, tuple(problems), tuple(answers))


def _link_problems(link: Mapping[str, object], rail: Rail) -> Iterator[str]:
    if link["mtu"] != rail.mtu_bytes:
        yield f"its MTU is {link['mtu']}, not {rail.mtu_bytes}"
    infos = link["addr_info"]
    have = (
        [f"{one['local']}/{one['prefixlen']}" for one in infos if one["family"] == "inet"]
        if isinstance(infos, list)
        else []
    )
    if have != [rail.address]:
        yield f"its address is {', '.join(have) or 'missing'}, not {rail.address}"
