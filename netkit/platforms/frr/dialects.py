"""Differences between FRR releases that affect netkit's configuration, as data."""

from dataclasses import dataclass, replace
from typing import Literal

from netkit.platforms.platform import newest


@dataclass(frozen=True, slots=True)
class FrrDialect:
    """Syntax of one range of releases."""

    since: str
    neighbor_drain: Literal["route-map", "command"] = "route-map"
    managed_daemons: tuple[str, ...] = ()


# 8.4 has no `neighbor … graceful-shutdown`. 8.5 to 10.5 have it, but it only lowers the preference of received routes:
# until 10.6 nothing sent to the neighbour carries the community. A route map drains both directions everywhere.
_8_4 = FrrDialect(since="8.4")
_9_0 = replace(_8_4, since="9.0", managed_daemons=("mgmtd",))
_10_6 = replace(_9_0, since="10.6", neighbor_drain="command")

DIALECTS = (_8_4, _9_0, _10_6)


def dialect(version: str) -> FrrDialect:
    return newest(DIALECTS, version)
