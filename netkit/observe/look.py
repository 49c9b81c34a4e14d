"""One device while it is looked at, and how it is hung up on."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from netkit.facts import Sample
from netkit.observe.assemble import Readings
from netkit.platforms.view import Reply, View, Viewer

HANG_UP_S = 2.0
"""How long is waited at most for all connections to end; one that does not end by then is left to itself."""


@dataclass(frozen=True, slots=True)
class Config:
    """The running configuration of a device; never part of a snapshot, for it may hold secrets."""

    files: Mapping[str, str | None]
    version: str


@dataclass(frozen=True, slots=True)
class Target:
    """A device to look at."""

    device: str
    platform: str
    views: tuple[View, ...]
    has_config: bool = True
    """Whether its configuration can be read on the way."""


@dataclass(slots=True)
class Look:
    """One device while it is looked at."""

    target: Target
    viewer: Viewer
    views: tuple[View, ...]
    """Those of the target, and what is asked instead where one tells nothing."""
    replies: dict[str, Reply] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)
    samples: list[Sample] = field(default_factory=list)
    config: Config | None = None
    busy_s: float = 0.0
    began_s: float | None = None
    is_late: bool = False
    closing: threading.Thread | None = None
    """What hangs up. It may never end, so that nobody waits for it for long."""

    def hang_up(self) -> None:
        """Begin to hang up, unless that is under way."""
        if self.closing is None or not self.closing.is_alive():
            self.closing = threading.Thread(target=self._close, name=f"hang up {self.target.device}", daemon=True)
            self.closing.start()

    def _close(self) -> None:
        with suppress(Exception):  # what was read was read
            self.viewer.close()


def hang_up(looks: Sequence[Look]) -> None:
    """Hang up on all at once, and wait a moment until that is done."""
    for look in looks:
        look.hang_up()
    ends_s = time.monotonic() + HANG_UP_S
    for look in looks:
        if look.closing is not None:
            look.closing.join(max(0.0, ends_s - time.monotonic()))
