"""What a view looks at: the configuration, the hardware and the daemons of one switch."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from netkit.lab.personalities.eos.machine import Machine
from netkit.lab.personalities.eos.tree import Section
from netkit.lab.reading import PortReading

LLDP_COMMAND = ("lldpcli", "-f", "json0", "show", "neighbors", "details")


class Lens:
    """One look; nothing is read before a view asks for it."""

    def __init__(self, machine: Machine, *, is_privileged: bool = True) -> None:
        self.machine = machine
        self.config: Section = machine.running
        self.is_privileged = is_privileged
        self.now_s = time.time()

    def section(self, port: str) -> Section:
        """Return the configuration of an interface."""
        return self.config.section("interface", port)

    def ports(self, only: str = "") -> Iterator[tuple[str, PortReading]]:
        """Yield the ports with what they show, all or one."""
        for reading in self.machine.node.ports():
            if only in {"", reading.name}:
                yield reading.name, reading

    def port_of(self, kernel_name: str) -> str:
        """Return the port that the kernel knows by a name; the name itself when it is none."""
        names = self.machine.node.kernel_names
        return next((port for port, name in names.items() if name == kernel_name), kernel_name)

    def bgp(self, command: str) -> Mapping[str, Any]:
        """Return what FRR's BGP daemon answers to a JSON command; empty when it says nothing of use."""
        return _object(self.machine.node.vty(command))

    def bfd(self, command: str) -> list[Mapping[str, Any]]:
        """Return the sessions FRR's BFD daemon lists."""
        try:
            found = json.loads(self.machine.node.vty(command, "bfdd"))
        except ValueError:
            return []
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def lldp(self) -> Mapping[str, Any]:
        """Return what lldpd knows of the neighbours."""
        done = self.machine.node.run(*LLDP_COMMAND)
        return _object(done.stdout) if done.exit_code == 0 else {}


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
