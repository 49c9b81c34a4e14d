"""Configuration model of EOS: the lines of `show running-config`, normalised to what netkit renders."""

import re
from collections.abc import Iterator

from netkit.platforms import config_lines
from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import PRESENT, Config, Files
from netkit.platforms.eos.routing import any_as, keeping, router
from netkit.platforms.eos.strategy import RISKS, constraints, strategy
from netkit.platforms.ownership import declared
from netkit.platforms.secrets import SECRET, masked_line

FILE = "eos.cfg"

# Defaults that EOS omits when it prints its configuration. It prints the opposite, so turning
# one of them off by hand is a difference. (Of the watchdog: `show running-config all` of 4.22; the others are derived.)
DEFAULTS = frozenset({"priority-flow-control pause watchdog", "protocol https", "no protocol http", "switchport"})

KEYED = (
    "hostname",
    r"username \S+",
    "service routing protocols model",
    "clock timezone",
    "lldp timer",
    "lldp hold-time",
    "logging trap",
    r"logging vrf \S+ (?:local|source)-interface",
    "snmp-server contact",
    "snmp-server location",
    r"snmp-server vrf \S+ local-interface",
    r"snmp-server user \S+ \S+ v3",
    r"snmp-server group \S+ v3",
    r"ntp local-interface vrf \S+",
    "aaa authorization exec default",
    "mac address-table aging-time",
    "ip hardware fib load-balance distribution",
    "platform trident mmu headroom-pool limit",
    "ingress headroom bytes",
    r"ingress priority-group \d+ \S+",
    r"egress unicast queue \d+ \S+",
    r"qos map dscp \d+ to traffic-class",
    r"qos map traffic-class \d+ to \S+",
    r"priority-flow-control pause watchdog default \S+",
    "priority-flow-control pause watchdog action",
    "qos trust",
    "bandwidth percent",
    "bandwidth guaranteed percent",
    "shape rate",
    "random-detect ecn minimum-threshold",
    "description",
    "name",
    "mtu",
    "speed",
    "error-correction encoding",
    "service-profile",
    "vlan internal order",
    r"switchport (?:access|trunk native|trunk allowed) vlan",
    "switchport mode",
    "channel-group",
    "lacp timer",
    "mlag(?! configuration)",
    "domain-id",
    "local-interface",
    r"peer-address(?: heartbeat)?",
    "peer-link",
    "dual-primary detection",
    "ip virtual-router mac-address",
    "vrf(?! instance)",
    "arp aging timeout",
    r"storm-control \S+ level",
    "spanning-tree portfast",
    r"seq \d+",
    "match ip(?:v6)? address prefix-list",
    "set local-preference",
    "set community",
    "router bgp",
    "router-id",
    "maximum-paths",
    "interval",
    r"neighbor \S+ (?:remote-as|description|timers|peer group)",
    r"neighbor interface \S+",
    "redistribute connected route-map",
    "maintenance profile bgp",
    "initiator route-map",
)

USER = re.compile(r"(username \S+ .*?)secret .+")
SNMP_USER = re.compile(
    r"(snmp-server user \S+ \S+(?: remote \S+(?: udp-port \d+)?)? v3) (?:localized \S+ )?"
    r"auth (\S+) \S+(?: priv (\S+) \S+)?(.*)"
)
SNMP_COMMUNITY = re.compile(r"snmp-server community \S+(.*)")
OTHER_SECRET = re.compile(r"\b(password|secret|key|key-string|community-string)((?: \d+| md5| sha\d*| sha)*) \S+$")
DSCP_MAP = re.compile(r"qos map dscp ([\d ,-]+) to traffic-class (\d+)")
ALLOWED = re.compile(r"(switchport trunk allowed vlan )([\d,-]+)")
NEIGHBORS = re.compile(r"neighbor interface (\S+) (.+)")
LONGEST_RANGE, HIGHEST_VLAN = 1024, 4094


