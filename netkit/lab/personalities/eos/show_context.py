"""The state a `show` command reads, matching of commands, and plain-text tables."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from netkit.lab.agents import lldp_daemon
from netkit.lab.personalities.eos.configuration import EosSection
from netkit.lab.personalities.eos.grammar import port_list
from netkit.lab.personalities.eos.machine import EosMachine
from netkit.lab.personalities.eos.reply import InvalidCommandError
from netkit.lab.reading import SwitchPortReading

Captured = Mapping[str, str]
Found = TypeVar("Found")


def closest(known: Mapping[str, Found], words: Sequence[str]) -> tuple[Found, Captured] | int:
    """Match a command such as `show lldp neighbors <ports> detail`.

    Return its value and the captured words, or how many words the best form understood.
    """
    furthest = 0
    for form, value in known.items():
        captured: dict[str, str] = {}
        places = form.split()
        understood = 0
        for place, word in zip(places, words, strict=False):
            if place.startswith("<"):
                captured[place.strip("<>")] = word
            elif place != word:
                break
            understood += 1
        if understood == len(places) == len(words):
            return value, captured
        furthest = max(furthest, understood)
    return furthest


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [tuple(heads), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "".join(f"{line}\n" for line in lines)


LLDP_COMMAND = ("lldpcli", "-f", "json0", "show", "neighbors", "details")


class ShowContext:
    """The state a `show` command reads; nothing is read before a view needs it."""

    def __init__(self, machine: EosMachine) -> None:
        self.machine = machine
        self.config: EosSection = machine.running
        self.now_s = time.time()

    def section(self, port: str) -> EosSection:
        return self.config.section("interface", port)

    def ports(self, captured: Captured) -> Iterator[tuple[str, SwitchPortReading]]:
        """Yield the readings of the ports named in the command, or of all."""
        word = captured.get("ports", "")
        names = port_list(word, self.machine.ports) if word else self.machine.ports
        if not names:
            raise InvalidCommandError(f"Invalid input (at token 2: '{word}')")
        for reading in self.machine.node.ports():
            if reading.name in names:
                yield reading.name, reading

    def port_of(self, kernel_name: str) -> str:
        """The NOS name of a kernel interface, or the kernel name if it is not a port."""
        names = self.machine.node.kernel_names
        return next((port for port, name in names.items() if name == kernel_name), kernel_name)

    def bgp(self, command: str) -> Mapping[str, Any]:
        found = self._json(command, "bgpd")
        return found if isinstance(found, dict) else {}

    def bfd(self) -> list[Mapping[str, Any]]:
        found = self._json("show bfd peers json", "bfdd")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def routes(self) -> Mapping[str, Any]:
        found = self._json("show ip route json", "zebra")
        return found if isinstance(found, dict) else {}

    def lldp(self) -> Iterator[tuple[str, lldp_daemon.LldpNeighbor]]:
        if self.config.is_off("lldp", "run"):
            return
        result = self.machine.node.run(*LLDP_COMMAND)
        for neighbor in lldp_daemon.neighbors(result.stdout):
            yield self.port_of(neighbor.interface), neighbor

    def _json(self, command: str, daemon: str) -> object:
        try:
            found: object = json.loads(self.machine.node.vty(command, daemon))
        except (OSError, ValueError):
            return None
        return found
