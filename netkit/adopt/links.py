"""The cables between surveyed devices, from addresses, LLDP and descriptions."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network
from typing import Literal

from netkit.adopt.names import natural
from netkit.adopt.survey import Survey, SurveyedSwitch, rails_of

End = tuple[str, str]
"""(device, port); an empty port is not known."""
Origin = Literal["address", "lldp", "description", "guess"]
STRICT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,62}):(\S{1,63})")
LOOSE = re.compile(
    r"\W*(?:(?:link|uplink|to|from)\W+)*([A-Za-z][A-Za-z0-9._-]{0,62}?)[\W_]+([A-Za-z]\w*\d[\w/.]*)\W*", re.IGNORECASE
)
"""A device that was not read, and its port, such as [spine3] Ethernet5/1 or gpu07-nic3."""
WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
DIGIT = re.compile(r"\d")
SEPARATOR = re.compile(r"[._-](?!(?:bmc|cimc|idrac|ilo|imm|ipmi|xcc)\d*(?![a-z0-9]))")
"""Between a device and what follows, but not its management controller: gpu01-bmc is a machine of its own."""
DOMAIN = re.compile(r"\.")
TOKEN = re.compile(r"[^\s,;:()\[\]<>|=]+")


@dataclass(frozen=True, slots=True)
class FoundLink:
    """A cable; for a host the host's end comes first."""

    near: End
    far: End
    origin: Origin

    @property
    def ends(self) -> tuple[End, End]:
        return self.near, self.far

    @property
    def devices(self) -> tuple[str, str]:
        return self.near[0], self.far[0]


@dataclass(frozen=True, slots=True)
class FoundLinks:
    """The cables of a survey."""

    switches: tuple[FoundLink, ...]
    """Between switches, each once."""
    hosts: tuple[FoundLink, ...]
    """From NICs to leaves."""
    dangling: tuple[End, ...]
    """Ports of the fabric whose other end is not known."""
    contradicted: tuple[tuple[End, End, End], ...] = ()
    """(end, other end in the list of cables, other end by LLDP) where the two differ, once for each listed cable."""
    strangers: tuple[str, ...] = ()
    """Devices in the list of cables that were not read."""


def find_links(
    survey: Survey,
    neighbors: Mapping[End, End],
    listed: Mapping[End, End] | None = None,
    recorded: Mapping[End, End] | None = None,
) -> FoundLinks:
    """Find the cables, from end → other end by LLDP, in a list of cables and in a source of truth.

    The list takes precedence over LLDP, and LLDP over the source of truth; within each, earlier ones do.
    """
    return _Search(survey, neighbors, listed or {}, recorded or {}).found()


