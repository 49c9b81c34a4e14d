"""What `sonic-clear` remembers: counters never go back to zero, each user's `show` subtracts what it noted."""

from collections.abc import Iterable, Mapping

from netkit.lab.personalities.sonic.counters import all_counts
from netkit.lab.reading import PortReading


class Cleared:
    """The counts noted for each user and kind of view."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str], dict[str, Mapping[str, int]]] = {}

    def note(self, user: str, kind: str, readings: Iterable[PortReading]) -> None:
        """Take the present counts as a user's new zero."""
        self._noted.setdefault((user, kind), {}).update({reading.name: all_counts(reading) for reading in readings})

    def since(self, user: str, kind: str, reading: PortReading) -> Mapping[str, int]:
        """Return the counts since a user's zero; a counter that fell behind it began anew."""
        noted = self._noted.get((user, kind), {}).get(reading.name, {})
        found = {name: (count, noted.get(name, 0)) for name, count in all_counts(reading).items()}
        return {name: count - zero if count >= zero else count for name, (count, zero) in found.items()}
