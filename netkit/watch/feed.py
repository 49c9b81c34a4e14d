"""Where samples come from: polling, a stream or a record. Each device has a feed; all deliver to one listener."""

from dataclasses import dataclass
from typing import Literal, Protocol

from netkit.facts import Sample


@dataclass(frozen=True, slots=True)
class Condition:
    """How it goes with a device."""

    state: Literal["connecting", "live", "slow", "gone"] = "connecting"
    why: str = ""
    every_s: float = 1.0
    """How often it is asked, as it is able to answer."""
    again_s: float = 0.0
    """For one that is gone: after how many seconds it is tried again."""


class Listener(Protocol):
    """Who is told. Called from the threads of the feeds."""

    def deliver(self, device: str, sample: Sample) -> None:
        """Take counters of a device."""

    def tell(self, device: str, condition: Condition) -> None:
        """Take note of how it goes with a device."""


class Feed(Protocol):
    """What brings samples of one device, or of several."""

    def start(self, listener: Listener) -> None:
        """Begin, in threads of its own; return at once."""

    def stop(self) -> None:
        """End, and hang up; what is being asked ends too."""
