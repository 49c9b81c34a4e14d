"""Verification of a GPU host's rails: one route lookup in the kernel for each configured route of IPv4."""

import ipaddress
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from netkit.errors import ConfigError, DeviceError, Problem
from netkit.platforms.config import Files
from netkit.platforms.driver import RailState
from netkit.platforms.linux.install import BESIDE

MAIN = 254
NETPLAN = "netplan.yaml"
Network = ipaddress.IPv4Network
NO_HOSTS = Network("224.0.0.0/3")


@dataclass(frozen=True, slots=True)
class NetplanRoute:
    """A static route of a rail; without a gateway it is on-link, or unreachable."""

    prefix: Network
    gateway: str = ""
    table: int = MAIN
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class RouteLookup:
    """A destination and its expected gateway; without one it must be unreachable."""

    to: str
    via: str
    unbound: bool
    """Whether the lookup also works without naming the rail."""


@dataclass(frozen=True, slots=True)
class ExpectedRail:
    """The expected state of a rail."""

    interface: str
    address: str
    mtu_bytes: int
    lookups: tuple[RouteLookup, ...]


@dataclass(frozen=True, slots=True)
class ConfiguredRail:
    """The configuration of a rail."""

    interface: str
    address: str
    mtu_bytes: int
    routes: tuple[NetplanRoute, ...]


def rails(wanted: Iterable[ConfiguredRail]) -> tuple[ExpectedRail, ...]:
    """Build the expected rails of one host."""
    every = tuple(wanted)
    wires = {ipaddress.ip_interface(one.address).network for one in every}
    return tuple(ExpectedRail(one.interface, one.address, one.mtu_bytes, tuple(_lookups(one, wires))) for one in every)


