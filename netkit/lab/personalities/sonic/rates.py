"""How fast a port's counters move: the difference to when it was last looked at."""

import time
from dataclasses import dataclass

from netkit.lab.reading import PortReading

SHORTEST_S = 1.0


@dataclass(frozen=True, slots=True)
class Rate:
    """Traffic of a port by the second."""

    rx_bytes_per_s: float = 0.0
    tx_bytes_per_s: float = 0.0


class Rates:
    """The last looks at each port."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, int, int]] = {}
        self._rates: dict[str, Rate] = {}

    def of(self, reading: PortReading) -> Rate:
        """Return the rate since the port was last looked at, at least a second ago."""
        now_s, traffic = time.monotonic(), reading.traffic
        then_s, rx_bytes, tx_bytes = self._seen.get(reading.name, (0.0, 0, 0))
        passed_s = now_s - then_s
        if reading.name not in self._seen or passed_s >= SHORTEST_S:
            self._seen[reading.name] = (now_s, traffic.rx_bytes, traffic.tx_bytes)
            if then_s and traffic.rx_bytes >= rx_bytes and traffic.tx_bytes >= tx_bytes:
                rx, tx = (traffic.rx_bytes - rx_bytes) / passed_s, (traffic.tx_bytes - tx_bytes) / passed_s
                self._rates[reading.name] = Rate(rx, tx)
        return self._rates.get(reading.name, Rate())
