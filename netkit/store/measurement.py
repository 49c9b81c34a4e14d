"""Measurements of modules, by place and quantity, and their history for checks."""

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
    """The measurements of a device's modules at one time."""

    at_s: float
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Place → quantity → value. A place is a port, or `port/lane`."""
    serials: Mapping[str, str] = field(default_factory=dict)
    """Port → serial number of its module, if reported."""


def measured(at_s: float, facts: Facts) -> Measured:
    """Return the measurements of a device's modules; missing values are left out."""
    modules = present(facts)
    found = [part for port, module in modules.items() for part in _of_module(port, module)]
    return Measured(at_s, {name: values for name, values in found if values}, serials(facts))


def serials(facts: Facts) -> Mapping[str, str]:
    """Return the serial number of the module in each port, if reported."""
    return {port: module.serial for port, module in present(facts).items() if module.serial}


def present(facts: Facts) -> Mapping[str, Module]:
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
"""Returns the measurements on a device before a time, earliest first."""


class StoredHistory:
    """Earlier measurements, for checks; each device is fetched once, on demand.

    A port whose module was replaced has no history: modules differ.
    """

    def __init__(self, find: Find, snapshot: Snapshot) -> None:
        self._find, self._now = find, snapshot
        self._found: dict[str, Sequence[Measured]] = {}

    def readings(self, device: str, place: str, quantity: str) -> Sequence[tuple[float, float]]:
        """Return earlier values of a quantity with their times, earliest first."""
        found = self._found.get(device)
        if found is None:
            one = self._now.devices.get(device)
            current = {} if one is None else serials(one.facts)
            earlier = self._find(device, self._now.taken_s)
            found = self._found[device] = [_of_same_modules(one, current) for one in earlier]
        values = ((one.at_s, one.values.get(place, {}).get(quantity)) for one in found)
        return [(at_s, value) for at_s, value in values if value is not None]


def _of_same_modules(earlier: Measured, current: Mapping[str, str]) -> Measured:
    """Drop the values of ports whose module has been replaced since."""
    replaced = {port for port, serial in current.items() if earlier.serials.get(port, serial) != serial}
    if not replaced:
        return earlier
    values = {
        place: found for place, found in earlier.values.items() if not replaced & {place, place.rpartition("/")[0]}
    }
    return replace(earlier, values=values)