def _lookups(
    rail: ConfiguredRail, wires: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> Iterator[RouteLookup]:
    # A network beside the rails has no separate table.
    own = [route for route in rail.routes if route.table != MAIN] or rail.routes
    main = {route.prefix for route in rail.routes if route.table == MAIN}
    nets = sorted({*(route.prefix for route in own), *(wire for wire in wires if isinstance(wire, Network)), NO_HOSTS})
    for route in own:
        if route.gateway or route.is_refused:
            to = _inside(route.prefix, nets)
            if to:
                yield RouteLookup(to, route.gateway, route.prefix in main)


def _inside(prefix: Network, nets: Iterable[Network]) -> str:
    """Find an address of a prefix outside all narrower networks, the last but one if possible; else an empty text."""
    narrower = [net for net in nets if net.prefixlen > prefix.prefixlen and net.subnet_of(prefix)]
    place = int(prefix.broadcast_address) - (1 if prefix.prefixlen < 31 else 0)
    while place >= int(prefix.network_address):
        below = [int(net.network_address) for net in narrower if ipaddress.ip_address(place) in net]
        if not below:
            return str(ipaddress.ip_address(place))
        place = min(below) - 1  # networks are nested: skip the widest one
    return ""


def as_variables(found: Iterable[ExpectedRail]) -> list[dict[str, object]]:
    """Convert rails to playbook variables."""
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
    """Build the expected rails from rendered files; ConfigError if they describe none."""
    found = described(files)
    if not found:
        what = "describe no rail"
        raise ConfigError(Problem(what, "render them again", file=", ".join(_names(files)) or NETPLAN))
    return found


def has_rails(files: Files) -> bool:
    """Whether any file configures rails; a host that netkit never changed has none."""
    return bool(_names(files))


def described(files: Files) -> tuple[ExpectedRail, ...]:
    """Build the expected rails from files, if they describe any."""
    try:
        found: list[ConfiguredRail] = []
        for name in _names(files):
            found += _of_netplan(files[name]) if name == NETPLAN else [_of_unit(files[name])]
        return rails(found)
    except (yaml.YAMLError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return ()


def _names(files: Files) -> list[str]:
    units = sorted(name for name in files if name.endswith(".network") and not name.endswith("-members.network"))
    beside = [name for name in units if name.startswith(BESIDE)]
    rails = [NETPLAN] if NETPLAN in files else [name for name in units if name.startswith("10-")]
    return [*rails, *beside]


def _of_netplan(text: str) -> Iterator[ConfiguredRail]:
    for name, rail in yaml.load(text, Loader=yaml.CSafeLoader)["network"]["ethernets"].items():
        routes = tuple(
            _route(route["to"], route.get("via", ""), route.get("table", MAIN), route.get("type"))
            for route in rail.get("routes", ())
            if ":" not in str(route["to"])
        )
        yield ConfiguredRail(name, rail["addresses"][0], int(rail["mtu"]), routes)


def _route(to: object, gateway: object, table: object, kind: object) -> NetplanRoute:
    return NetplanRoute(Network(str(to)), str(gateway), int(str(table)), kind == "unreachable")


def _of_unit(text: str) -> ConfiguredRail:
    sections: list[tuple[str, dict[str, str]]] = [("", {})]
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            sections.append((line, {}))
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            sections[-1][1][key] = value
    one = {f"{head}{key}": value for head, settings in sections for key, value in settings.items()}
    routes = tuple(
        _route(route["Destination"], route.get("Gateway", ""), route.get("Table", MAIN), route.get("Type"))
        for head, route in sections
        if head == "[Route]" and ":" not in route["Destination"]
    )
    return ConfiguredRail(one["[Match]Name"], one["[Network]Address"], int(one["[Link]MTUBytes"]), routes)


Far = Mapping[str, Sequence[str]]
"""Interface → addresses that should answer on it."""
PING = "-n -q -c 2 -i 0.2 -W 1"
HEADERS = {4: 28, 6: 48}
"""Bytes of IP and ICMP in a packet of the MTU."""
WHOLE = "whole"
FIND_PATH = "path=probe; ping -q -c 1 -W 1 -M probe 127.0.0.1 >/dev/null 2>&1 || path=do"
"""The first ignores what the host remembers of a path that has been narrower; iputils 20221126 does not know it yet."""
WAYS, REFUSED, ANSWERS, END = "ways", "refused", "answers", "end"
FAILED = re.compile(r"^Command failed .*:(\d+)$", re.MULTILINE)


def health_script(rails: Iterable[ExpectedRail], far: Far, mtu_bytes: int = 0) -> str:
    """Write the read-only shell script that checks a host; it succeeds whatever the answers are."""
    questions = [f"route get {words}" for _, words, _ in _questions(rails)]
    calls = [
        f"{{ {_call(interface, address, mtu_bytes)}; }} &"
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
        *([FIND_PATH] if mtu_bytes else []),
        *calls,
        f"wait; echo {END}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _call(interface: str, address: str, mtu_bytes: int) -> str:
    """The command that prints whether an address answers, first by packets of the whole MTU, if given."""
    version = 6 if ":" in address else 4

    def answers(size: str, word: str) -> str:
        sent = f"ping -{version} {PING} {size}-I {interface} {address} >/dev/null 2>&1"
        return f"{sent} && echo {interface} {address}{word}"

    plain = answers("", "")
    return (
        f"{answers(f'-M $path -s {mtu_bytes - HEADERS[version]} ', f' {WHOLE}')} || {{ {plain}; }}"
        if mtu_bytes
        else plain
    )


def rail_states(printed: str, rails: Sequence[ExpectedRail], far: Far, device: str) -> tuple[RailState, ...]:
    """Parse the script's output by rail; DeviceError if it is invalid."""
    try:
        lines = printed.splitlines()
        places = [lines.index(word) for word in (WAYS, REFUSED, ANSWERS, END)]
        heads = zip([-1, *places], places, strict=False)
        shown, ways, refused, answers = ("\n".join(lines[start + 1 : stop]) for start, stop in heads)
        links = {link["ifname"]: link for link in json.loads(shown)}
        wrong = _wrong_routes(rails, ways, frozenset(map(int, FAILED.findall(refused))))
        answered = [line.split() for line in answers.splitlines()]
        known = {rail.interface: rail for rail in rails}
        return tuple(
            _state(
                name,
                links.get(name),
                known.get(name),
                wrong.get(name, ()),
                [to for one, *to in answered if one == name],
            )
            for name in dict.fromkeys((*known, *far))
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, StopIteration):
        raise DeviceError(
            Problem(f"{device}: the state of its rails cannot be read", "check the output of `ip -j`")
        ) from None


def _questions(rails: Iterable[ExpectedRail]) -> Iterator[tuple[str, str, str]]:
    """Yield each lookup: the rail, the arguments, and the expected gateway."""
    for rail in rails:
        source = rail.address.partition("/")[0]
        for lookup in rail.lookups:
            # A lookup bound to an interface is never unreachable: Linux assumes that the destination is on-link.
            bound = f" oif {rail.interface}" if lookup.via else ""
            yield rail.interface, f"{lookup.to} from {source}{bound}", lookup.via


def _wrong_routes(rails: Sequence[ExpectedRail], ways: str, refused: frozenset[int]) -> dict[str, list[str]]:
    """Compare the answers with the expectation: one JSON list after the other, none for an unreachable destination."""
    found: dict[str, list[str]] = {}
    decoder, rest = json.JSONDecoder(), ways.lstrip()
    for number, (interface, words, via) in enumerate(_questions(rails), 1):
        got: Mapping[str, object] = {}
        if number not in refused:
            (got, *_), end = decoder.raw_decode(rest)
            rest = rest[end:].lstrip()
        have = (str(got.get("gateway", "")), str(got.get("dev", "")))
        if have != ((via, interface) if via else ("", "")):
            actual = f"is via {have[0] or 'no gateway'} on {have[1]}" if have[1] else "is refused"
            found.setdefault(interface, []).append(f"the route to {words} {actual}")
    return found


def _state(
    name: str,
    link: Mapping[str, object] | None,
    rail: ExpectedRail | None,
    wrong: Sequence[str],
    answered: Sequence[Sequence[str]],
) -> RailState:
    flags = link["flags"] if link is not None else ()
    is_dark = not isinstance(flags, list) or "LOWER_UP" not in flags
    addresses = _addresses(link, "inet") if link is not None else []
    of_ipv6 = _addresses(link, "inet6") if link is not None else []
    address_v6 = next((str(one["local"]) for one in of_ipv6 if one.get("scope") == "global"), "")
    address = str(addresses[0]["local"]) if addresses else ""
    problems = []
    if link is not None and rail is not None and not is_dark:
        if link["mtu"] != rail.mtu_bytes:
            problems.append(f"its MTU is {link['mtu']}, not {rail.mtu_bytes}")
        have = [f"{one['local']}/{one['prefixlen']}" for one in addresses]
        if have != [rail.address]:
            problems.append(f"its address is {', '.join(have) or 'missing'}, not {rail.address}")
        problems += wrong
    answers, whole = (tuple(to for to, *more in answered if more or not is_whole) for is_whole in (False, True))
    return RailState(name, rail is not None, is_dark, tuple(problems), answers, address, address_v6, whole)


def _addresses(link: Mapping[str, object], family: str) -> list[Mapping[str, object]]:
    infos = link["addr_info"]
    return [one for one in infos if one["family"] == family] if isinstance(infos, list) else []
