"""Configuration model of Linux switches with FRR: frr.conf as FRR prints it, and the other files."""

import re
from collections.abc import Iterator
from dataclasses import replace

from netkit.platforms import config_lines
from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.frr.routing import keeping, router
from netkit.platforms.frr.strategy import RISKS, constraints, strategy
from netkit.platforms.linux import file_kinds
from netkit.platforms.linux.file_kinds import Kind
from netkit.platforms.ownership import declared
from netkit.platforms.secrets import SECRET

FRR_CONF = "frr.conf"
POLICY = "bgp ebgp-requires-policy"

# Omitted when FRR prints its configuration, because these are the defaults of `frr defaults traditional`
# (docs.frrouting.org: BGP, "bgp ebgp-requires-policy" and "timers bgp"; BFD, the three timers of a profile).
DEFAULTS = frozenset(
    {
        POLICY,
        "timers bgp 60 180",
        "detect-multiplier 3",
        "receive-interval 300",
        "transmit-interval 300",
    }
)
DATACENTER = re.compile(r"^frr defaults datacenter$", re.MULTILINE)
DATACENTER_DEFAULTS = {"timers bgp": "3 9", "bgp log-neighbor-changes": ""}
"""Left out with `frr defaults datacenter`, of what netkit renders. There, BGP also requires no policy."""
# Printed by vtysh itself, not by a daemon.
PREAMBLE = ("Building configuration", "Current configuration")
KEYED = (
    "frr defaults",
    "frr version",
    "hostname",
    "log syslog",
    "log facility",
    r"router bgp(?! \d+ (?:vrf|view) )",
    "bgp router-id",
    "timers bgp",
    "maximum-paths",
    "description",
    r"neighbor \S+ (?:remote-as|description|timers|interface v6only peer-group|bfd profile|password)",
    "redistribute connected route-map",
    r"ip(?:v6)? prefix-list \S+ seq \d+",
    "match ip(?:v6)? address prefix-list",
    "set local-preference",
    "set community",
    "set src",
    "ip(?:v6)? protocol bgp route-map",
    "detect-multiplier",
    "receive-interval",
    "transmit-interval",
)
PASSWORD = re.compile(r"(neighbor \S+ password|password|enable password) .+")


def _normalised(line: str) -> Iterator[str]:
    if line not in DEFAULTS:
        yield from _printed(line)


def _printed(line: str) -> Iterator[str]:
    if line.startswith(PREAMBLE):
        return
    yield PASSWORD.sub(rf"\1 {SECRET}", line)


GRAMMAR = config_lines.Grammar(
    keyed=KEYED,
    closers=frozenset({"exit", "exit-address-family", "end"}),
    comments=("!", "#"),
    indent=1,
    rewrite=_normalised,
)


DATACENTER_GRAMMAR = replace(GRAMMAR, rewrite=_printed)


def _routing(text: str, file: str) -> dict[Path, str]:
    """Parse frr.conf. What the defaults of data centers leave out is added, since netkit renders traditional ones."""
    if not DATACENTER.search(text):
        return config_lines.parse(text, GRAMMAR, file, (file,))
    entries = config_lines.parse(text, DATACENTER_GRAMMAR, file, (file,))
    router = (file, "router bgp")
    if router in entries:
        if entries.pop((*router, POLICY), None) is None:
            entries[(*router, f"no {POLICY}")] = ""
        for line, value in DATACENTER_DEFAULTS.items():
            if (*router, f"no {line}") not in entries:
                entries.setdefault((*router, line), value)
    return entries


def _routing_text(config: Config, file: str) -> str:
    router = (file, "router bgp")
    is_required = router in config and (*router, f"no {POLICY}") not in config
    if config.get((file, "frr defaults")) == "datacenter" and is_required:
        config = {**config, (*router, POLICY): ""}
    return config_lines.text(config, GRAMMAR, (file,))


ROUTING = Kind(
    parse=_routing,
    text=_routing_text,
)
KINDS = {
    FRR_CONF: ROUTING,
    "netplan.yaml": file_kinds.NETPLAN,
    "daemons": file_kinds.SHELL,
    "sysctl.conf": file_kinds.SYSCTL,
    "rsyslog.conf": file_kinds.WHOLE,
    "*.conf": file_kinds.WORDS,
}


def parse(files: Files) -> Config:
    return file_kinds.parse(files, KINDS)


def text(config: Config) -> dict[str, str]:
    return file_kinds.text(config, KINDS)


FILES = (FRR_CONF, "daemons", "netplan.yaml", "sysctl.conf", "lldpd.conf", "chrony.conf", "rsyslog.conf", "snmpd.conf")
MODEL = ConfigModel(
    "frr",
    FILES,
    parse,
    text,
    declared("frr"),
    RISKS,
    strategy,
    tuple(constraints()),
    router,
    keeping=keeping,
)
