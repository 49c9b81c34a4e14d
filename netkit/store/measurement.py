"""What modules measured, by place and quantity, and the history of it that checks are given."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from netkit.facts import Absent, Facts, Snapshot
from netkit.facts.counter import place
from netkit.facts.optic import Module

LANE_QUANTITIES = ("rx_dbm", "tx_dbm", "bias_ma")
MODULE_QUANTITIES = ("temperature_c", "voltage_v")


@dataclass(frozen=True, slots=True)
class Measured:
    """What the modules of a device measured at one time."""

    at_s: float
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Place → quantity → value. A place is a port, or `port/lane`."""
    serials: Mapping[str, str] = field(default_factory=dict)
    """Port → which module it was, where it reports."""


def measured(at_s: float, facts: Facts) -> Measured:
    """Return what the modules of a device measure; what they do not is not there."""
    modules = present(facts)
    found = [part for port, module in modules.items() for part in _of_module(port, module)]
    return Measured(at_s, {name: values for name, values in found if values}, serials(facts))


def serials(facts: Facts) -> Mapping[str, str]:
    """Return which module is in each port, where it reports."""
    return {port: module.serial for port, module in present(facts).items() if module.serial}


def present(facts: Facts) -> Mapping[str, Module]:
    """Return the modules that are plugged in."""
    modules = {} if isinstance(facts.modules, Absent) else facts.modules
    return {port: module for port, module in modules.items() if module.is_present}


def _of_module(port: str, module: Module) -> Iterator[tuple[str, dict[str, float]]]:
    yield port, _values(module, MODULE_QUANTITIES)
    for number, lane in module.lanes.items():
        yield place(port, number), _values(lane, LANE_QUANTITIES)


def _values(measured: object, names: Sequence[str]) -> dict[str, float]:
    found = ((name, getattr(measured, name)) for name in names)
    return {name: value for name, value in found if value is not None and math.isfinite(value)}


Find = Callable[[str, float], Sequence[Measured]]
"""Gives what was measured on a device before a time, earliest first."""


class StoredHistory:
    """What earlier runs have measured, for checks; each device is fetched once, when it is asked for.

    Of a port whose module is another one now, nothing is reported: two modules measure differently.
    """

    def __init__(self, find: Find, snapshot: Snapshot) -> None:
        self._find, self._now = find, snapshot
        self._found: dict[str, Sequence[Measured]] = {}

    def readings(self, device: str, place: str, quantity: str) -> Sequence[tuple[float, float]]:
        """Return earlier values of a quantity, with the time of each, earliest first."""
        found = self._found.get(device)
        if found is None:
            found = self._found[device] = self._of_now(device)
        told = ((one.at_s, one.values.get(place, {}).get(quantity)) for one in found)
        return [(at_s, value) for at_s, value in told if value is not None]

    def _of_now(self, device: str) -> Sequence[Measured]:
        """Return what the modules measured that are there now."""
        one = self._now.devices.get(device)
        here = {} if one is None else serials(one.facts)
        return [_of_same(earlier, here) for earlier in self._find(device, self._now.taken_s)]


def _of_same(earlier: Measured, here: Mapping[str, str]) -> Measured:
    changed = {port for port, serial in here.items() if earlier.serials.get(port, serial) != serial}
    if not changed:
        return earlier
    values = {place: told for place, told in earlier.values.items() if not changed & {place, place.rpartition("/")[0]}}
    return replace(earlier, values=values)
