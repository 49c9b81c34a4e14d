"""What the kernel of a GPU host must answer when it is asked for the rails: one question for each route."""

import ipaddress
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from netkit.errors import ConfigError, DeviceError, Problem
from netkit.platforms.config import Files
from netkit.platforms.driver import RailState

MAIN = 254
NETPLAN = "netplan.yaml"
Network = ipaddress.IPv4Network


@dataclass(frozen=True, slots=True)
class NetplanRoute:
    """A static route of a rail; without a gateway it is on the wire, or refused."""

    prefix: Network
    gateway: str = ""
    table: int = MAIN
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class RouteLookup:
    """A destination, and the gateway that leads there; without one it must be refused."""

    to: str
    via: str
    unbound: bool
    """Whether it is found without naming the rail, too."""


@dataclass(frozen=True, slots=True)
class ExpectedRail:
    """A rail as it should be."""

    interface: str
    address: str
    mtu_bytes: int
    lookups: tuple[RouteLookup, ...]


@dataclass(frozen=True, slots=True)
class ConfiguredRail:
    """A rail as it is configured."""

    interface: str
    address: str
    mtu_bytes: int
    routes: tuple[NetplanRoute, ...]


def rails(wanted: Iterable[ConfiguredRail]) -> tuple[ExpectedRail, ...]:
    """Return what to ask for each rail of one host."""
    every = tuple(wanted)
    wires = {ipaddress.ip_interface(one.address).network for one in every}
    return tuple(ExpectedRail(one.interface, one.address, one.mtu_bytes, tuple(_lookups(one, wires))) for one in every)


def _lookups(
    rail: ConfiguredRail, wires: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> Iterator[RouteLookup]:
    own = [route for route in rail.routes if route.table != MAIN]
    main = {route.prefix for route in rail.routes if route.table == MAIN}
    nets = sorted({*(route.prefix for route in own), *(wire for wire in wires if isinstance(wire, Network))})
    for route in own:
        if route.gateway or route.is_refused:
            to = _inside(route.prefix, nets)
            if to:
                yield RouteLookup(to, route.gateway, route.prefix in main)


def _inside(prefix: Network, nets: Iterable[Network]) -> str:
    """Return an address that no narrower network has: the last but one, unless it is somebody's."""
    narrower = [net for net in nets if net.prefixlen > prefix.prefixlen and net.subnet_of(prefix)]
    place = int(prefix.broadcast_address) - (1 if prefix.prefixlen < 31 else 0)
    while place >= int(prefix.network_address):
        below = [int(net.network_address) for net in narrower if int(net.network_address) <= place <= _last(net)]
        if not below:
            return str(ipaddress.ip_address(place))
        place = min(below) - 1  # networks lie within each other: go below the widest that has it
    return ""


def _last(net: Network) -> int:
    return int(net.broadcast_address)


def as_variables(found: Iterable[ExpectedRail]) -> list[dict[str, object]]:
    """Return rails as a playbook takes them."""
    return [
        {
            "interface": rail.interface,
            "address": rail.address,
            "mtu_bytes": rail.mtu_bytes,
            "lookups": [{"to": one.to, "via": one.via, "unbound": one.unbound} for one in rail.lookups],
        }
        for rail in found
    ]


def configured(files: Files) -> tuple[ExpectedRail, ...]:
    """Return what to ask for each rail that rendered files describe; ConfigError when they describe none."""
    found = described(files)
    if not found:
        what = "say of no rail what its address, MTU and routes are"
        raise ConfigError(Problem(what, "render them again", file=", ".join(_names(files)) or NETPLAN))
    return found


def has_rails(files: Files) -> bool:
    """Whether there is a file that configures rails, as there is none on a host netkit never changed."""
    return bool(_names(files))


def described(files: Files) -> tuple[ExpectedRail, ...]:
    """Return what to ask for each rail that files describe, if they describe any."""
    try:
        return rails([rail for name in _names(files) for rail in _of(name, files[name])])
    except (yaml.YAMLError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return ()


def _names(files: Files) -> list[str]:
    names = sorted(name for name in files if name.startswith("10-") and name.endswith(".network"))
    return [NETPLAN] if NETPLAN in files else names


def _of(name: str, text: str) -> Iterable[ConfiguredRail]:
    return _of_netplan(text) if name == NETPLAN else [_of_unit(text)]


def _of_netplan(text: str) -> Iterator[ConfiguredRail]:
    for name, rail in yaml.load(text, Loader=yaml.CSafeLoader)["network"]["ethernets"].items():
        routes = tuple(map(_route, rail.get("routes", ())))
        yield ConfiguredRail(name, rail["addresses"][0], int(rail["mtu"]), routes)


def _route(route: Mapping[str, object]) -> NetplanRoute:
    prefix = Network(str(route["to"]))
    is_refused = route.get("type") == "unreachable"
    return NetplanRoute(prefix, str(route.get("via", "")), int(str(route.get("table", MAIN))), is_refused)


def _of_unit(text: str) -> ConfiguredRail:
    sections: list[tuple[str, dict[str, str]]] = [("", {})]
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            sections.append((line, {}))
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            sections[-1][1][key] = value
    one = {f"{head}{key}": value for head, settings in sections for key, value in settings.items()}
    routes = tuple(_unit_route(settings) for head, settings in sections if head == "[Route]")
    return ConfiguredRail(one["[Match]Name"], one["[Network]Address"], int(one["[Link]MTUBytes"]), routes)


def _unit_route(route: Mapping[str, str]) -> NetplanRoute:
    table = int(route.get("Table", MAIN))
    return NetplanRoute(
        Network(route["Destination"]), route.get("Gateway", ""), table, route.get("Type") == "unreachable"
    )


Far = Mapping[str, Sequence[str]]
"""Interface → addresses that should answer on it."""
PING = "ping -4 -n -q -c 2 -i 0.2 -W 1"
WAYS, REFUSED, ANSWERS, END = "ways", "refused", "answers", "end"
FAILED = re.compile(r"^Command failed .*:(\d+)$", re.MULTILINE)


def health_script(rails: Iterable[ExpectedRail], far: Far) -> str:
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


def rail_states(printed: str, rails: Sequence[ExpectedRail], far: Far, device: str) -> tuple[RailState, ...]:
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