class _Search:
    def __init__(
        self, survey: Survey, heard: Mapping[End, End], listed: Mapping[End, End], recorded: Mapping[End, End]
    ) -> None:
        self.survey = survey
        self.names = sorted((*survey.switches, *survey.hosts), key=lambda name: (-len(name), name))
        self.known = {name.lower(): name for name in self.names}
        self.hostnames = {
            switch.existing.hostname.lower(): switch.name
            for switch in survey.switches.values()
            if switch.existing.hostname
        }
        hosts = survey.hosts.values()
        self.macs = {nic.mac.lower(): (host.name, nic.interface) for host in hosts for nic in host.existing.nics}
        self.aliases = {
            (switch.name, port.alias): (switch.name, name)
            for switch in survey.switches.values()
            for name, port in switch.ports.items()
            if port.alias and port.alias not in switch.ports
        }
        self.neighbors: dict[End, End] = {}
        by_list = self._translated(listed)
        read = {*self.names, *survey.beside, *survey.unread}
        self.strangers = sorted({device for ends in by_list for device, _ in ends} - read, key=natural)
        self._add(by_list)
        by_lldp = self._translated(heard)
        self.contradicted = self._contradicted(by_lldp)
        self._add(by_lldp)
        self._add(self._translated(recorded))
        self.taken: dict[End, FoundLink] = {}
        switches = survey.switches.values()
        self.owners = {
            str(one.ip): (switch.name, port)
            for switch in switches
            for port, one in switch.router.addresses
            if port in switch.fabric_ports
        }
        self.numbered = {
            (switch.name, one.interface): one.address for switch in switches for one in switch.sessions if one.address
        }

        self.unread = self._unread()

    def _translated(self, source: Mapping[End, End]) -> list[tuple[End, End]]:
        return [
            (self._end(self._named(near[0]) or near[0], near[1]), self._end(self._system(far[0]) or far[0], far[1]))
            for near, far in source.items()
        ]

    def _end(self, device: str, port: str) -> End:
        """The end of a device that a port, its alias or its MAC address names."""
        return self.macs.get(port.lower()) or self.aliases.get((device, port), (device, port))

    def _add(self, cables: Iterable[tuple[End, End]]) -> None:
        """Add the cables of a source that differ from none of an earlier one."""
        for near, far in cables:
            if self.neighbors.get(near, far) == far and self.neighbors.get(far, near) == near:
                self.neighbors |= {near: far, far: near}

    def _contradicted(self, by_lldp: Iterable[tuple[End, End]]) -> tuple[tuple[End, End, End], ...]:
        found: dict[frozenset[End], tuple[End, End, End]] = {}
        for ends in by_lldp:
            for near, far in (ends, ends[::-1]):
                other = self.neighbors.get(near, far)
                if other != far:
                    found.setdefault(frozenset((near, other)), (near, other, far))
        return tuple(found.values())

    def _unread(self) -> Mapping[End, End]:
        """The other ends by descriptions, of devices that were not read and that several switches name."""
        exact, loose = dict[End, End](), dict[End, End]()
        for switch in self.survey.switches.values():
            for port in (*switch.fabric_ports, *switch.host_ports):
                text = switch.ports[port].description if port in switch.ports else ""
                if match := STRICT.fullmatch(text):
                    exact[(switch.name, port)] = match[1], match[2]
                elif (match := LOOSE.fullmatch(text)) and DIGIT.search(match[1]) and not self._device(match[1]):
                    loose[(switch.name, port)] = match[1], match[2]
        naming = Counter(name for name, _ in {(far[0], near[0]) for near, far in loose.items()})
        return exact | {near: far for near, far in loose.items() if naming[far[0]] > 1}

    def found(self) -> FoundLinks:
        hosts = tuple(self._hosts())
        switches = tuple(self._switches())
        dangling = tuple(
            (switch.name, port)
            for switch in self.survey.switches.values()
            for port in (*sorted(switch.fabric_ports), *switch.host_ports)
            if (switch.name, port) not in self.taken
        )
        return FoundLinks(switches, hosts, dangling, self.contradicted, tuple(self.strangers))

    def _take(self, near: End, far: End, origin: Origin) -> FoundLink:
        link = FoundLink(near, far, origin)
        self.taken[near] = self.taken[far] = link
        return link

    # --- hosts ------------------------------------------------------------------------------------------------------

    def _hosts(self) -> Iterator[FoundLink]:
        routed, shared = self._leaf_networks()
        open_nics: list[tuple[End, IPv4Interface]] = []
        for host in self.survey.hosts.values():
            for interface, address in rails_of(host):
                ends = routed.get(address.network, ())
                if len(ends) == 1 and ends[0] not in self.taken:
                    yield self._take((host.name, interface), ends[0], "address")
                else:
                    open_nics.append(((host.name, interface), address))
        for near, address in list(open_nics):
            if far := self._stated(near, shared.get(address.network, ())):
                open_nics.remove((near, address))
                yield self._take(near, *far)
        yield from self._guessed(open_nics, shared)
        yield from self._unread_hosts()

    def _leaf_networks(self) -> tuple[dict[IPv4Network, list[End]], dict[IPv4Network, list[End]]]:
        """The ports at each network of routed ports, and at each of VLANs."""
        routed: dict[IPv4Network, list[End]] = {}
        shared: dict[IPv4Network, list[End]] = {}
        for switch in self.survey.switches.values():
            for port in sorted(switch.host_ports, key=natural):
                if svi := switch.members.get(port):
                    shared.setdefault(switch.addresses[svi].network, []).append((switch.name, port))
                else:
                    routed.setdefault(switch.addresses[port].network, []).append((switch.name, port))
        return routed, shared

    def _stated(self, near: End, candidates: Iterable[End]) -> tuple[End, Origin] | None:
        """The leaf port of a NIC, by LLDP or a description."""
        ends = [end for end in candidates if end not in self.taken]
        if (far := self.neighbors.get(near)) in ends and far:
            return far, "lldp"
        named = [end for end in ends if self._names(end)[0] == near[0]]
        exact = [end for end in named if self._names(end)[1] == near[1]]
        if len(exact) == 1 or len(named) == 1:
            return (exact or named)[0], "description"
        return None

    def _guessed(
        self, nics: Iterable[tuple[End, IPv4Interface]], shared: Mapping[IPv4Network, list[End]]
    ) -> Iterator[FoundLink]:
        """Give NICs whose leaf is known, but not the port, the next free ports in the order of addresses."""
        for near, address in sorted(nics, key=lambda one: one[1].ip):
            free = (
                end
                for end in shared.get(address.network, ())
                if end not in self.taken and self.neighbors.get(end, near)[0] == near[0] and not self._names(end)[0]
            )
            far = next(free, None)
            if far:
                yield self._take(near, far, "guess")

    def _unread_hosts(self) -> Iterator[FoundLink]:
        """Yield the cables of hosts that only descriptions name."""
        for switch in self.survey.switches.values():
            for port in switch.host_ports:
                if (switch.name, port) in self.taken:
                    continue
                described = self.unread.get((switch.name, port), ("", ""))
                near = self.neighbors.get((switch.name, port), described)
                if near[0] and near[0] not in self.survey.switches and near not in self.taken:
                    yield self._take(near, (switch.name, port), "description" if near == described else "lldp")

    # --- switches ---------------------------------------------------------------------------------------------------

    def _switches(self) -> Iterator[FoundLink]:
        statements: dict[End, tuple[End, Origin]] = {}
        for switch in self.survey.switches.values():
            for port in sorted(switch.fabric_ports):
                if stated := self._peer(switch, port):
                    statements[(switch.name, port)] = stated
        self._complete(statements)
        for near, (far, origin) in statements.items():
            if near in self.taken or far in self.taken or not far[1]:
                continue
            back = statements.get(far)
            if back is None or back[0] in {near, (near[0], "")}:
                yield self._take(near, far, origin)

    def _peer(self, switch: SurveyedSwitch, port: str) -> tuple[End, Origin] | None:
        end = (switch.name, port)
        if far := self.owners.get(self.numbered.get(end, "")):
            return far, "address"
        if far := self.neighbors.get(end):
            return far, "lldp"
        device, far_port = self._names(end)
        if device:
            return (device, far_port), "description"
        return (self.unread[end], "description") if end in self.unread else None

    def _complete(self, statements: dict[End, tuple[End, Origin]]) -> None:
        """Find the port of the other end where only its device is named: the one that names this device."""
        naming: dict[tuple[str, str], list[End]] = {}
        for near, (far, _) in statements.items():
            naming.setdefault((near[0], far[0]), []).append(near)
        used = {far for far, _ in statements.values() if far[1]}
        for near, (far, origin) in list(statements.items()):
            if far[1]:
                continue
            back = [end for end in naming.get((far[0], near[0]), ()) if end not in used]
            exact = [end for end in back if statements[end][0] == near]
            # Parallel links that name no ports are indistinguishable, so they are paired in order.
            if chosen := (exact or back)[:1]:
                statements[near] = (chosen[0], origin)
                used.add(chosen[0])

    # --- descriptions -----------------------------------------------------------------------------------------------

    def _names(self, end: End) -> End:
        """The surveyed device that the description of a port names, and its port; empty where it does not."""
        switch = self.survey.switches[end[0]]
        text = switch.ports[end[1]].description if end[1] in switch.ports else ""
        if not text:
            return "", ""
        match = STRICT.fullmatch(text)
        if match and (name := self._device(match[1])):
            return name, match[2]
        for word in WORD.findall(text):
            if (name := self._device(word)) and name != end[0]:
                return name, self._port(name, text)
        return "", ""

    def _named(self, word: str) -> str:
        """The device that a word is the name or hostname of."""
        word = word.lower().rstrip(".")
        return self.known.get(word) or self.hostnames.get(word, "")

    def _system(self, word: str) -> str:
        """The device that a word is the name of, or begins with before a domain, such as gpu01.example.net."""
        heads = (word[: match.start()] for match in reversed([*DOMAIN.finditer(word)]))
        return self._named(word) or next(filter(None, map(self._named, heads)), "")

    def _device(self, word: str) -> str:
        """The device that a word is the name of, or begins with, such as gpu01-nic3."""
        found = self._named(word)
        if not found:
            word = word.lower().rstrip(".")
            ends = (match.start() for match in SEPARATOR.finditer(word))
            found = next((self.known[word[:end]] for end in reversed([*ends]) if word[:end] in self.known), "")
        return found

    def _port(self, device: str, text: str) -> str:
        tokens = [token.lower() for token in TOKEN.findall(text)]
        if switch := self.survey.switches.get(device):
            ports = {port.lower(): port for port in switch.ports}
        elif host := self.survey.hosts.get(device):
            ports = {nic.interface.lower(): nic.interface for nic in host.existing.nics}
        else:
            return ""
        return next((ports[token] for token in tokens if token in ports), "")
