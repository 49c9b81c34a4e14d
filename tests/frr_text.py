"""FRR configuration text, compared by meaning: sections of lines in order, defaults omitted, names defined."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# What `show running-config` omits because it is the default of `frr defaults traditional`
# (docs.frrouting.org: BGP, "bgp ebgp-requires-policy" and "timers bgp"; BFD, the three timers of a profile).
DEFAULTS = frozenset(
    {
        "bgp ebgp-requires-policy",
        "timers bgp 60 180",
        "detect-multiplier 3",
        "receive-interval 300",
        "transmit-interval 300",
    }
)
# Lines of vtysh itself, which belong to no daemon: the host name, and the log.
OWN_TO_VTYSH = (
    "hostname ",
    "service integrated-vtysh-config",
    "frr version ",
    "Building configuration",
    "Current configuration",
)
ENDS = frozenset({"", "!", "exit", "exit-address-family", "end"})

DEFINITIONS = {
    "prefix list": r"^ip prefix-list (\S+)",
    "route map": r"^route-map (\S+)",
    "peer group": r"^ neighbor (\S+) peer-group$",
    "BFD profile": r"^ profile (\S+)$",
}
USES = {
    "prefix list": r"prefix-list (\S+)$",
    "route map": r"^ +(?:neighbor \S+|redistribute connected) route-map (\S+)",
    "peer group": r" interface v6only peer-group (\S+)$",
    "BFD profile": r"bfd profile (\S+)$",
}


@dataclass(frozen=True)
class Line:
    """A line and its depth."""

    depth: int
    text: str


def sections(text: str) -> dict[str, list[Line]]:
    """The lines of each section in order; top-level lines are in the section of their first words."""
    found: dict[str, list[Line]] = {}
    header = ""
    for raw in text.splitlines():
        stripped = raw.strip()
        if stripped in ENDS or stripped.startswith(("!", *OWN_TO_VTYSH)):
            continue
        depth = len(raw) - len(raw.lstrip())
        if depth == 0:
            header = " ".join(stripped.split()[:3]) if stripped.startswith("ip prefix-list") else stripped
        if depth == 0 or stripped not in DEFAULTS:
            found.setdefault(header, []).append(Line(depth, stripped))
    return found


def names(text: str, patterns: Mapping[str, str]) -> set[tuple[str, str]]:
    """Every kind and name that a configuration defines, or uses, depending on the patterns."""
    return {(kind, name) for kind, pattern in patterns.items() for name in re.findall(pattern, text, re.MULTILINE)}


def loose_ends(text: str) -> Iterator[str]:
    """Yield names that are used but not defined, which FRR accepts, and names that are defined but not used."""
    defined, used = names(text, DEFINITIONS), names(text, USES)
    yield from (f"{kind} {name} is not defined" for kind, name in sorted(used - defined))
    yield from (f"{kind} {name} is not used" for kind, name in sorted(defined - used))
