"""Which port leads where. The cables of several fabrics together: what runs, and what is intended."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric

End = tuple[str, str]
"""A device and one of its ports."""


@dataclass(frozen=True, slots=True)
class Cabling:
    """Cables by either end."""

    ends: Mapping[End, End]

    @classmethod
    def of(cls, fabrics: Iterable[Fabric], left: Mapping[End, End] | None = None) -> "Cabling":
        """Return the cables of fabrics, and some that none of them has; where two differ, the last one holds."""
        ends: dict[End, End] = {}
        for near, far in (left or {}).items():
            ends[near], ends[far] = far, near
        for fabric in fabrics:
            for link in fabric.links():
                near, far = (link.device, link.port), (link.peer, link.peer_port)
                ends[near], ends[far] = far, near
        return cls(ends)
