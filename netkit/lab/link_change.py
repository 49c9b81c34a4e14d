"""When the link of each port went and came the last time: the kernel counts that, and the node's zebra stamps it."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

SOCKET = "/run/frr/zebra.vty"
"""As old as zebra."""
STAMP = "%Y/%m/%d %H:%M:%S"


class RoutingNode(Protocol):
    """What is asked of a node here."""

    kernel_names: Mapping[str, str]

    def file(self, path: str) -> Path: ...  # noqa: D102

    def vty(self, command: str, daemon: str = "bgpd") -> str: ...  # noqa: D102


class LinkChange(NamedTuple):
    """The last time a link went and the last time it came, in seconds of the epoch; None when it never did."""

    went_s: float | None = None
    came_s: float | None = None


NEVER = LinkChange()


def link_changes(node: RoutingNode) -> Mapping[str, LinkChange]:
    """Return the last changes of each port by its NOS name; none while zebra does not answer."""
    try:
        told = json.loads(node.vty("show interface json", "zebra"))
        started_s = node.file(SOCKET).stat().st_mtime
    except (OSError, ValueError):
        return {}
    return {
        name: _change(told[interface], started_s) for name, interface in node.kernel_names.items() if interface in told
    }


def _change(told: Mapping[str, str], started_s: float) -> LinkChange:
    """Return the last changes of one port; a link that was up before zebra came with it."""
    went_s, came_s = (_moment_s(told.get(key)) for key in ("lastLinkDown", "lastLinkUp"))
    is_up = told.get("operationalStatus") == "up"
    return LinkChange(went_s, started_s if came_s is None and is_up else came_s)


def _moment_s(stamp: str | None) -> float | None:
    """Return the moment of a stamp in local time, with hundredths of a second."""
    if stamp is None:
        return None
    whole, _, hundredths = stamp.partition(".")
    return time.mktime(time.strptime(whole, STAMP)) + int(hundredths or 0) / 100
