"""The state that an `nv show` command reads."""

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
    """The state one command reads. Nothing is read before a view needs it."""

    system: NvueSystem
    names: tuple[str, ...] = ()
    view: str = ""
    whole: "NvueShowContext | None" = None
    """The context of all interfaces, whose readings those of one interface share."""

    @cached_property
    def tree(self) -> Tree:
        """The applied configuration."""
        return self.whole.tree if self.whole else self.system.applied

    @cached_property
    def state(self) -> SwitchState:
        """The switch state of the applied configuration."""
        return self.whole.state if self.whole else self.system.state

    @cached_property
    def states(self) -> Mapping[str, PortState]:
        """The state of each configured port."""
        return self.whole.states if self.whole else {port.name: port for port in self.state.ports}

    @cached_property
    def readings(self) -> Mapping[str, SwitchPortReading]:
        """The readings of each port with a cable."""
        return self.whole.readings if self.whole else {port.name: port for port in self.system.node.ports()}

    @cached_property
    def ports(self) -> tuple[str, ...]:
        """Every port of the current breakouts."""
        return self.whole.ports if self.whole else tuple(port_ways(child(self.tree, "interface"), self.system.chassis))

    @cached_property
    def interfaces(self) -> tuple[str, ...]:
        """Every interface: management, loopback, ports, split cages and VLANs."""
        if self.whole:
            return self.whole.interfaces
        configured = child(self.tree, "interface")
        others = [name for name in configured if name not in self.ports and name not in {"eth0", "lo"}]
        return ("eth0", "lo", *self.ports, *sorted(others, key=lambda name: (bool(SVI.fullmatch(name)), name)))

    @property
    def name(self) -> str:
        """The interface in the path."""
        if self.names[0] not in self.interfaces:
            raise NvueCommandError(MISSING)
        return self.names[0]

    @property
    def port(self) -> SwitchPortReading:
        """The readings of the port in the path."""
        found = self.readings.get(self.name)
        if found is None:
            raise NvueCommandError(MISSING)
        return found

    @property
    def port_state(self) -> PortState:
        """The state of the port in the path; an unconfigured one is down."""
        if self.name not in self.ports:
            raise NvueCommandError(MISSING)
        return self.states.get(self.name, PortState(self.name, is_enabled=False))

    def at(self, name: str) -> "NvueShowContext":
        """The context of another interface."""
        return NvueShowContext(self.system, (name,), self.view, self.whole or self)

    def is_since(self, *version: int) -> bool:
        return self.system.chassis.version >= version

    def word(self, *, is_on: bool) -> str:
        """On or off in the release's words."""
        words = ("disabled", "enabled") if self.system.chassis.version >= BREAK else ("off", "on")
        return words[is_on]
