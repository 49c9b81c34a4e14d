"""Parsers of a Linux switch's output: its files, and FRR's JSON."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from netkit.platforms.driver import SessionState
from netkit.platforms.frr.files import FRR_CONF, PLACES
from netkit.platforms.frr.model import DEFAULTS
from netkit.platforms.frr.procedure import AFTER, DRAIN, GONE, IS_WAITING
from netkit.platforms.frr.staging import drain_place

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
