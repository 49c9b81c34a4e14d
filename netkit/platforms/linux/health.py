"""How the rails of a GPU host are: what its kernel says of links and routes, and who answers from afar."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from netkit.errors import DeviceError, Problem
from netkit.platforms.driver import RailState
from netkit.platforms.linux.rails import ExpectedRail

Far = Mapping[str, Sequence[str]]
"""Interface → addresses that should answer on it."""
PING = "ping -4 -n -q -c 2 -i 0.2 -W 1"
WAYS, REFUSED, ANSWERS, END = "ways", "refused", "answers", "end"
FAILED = re.compile(r"^Command failed .*:(\d+)$", re.MULTILINE)


def script(rails: Iterable[ExpectedRail], far: Far) -> str:
    """Return what a shell is told to ask a host; it ends well whatever the answers are, and changes nothing."""
    questions = [f"route get {words}" for _, words, _ in _questions(rails)]
    calls = [
        f"{{ {PING} -I {interface} {address} >/dev/null 2>&1 && echo {interface} {address}; }} &"
        for interface, addresses in far.items()
        for address in addresses
    ]
    lines = [
        "ip -j address show",
        f"echo {WAYS}",
        "{ refused=$(ip -force -j -4 -batch - 2>&1 >&3 <<'QUESTIONS'",
        *questions,
        "QUESTIONS",
        "); } 3>&1",
        f'echo {REFUSED}; echo "$refused"; echo {ANSWERS}',
        *calls,
        f"wait; echo {END}",
    ]
    return "".join(f"{line}\n" for line in lines)


def states(printed: str, rails: Sequence[ExpectedRail], far: Far, device: str) -> tuple[RailState, ...]:
    """Return what the script printed, rail by rail; DeviceError when it makes no sense."""
    try:
        lines = printed.splitlines()
        places = [lines.index(word) for word in (WAYS, REFUSED, ANSWERS, END)]
        heads = zip([-1, *places], places, strict=False)
        shown, ways, refused, answers = ("\n".join(lines[start + 1 : stop]) for start, stop in heads)
        links = {link["ifname"]: link for link in json.loads(shown)}
        wrong = _wrong_ways(rails, ways, frozenset(map(int, FAILED.findall(refused))))
        answered = [line.split() for line in answers.splitlines()]
        known = {rail.interface: rail for rail in rails}
        return tuple(
            _state(
                name, links.get(name), known.get(name), wrong.get(name, ()), [to for one, to in answered if one == name]
            )
            for name in dict.fromkeys((*known, *far))
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, StopIteration):
        raise DeviceError(Problem(f"{device}: what it says of its rails cannot be read", "look at `ip -j`")) from None


def _questions(rails: Iterable[ExpectedRail]) -> Iterator[tuple[str, str, str]]:
    """Yield what to ask for each route: the rail, the words, and the gateway the answer must have."""
    for rail in rails:
        source = rail.address.partition("/")[0]
        for lookup in rail.lookups:
            # What is bound to an interface is never refused: Linux takes it for on-link.
            bound = f" oif {rail.interface}" if lookup.via else ""
            yield rail.interface, f"{lookup.to} from {source}{bound}", lookup.via


def _wrong_ways(rails: Sequence[ExpectedRail], ways: str, refused: frozenset[int]) -> dict[str, list[str]]:
    """Return what is wrong with the answers: one JSON list after the other, none for what is refused."""
    found: dict[str, list[str]] = {}
    documents = _documents(ways)
    for number, (interface, words, via) in enumerate(_questions(rails), 1):
        got = {} if number in refused else next(documents)
        have = (str(got.get("gateway", "")), str(got.get("dev", "")))
        if have != ((via, interface) if via else ("", "")):
            shown = f"is via {have[0] or 'no gateway'} on {have[1]}" if have[1] else "is refused"
            found.setdefault(interface, []).append(f"the way to {words} {shown}")
    return found


def _documents(text: str) -> Iterator[Mapping[str, object]]:
    decoder, rest = json.JSONDecoder(), text.lstrip()
    while rest:
        document, end = decoder.raw_decode(rest)
        yield document[0]
        rest = rest[end:].lstrip()


def _state(
    name: str,
    link: Mapping[str, object] | None,
    rail: ExpectedRail | None,
    wrong: Sequence[str],
    answers: Sequence[str],
) -> RailState:
    flags = link["flags"] if link is not None else ()
    is_dark = not isinstance(flags, list) or "LOWER_UP" not in flags
    problems = () if rail is None or is_dark else (*_link_problems(link or {}, rail), *wrong)
    addresses = _addresses(link) if link is not None else []
    address = str(addresses[0]["local"]) if addresses else ""
    return RailState(name, rail is not None, is_dark, tuple(problems), tuple(answers), address)


def _link_problems(link: Mapping[str, object], rail: ExpectedRail) -> Iterator[str]:
    if link["mtu"] != rail.mtu_bytes:
        yield f"its MTU is {link['mtu']}, not {rail.mtu_bytes}"
    have = [f"{one['local']}/{one['prefixlen']}" for one in _addresses(link)]
    if have != [rail.address]:
        yield f"its address is {', '.join(have) or 'missing'}, not {rail.address}"


def _addresses(link: Mapping[str, object]) -> list[Mapping[str, object]]:
    infos = link["addr_info"]
    return [one for one in infos if one["family"] == "inet"] if isinstance(infos, list) else []
