"""What a SONiC switch answers, taken apart."""

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
    """The parts of one reading."""

    config: str
    is_draining: bool
    forwarding: str
    version: str

    @property
    def frr(self) -> str:
        """Return FRR's configuration as SONiC shows it among the tables; empty when it does not."""
        found = json.loads(self.config)
        text = found.get(FRR_TEXT, "") if isinstance(found, dict) else ""
        return text if isinstance(text, str) else ""


def running(text: str) -> SonicRunning | None:
    """Return a reading by its parts; nothing when some are missing."""
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
    """Return the release, from sonic_version.yml or `show version`; empty where there is none."""
    found = VERSION.search(text)
    return found[1] if found else ""


def fields(text: str) -> dict[str, str]:
    """Return the lines of `show version` that name a thing."""
    return {name: value.strip() for name, value in FIELD.findall(text)}


def summary(text: str) -> Mapping[str, Any]:
    """Return the IPv4 peers of `show bgp summary json`; ValueError when it is something else."""
    found = _objects(text)
    family = found.get("ipv4Unicast", found)
    peers = family.get("peers", {}) if isinstance(family, dict) else {}
    return peers if isinstance(peers, dict) else {}


def neighbors(text: str) -> Mapping[str, Any]:
    """Return the sessions of `show bgp neighbors json`; ValueError when it is something else."""
    return {name: one for name, one in _objects(text).items() if isinstance(one, dict) and "bgpState" in one}


def _objects(text: str) -> dict[str, Any]:
    if not text.strip() or text.lstrip().startswith("%"):  # vtysh's way to say that there is no BGP
        return {}
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def sessions(peers: Mapping[str, Any]) -> tuple[SessionState, ...]:
    """Return BGP sessions from a summary."""
    return tuple(_session(name, found) for name, found in peers.items() if isinstance(found, dict))


def _session(name: str, found: Mapping[str, Any]) -> SessionState:
    is_established = found.get("state") == "Established"
    uptime_s = int(found.get("peerUptimeMsec") or 0) // 1000
    return SessionState(name, is_established, int(found.get("pfxRcd") or 0), uptime_s if is_established else 0)


def table(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table that has a ruler of dashes below its titles; the columns are where the ruler says."""
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
    """Return the lines `NAME<tab>HASH` that our reading of a database prints; ValueError when they are other lines."""
    return {name: _hash(shown) for name, _, shown in (line.partition("\t") for line in text.splitlines() if line)}


def _hash(shown: str) -> dict[str, str]:
    try:
        found = ast.literal_eval(shown or "{}")
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError("no hash") from None
    if not isinstance(found, dict):
        raise ValueError("no hash")
    return {str(name): str(value) for name, value in found.items()}
