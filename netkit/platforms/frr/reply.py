"""Parsers of a Linux switch's output: its files, FRR's JSON, and the timers of sessions."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netkit.platforms.bgp_reader import is_address, line_of
from netkit.platforms.config import Config, Path
from netkit.platforms.driver import SessionState
from netkit.platforms.existing import ExistingSessions, most, number
from netkit.platforms.frr.files import FRR_CONF, PLACES
from netkit.platforms.frr.model import DEFAULTS
from netkit.platforms.frr.procedure import AFTER, DRAIN, GONE, IS_WAITING, drain_place

MARK = "\x01"
SHOWN = "Current configuration:"
PREAMBLE = ("Building configuration", SHOWN)
VERSION = re.compile(r"(?:frr version |FRRouting )(\d[\w.]*)")
OWN_DRAIN = "drain"
# frr-reload.py always lists these: FRR does not print its defaults, and vtysh handles the last one itself.
ETERNAL = DEFAULTS | {"service integrated-vtysh-config"}
HEADING = "Lines To "
VTYSH = "vtysh -c 'show running-config'"


def _reading() -> str:
    show = (
        f"show() {{ p=$2; if {IS_WAITING}; then "
        f"[ ! -e {GONE}/$1 ] || return 0; [ ! -e {AFTER}/$1 ] || p={AFTER}/$1; fi; "
        "[ ! -e $p ] || { printf '\\001%s\\n' $1; cat $p; }; }; "
    )
    files = "; ".join(f"show {file} {place.path}" for file, place in PLACES.items() if file != FRR_CONF)
    return f"{show}{files}; show {OWN_DRAIN} {DRAIN}; printf '\\001{FRR_CONF}\\n'; {VTYSH}"


READING = _reading()
"""Prints every existing file; while a change waits for its confirmation, the new one."""


def pieces(printed: str) -> dict[str, str]:
    """Split the output of READING by file name."""
    found = (piece.partition("\n") for piece in printed.split(MARK)[1:])
    return {name: text for name, _, text in found}


def is_configuration(text: str) -> bool:
    """Whether FRR printed its complete configuration."""
    return SHOWN in text and text.rstrip().endswith("end")


def running(text: str, drain: str) -> str:
    """Convert FRR's running configuration to a file, without a drain by netkit."""
    return "".join(_kept(text, drain))


def _kept(text: str, drain: str) -> Iterator[str]:
    drained, section = {drain_place(row.strip()) for row in drain.splitlines()}, ""
    for row in text.splitlines(keepends=True):
        section = section if row.startswith(" ") else drain_place(row.strip())
        if row.startswith(PREAMBLE) or (section in drained and row.strip() in drained and row.startswith(" ")):
            continue
        if row.strip() not in {"", "end"}:
            yield row


def version_in(text: str) -> str:
    """Find the release in a text; empty if there is none."""
    found = VERSION.search(text)
    return found[1] if found else ""


def sessions(printed: str) -> Iterator[SessionState]:
    """Parse `show bgp ipv4 unicast summary json`; ValueError if it is invalid."""
    found = json.loads(printed or "{}")
    peers = found.get("peers", {}) if isinstance(found, dict) else {}
    for name, peer in peers.items():
        is_established = peer.get("state") == "Established"
        uptime_s = int(peer.get("peerUptimeMsec", 0)) // 1000 if is_established else 0
        yield SessionState(name, is_established, int(peer.get("pfxRcd", 0)), uptime_s)


def objects(printed: str) -> Any:
    """Parse JSON; an empty mapping if it is invalid."""
    try:
        return json.loads(printed)
    except ValueError:
        return {}


def named(found: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the mappings within a mapping."""
    yield from ((name, one) for name, one in found.items() if isinstance(one, dict)) if isinstance(found, dict) else ()


def differences(printed: str) -> Iterator[str]:
    """Yield the changes that `frr-reload.py --test` prints, without those it always lists."""
    blocks: list[list[str]] = []
    for row in printed.splitlines():
        if row.startswith(" ") and blocks:
            blocks[-1].append(row)
        elif row.strip() and set(row) != {"="}:
            blocks.append([row])
    eternal = {block[0] for block in blocks if block[-1].strip() in ETERNAL}
    actual = [
        block for block in blocks if block[-1].strip() not in ETERNAL and (len(block) > 1 or block[0] not in eternal)
    ]
    if any(not block[0].startswith(HEADING) for block in actual):
        yield from (f"{row}\n" for block in actual for row in block)


Section = dict[str, list[tuple[Path, str]]]
# What FRR does not print. `frr defaults datacenter` changes the BGP timers only.
BGP_DEFAULTS = {"traditional": (60, 180), "datacenter": (3, 9)}
CONNECT_DEFAULTS = {"traditional": 120, "datacenter": 10}
BFD_INTERVAL_MS, BFD_MULTIPLIER = 300, 3


def session_timers(config: Config) -> ExistingSessions:
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
        return ExistingSessions()
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
    with_bfd = {words[1] for words in neighbors if words[2:3] == ["bfd"]}
    group_of = {words[1]: words[3] for words in neighbors if words[2:3] == ["peer-group"] and len(words) == 4}
    every = [line_of(path, value).split() for path, value in sections[head]]
    limits = {words[1]: number(words[3]) for words in every if words[2:3] == ["maximum-prefix"] and len(words) > 3}
    named = [words[1] for words in neighbors if is_address(words[1])]
    return ExistingSessions(
        keepalive,
        hold,
        most(connects) if connects else CONNECT_DEFAULTS.get(profile),
        interval,
        multiplier,
        {name: limit for name in named if (limit := limits.get(name) or limits.get(group_of.get(name, "")))},
        frozenset(name for name in named if {name, group_of.get(name)} & with_bfd),
    )


def _pair(words: list[str]) -> tuple[int | None, int | None]:
    found = [number(word) for word in words[:2]]
    return (found[0], found[1]) if len(found) == 2 and words[0] != "connect" else (None, None)


def _bfd(neighbors: Iterable[list[str]], section: Iterable[tuple[Path, str]]) -> tuple[int | None, int | None]:
    """The interval and multiplier of most neighbours and groups with BFD."""
    profiles: dict[str, dict[str, int | None]] = {}
    for path, value in section:
        if path[0].startswith("profile ") and len(path) == 2:
            words = line_of(path, value).split()
            profiles.setdefault(path[0].removeprefix("profile "), {})[words[0]] = number(words[-1])
    named = {words[1]: words[2:] for words in neighbors if words[2:3] == ["bfd"] and len(words) <= 4}
    # The line with a profile or timers replaces the plain one.
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
