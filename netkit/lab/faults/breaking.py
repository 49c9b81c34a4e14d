"""Makes faults and heals them, wherever they strike: model, kernel, NIC or management."""

import threading
import time
from collections.abc import Mapping, Sequence

from netkit.design.fabric import Host
from netkit.errors import LabError, Problem
from netkit.lab import faults
from netkit.lab.faults import kernel
from netkit.lab.faults import nic as nic_faults
from netkit.lab.model.inputs import NicSettings
from netkit.lab.world import World


class Breaker:
    """The faults of one lab."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self._before: dict[tuple[str, str], Mapping[str, NicSettings]] = {}

    def make(self, name: str, place: str, options: Sequence[str]) -> faults.InjectedFault:
        """Make a fault, or raise LabError with what keeps it from being made."""
        given = faults.parse_options(options)
        fault = faults.check(self._world.fabric, name, place, given, time.monotonic())
        active = self._world.services.faults
        with self._lock:
            if active.of(fault.name, fault.device, fault.port):
                raise LabError(Problem(f"{fault.name} at {fault.place} is there already", "heal it first"))
            active.add(fault)
        try:
            self._act(fault)
        except (RuntimeError, LabError, OSError) as error:
            active.heal(fault.name, fault.device, fault.port, now_s=time.monotonic())
            raise LabError(Problem(f"{fault.name} at {fault.place} could not be made: {error}")) from error
        return fault

    def heal(self, name: str, place: str) -> tuple[faults.InjectedFault, ...]:
        """Heal a fault, or without a name all of a place; return what was healed."""
        device, port = faults.locate(self._world.fabric, place)
        if name:
            faults.known(name)
        gone = self._world.services.faults.heal(name, device, port, now_s=time.monotonic())
        for fault in reversed(gone):
            self._undo(fault)
        return gone

    def _act(self, fault: faults.InjectedFault) -> None:
        maker = faults.known(fault.name).maker
        if maker == "management":
            self._world.incidents.begin(fault)
        elif maker == "kernel":
            kernel.make(fault, self._world.fabric, self._world.nodes)
            self._announce(fault)
        elif maker == "nic" and isinstance(host := self._world.nodes[fault.device].device, Host):
            self._before[fault.name, fault.place] = self._world.settings(host.name)
            for words in nic_faults.commands(fault, self._world.fabric, host):
                nic_faults.run(self._world.nodes[host.name], words)
            self._world.tell_settings(self._world.nodes[host.name])

    def _undo(self, fault: faults.InjectedFault) -> None:
        maker = faults.known(fault.name).maker
        if maker == "management":
            self._world.incidents.end(fault)
        elif maker == "kernel":
            kernel.heal(fault, self._world.fabric, self._world.nodes)
            self._announce(fault)
        elif maker == "nic" and isinstance(host := self._world.nodes[fault.device].device, Host):
            before = self._before.pop((fault.name, fault.place), {})
            for words in nic_faults.remedies(fault, self._world.fabric, host, before):
                nic_faults.run(self._world.nodes[host.name], words)
            self._world.tell_settings(self._world.nodes[host.name])

    def _announce(self, fault: faults.InjectedFault) -> None:
        """Have switches whose cables moved announce their ports by the names they had."""
        device = self._world.fabric.device(fault.device)
        if fault.name == "wrong-cable" and device is not None:
            names = {nic.leaf for nic in device.nics} if isinstance(device, Host) else {device.name}
            for name in sorted(names):
                self._world.nodes[name].lldp.repeat()
