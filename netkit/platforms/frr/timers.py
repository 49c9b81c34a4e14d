"""Timers of BGP sessions and BFD in frr.conf, on Linux switches and on SONiC."""

from collections import Counter
from collections.abc import Iterable, Iterator

from netkit.platforms.bgp_reader import line_of
from netkit.platforms.config import Config, Path
from netkit.platforms.existing import SessionTimers, most, number
from netkit.platforms.frr.files import FRR_CONF

Section = dict[str, list[tuple[Path, str]]]
# What FRR does not print. `frr defaults datacenter` changes the BGP timers only.
BGP_DEFAULTS = {"traditional": (60, 180), "datacenter": (3, 9)}
CONNECT_DEFAULTS = {"traditional": 120, "datacenter": 10}
BFD_INTERVAL_MS, BFD_MULTIPLIER = 300, 3


def session_timers(config: Config) -> SessionTimers:
    """Read the timers. A line that FRR leaves out means its default, because FRR never prints that."""
    sections: Section = {}
    profile = "traditional"
    for path, value in config.items():
        if path[0] != FRR_CONF or len(path) < 2:
            continue
        if len(path) > 2:
            sections.setdefault(path[1], []).append((path[2:], value))
        else:
            sections.setdefault(path[1], [])
            if path[1] == "frr defaults":
                profile = value
    # "router bgp" holds the AS number as its value; a second instance has all of it in its key.
    heads = [head for head in sections if head == "router bgp" or head.startswith("router bgp ")]
    head = next((head for head in heads if " vrf " not in line_of((head,), config.get((FRR_CONF, head), ""))), None)
    if head is None:
        return SessionTimers()
    lines = [line_of(path, value) for path, value in sections[head] if len(path) == 1]
    neighbors = [line.split() for line in lines if line.startswith("neighbor ")]
    own = [words for line in lines if (words := line.split())[:2] == ["timers", "bgp"]]
    keepalive, hold = _pair(own[0][2:]) if own else BGP_DEFAULTS.get(profile, (None, None))
    special = Counter(_pair(words[3:]) for words in neighbors if words[2:3] == ["timers"] and len(words) == 5)
    special.pop((None, None), None)
    # FRR never prints a default: the parser adds that of data centers, where the neighbours may have others.
    if special and (not own or (keepalive, hold) == BGP_DEFAULTS.get(profile)):
        keepalive, hold = special.most_common(1)[0][0]
    connects = [number(words[4]) for words in neighbors if words[2:4] == ["timers", "connect"] and len(words) > 4]
    interval, multiplier = _bfd(neighbors, sections.get("bfd", []))
    return SessionTimers(
        keepalive,
        hold,
        most(connects) if connects else CONNECT_DEFAULTS.get(profile),
        interval,
        multiplier,
    )


def _pair(words: list[str]) -> tuple[int | None, int | None]:
    found = [number(word) for word in words[:2]]
    return (found[0], found[1]) if len(found) == 2 and words[0] != "connect" else (None, None)


def _bfd(neighbors: Iterable[list[str]], section: Iterable[tuple[Path, str]]) -> tuple[int | None, int | None]:
    """Return the interval and multiplier of most neighbours and groups with BFD."""
    profiles: dict[str, dict[str, int | None]] = {}
    for path, value in section:
        if path[0].startswith("profile ") and len(path) == 2:
            words = line_of(path, value).split()
            profiles.setdefault(path[0].removeprefix("profile "), {})[words[0]] = number(words[-1])
    named = {words[1]: words[2:] for words in neighbors if words[2:3] == ["bfd"] and len(words) <= 4}
    # The line with a profile or with timers says more than the plain one.
    named |= {words[1]: words[2:] for words in neighbors if words[2:3] == ["bfd"] and len(words) == 5}
    named |= {words[1]: words[2:] for words in neighbors if words[2:3] == ["bfd"] and len(words) == 6}
    found = list(_timers(named.values(), profiles))
    if not found:
        return None, None
    return Counter(found).most_common(1)[0][0]


def _timers(
    lines: Iterable[list[str]], profiles: dict[str, dict[str, int | None]]
) -> Iterator[tuple[int | None, int | None]]:
    for words in lines:
        if len(words) == 4:  # bfd MULTIPLIER RECEIVE TRANSMIT
            yield number(words[3]), number(words[1])
            continue
        rows = profiles.get(words[2], {}) if words[1:2] == ["profile"] and len(words) == 3 else {}
        yield rows.get("transmit-interval", BFD_INTERVAL_MS), rows.get("detect-multiplier", BFD_MULTIPLIER)
