"""Parsers of the output of a SONiC switch, for the driver."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from netkit.platforms.driver import SessionState
from netkit.platforms.sonic.model import FRR_TEXT

MARK = "netkit-next-part"
VERSION = re.compile(r"^(?:build_version: *['\"]?|SONiC Software Version: )(?:SONiC\.)?([^\s'\"]+)", re.MULTILINE)
FIELD = re.compile(r"^([A-Z][A-Za-z ]+): (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SonicRunning:
    """The parts of the output of one read."""

    config: str
    is_draining: bool
    forwarding: str
    version: str

    @property
    def frr(self) -> str:
        """FRR's configuration as SONiC lists it among the tables; empty if it does not."""
        found = json.loads(self.config)
        text = found.get(FRR_TEXT, "") if isinstance(found, dict) else ""
        return text if isinstance(text, str) else ""


def running(text: str) -> SonicRunning | None:
    """Split the output of a read; None if parts are missing."""
    parts = text.split(f"\n{MARK}\n")
    if len(parts) != 4:
        return None
    config, drained, forwarding, version = parts
    try:
        json.loads(config)
    except (ValueError, RecursionError):
        return None
    return SonicRunning(config, bool(drained.strip()), forwarding, version)


def version_in(text: str) -> str:
    """Find the release in sonic_version.yml or `show version`; empty if there is none."""
    found = VERSION.search(text)
    return found[1] if found else ""


def fields(text: str) -> dict[str, str]:
    """Parse the `Name: value` lines of `show version`."""
    return {name: value.strip() for name, value in FIELD.findall(text)}


def summary(text: str) -> Mapping[str, Any]:
    """Parse the IPv4 peers of `show bgp summary json`; raises ValueError."""
    found = _objects(text)
    family = found.get("ipv4Unicast", found)
    peers = family.get("peers", {}) if isinstance(family, dict) else {}
    return peers if isinstance(peers, dict) else {}


def neighbors(text: str) -> Mapping[str, Any]:
    """Parse `show bgp neighbors json`; raises ValueError."""
    return {name: one for name, one in _objects(text).items() if isinstance(one, dict) and "bgpState" in one}


def _objects(text: str) -> dict[str, Any]:
    if not text.strip() or text.lstrip().startswith("%"):  # vtysh prints that if there is no BGP
        return {}
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def sessions(peers: Mapping[str, Any]) -> tuple[SessionState, ...]:
    found = []
    for name, peer in peers.items():
        if isinstance(peer, dict):
            is_established = peer.get("state") == "Established"
            uptime_s = int(peer.get("peerUptimeMsec") or 0) // 1000 if is_established else 0
            found.append(SessionState(name, is_established, int(peer.get("pfxRcd") or 0), uptime_s))
    return tuple(found)


def table(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table with a ruler of dashes below its titles, which marks the columns."""
    lines = text.splitlines()
    at = next((index for index, line in enumerate(lines) if line.strip() and set(line) <= {"-", " "}), 0)
    if at == 0:
        return
    spans = [found.span() for found in re.finditer("-+", lines[at])]
    titles = [lines[at - 1][start:end].strip() for start, end in spans]
    for line in lines[at + 1 :]:
        if not line.strip() or set(line) <= {"-"}:
            return
        cells = [line[start : (None if index + 1 == len(spans) else end)] for index, (start, end) in enumerate(spans)]
        yield dict(zip(titles, map(str.strip, cells), strict=True))


def hashes(text: str) -> dict[str, dict[str, str]]:
    """Parse lines of `NAME<tab>HASH`, as our script prints them; raises ValueError."""
    return {name: _hash(shown) for name, _, shown in (line.partition("\t") for line in text.splitlines() if line)}


def _hash(shown: str) -> dict[str, str]:
    try:
        found = ast.literal_eval(shown or "{}")
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError("not a hash") from None
    if not isinstance(found, dict):
        raise ValueError("not a hash")
    return {str(name): str(value) for name, value in found.items()}
