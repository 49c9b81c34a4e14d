"""One look at the switch: what was asked for, and the sources that answer it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from netkit.lab.personalities.nvue.schema import BREAK, SVI, port_ways
from netkit.lab.personalities.nvue.system import NvueCommandError, NvueSystem
from netkit.lab.personalities.nvue.tree import Tree, child
from netkit.lab.reading import SwitchPortReading
from netkit.lab.state import PortState, SwitchState

Shown = Mapping[str, object]
MISSING = "Error: The requested item does not exist.\n"


@dataclass(frozen=True)
class NvueShowContext:
    """What one command sees. Nothing is read before a view needs it."""

    system: NvueSystem
    names: tuple[str, ...] = ()
    view: str = ""
    whole: "NvueShowContext | None" = None
    """The look at all names that this one is a part of; what was read for one is read for all."""

    @cached_property
    def tree(self) -> Tree:
        """Return the applied configuration."""
        return self.whole.tree if self.whole else self.system.applied

    @cached_property
    def state(self) -> SwitchState:
        """Return what the applied configuration makes of the switch."""
        return self.whole.state if self.whole else self.system.state

    @cached_property
    def states(self) -> Mapping[str, PortState]:
        """Return what each configured port is told to be."""
        return self.whole.states if self.whole else {port.name: port for port in self.state.ports}

    @cached_property
    def readings(self) -> Mapping[str, SwitchPortReading]:
        """Return what each port with a cable shows."""
        return self.whole.readings if self.whole else {port.name: port for port in self.system.node.ports()}

    @cached_property
    def ports(self) -> tuple[str, ...]:
        """Return every port the switch has as it is broken out."""
        return self.whole.ports if self.whole else tuple(port_ways(child(self.tree, "interface"), self.system.chassis))

    @cached_property
    def interfaces(self) -> tuple[str, ...]:
        """Return every interface: management, loopback, ports, cages that are split, and VLANs."""
        if self.whole:
            return self.whole.interfaces
        configured = child(self.tree, "interface")
        others = [name for name in configured if name not in self.ports and name not in {"eth0", "lo"}]
        return ("eth0", "lo", *self.ports, *sorted(others, key=lambda name: (bool(SVI.fullmatch(name)), name)))

    @property
    def name(self) -> str:
        """Return the name the path holds; it must be an interface."""
        if self.names[0] not in self.interfaces:
            raise NvueCommandError(MISSING)
        return self.names[0]

    @property
    def port(self) -> SwitchPortReading:
        """Return what the port the path names shows."""
        found = self.readings.get(self.name)
        if found is None:
            raise NvueCommandError(MISSING)
        return found

    @property
    def port_state(self) -> PortState:
        """Return what the port the path names is told to be; an unconfigured one is down."""
        if self.name not in self.ports:
            raise NvueCommandError(MISSING)
        return self.states.get(self.name, PortState(self.name, is_enabled=False))

    def at(self, name: str) -> "NvueShowContext":
        """Return the same look at another name."""
        return NvueShowContext(self.system, (name,), self.view, self.whole or self)

    def is_since(self, *version: int) -> bool:
        """Whether the switch runs a release or a later one."""
        return self.system.chassis.version >= version

    def word(self, *, is_on: bool) -> str:
        """Return on or off in the words of the release."""
        words = ("disabled", "enabled") if self.system.chassis.version >= BREAK else ("off", "on")
        return words[is_on]