def _normalised(line: str) -> Iterator[str]:
    """Expand a line: one for each DSCP and each neighbour, none for a default, with secrets masked."""
    if line in DEFAULTS:
        return
    if found := DSCP_MAP.fullmatch(line):
        for part in re.split(r"[ ,]+", found[1].strip()):  # a list such as `0-7 24,26`
            first, _, last = part.partition("-")
            if first.isdecimal() and (not last or last.isdecimal()):
                end = min(int(last or first), int(first) + LONGEST_RANGE)
                yield from (f"qos map dscp {dscp} to traffic-class {found[2]}" for dscp in range(int(first), end + 1))
    elif found := ALLOWED.fullmatch(line):
        yield f"{found[1]}{vlans(found[2])}"
    elif found := NEIGHBORS.fullmatch(line):
        yield from (f"neighbor interface {port} {found[2]}" for port in ports(found[1]))
    else:
        yield _without_secret(line)


def _without_secret(line: str) -> str:
    if found := SNMP_USER.fullmatch(line):
        return f"{found[1]} auth {found[2]} {SECRET}{f' priv {found[3]} {SECRET}' if found[3] else ''}{found[4]}"
    if found := SNMP_COMMUNITY.fullmatch(line):
        return f"snmp-server community {SECRET}{found[1]}"
    if found := USER.fullmatch(line):
        return f"{found[1]}secret {SECRET}"
    text = OTHER_SECRET.sub(rf"\1 {SECRET}", line)
    return masked_line(text) if text.startswith("snmp-server ") else text


def vlans(text: str) -> str:
    """Expand a list of VLANs, which EOS prints with ranges; other text is unchanged."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            return text
        found.update(range(int(first), min(int(last or first), HIGHEST_VLAN) + 1))
    return ",".join(map(str, sorted(found)))


def ports(text: str) -> list[str]:
    """Expand an interface list of EOS: `Et1/1,5/1-8/1` is five ports."""
    short = re.fullmatch(r"Et(?:hernet)?([\d/,-]+)", text)
    if not short:
        return [text]
    return [f"Ethernet{port}" for part in short[1].split(",") for port in _range(part)]


def _range(part: str) -> list[str]:
    """Expand a range of ports over the number that differs between its ends: 5/1-8/1 by cage, 5/1-8 by lane."""
    first, _, last = part.partition("-")
    ends = first.split("/"), last.split("/")
    if not last or not all(level.isdecimal() for end in ends for level in end):
        return [part]
    if len(ends[1]) < len(ends[0]):
        ends = ends[0], ends[0][: len(ends[0]) - len(ends[1])] + ends[1]
    varying = [level for level, (one, other) in enumerate(zip(*ends, strict=False)) if one != other]
    if len(varying) != 1 or len(ends[0]) != len(ends[1]):
        return [part]
    level = varying[0]
    low, high = int(ends[0][level]), int(ends[1][level])
    if not low < high < low + LONGEST_RANGE:
        return [part]
    return ["/".join((*ends[0][:level], str(number), *ends[0][level + 1 :])) for number in range(low, high + 1)]


GRAMMAR = config_lines.Grammar(
    keyed=KEYED, closers=frozenset({"exit", "end"}), verbatim=("banner ",), indent=3, rewrite=_normalised
)


def parse(files: Files) -> Config:
    """Parse eos.cfg or the output of `show running-config`, without the headings of ports that have no settings."""
    entries = config_lines.parse(files.get(FILE, ""), GRAMMAR, FILE)
    headings = {path[0] for path in entries if len(path) > 1}
    bare = {
        path
        for path, value in entries.items()
        if len(path) == 1 and value == PRESENT and path[0].startswith("interface Ethernet") and path[0] not in headings
    }
    return {path: value for path, value in entries.items() if path not in bare}


def text(config: Config) -> dict[str, str]:
    return {FILE: config_lines.text(config, GRAMMAR)} if config else {}


MODEL = ConfigModel(
    "eos",
    (FILE,),
    parse,
    text,
    declared("eos"),
    RISKS,
    strategy,
    tuple(constraints()),
    router,
    keeping=keeping,
    any_as=any_as,
)
