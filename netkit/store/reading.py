"""What modules measured, by place and quantity, and the history of it that checks are given."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.optic import Module

Readings = Mapping[str, Mapping[str, float]]
"""Place → quantity → value. A place is a port, or `port/lane`."""
LANE_QUANTITIES = ("rx_dbm", "tx_dbm", "bias_ma")
MODULE_QUANTITIES = ("temperature_c", "voltage_v")


def readings(facts: Facts) -> Readings:
    """Return what the modules of a device measure; what they do not is not there."""
    modules = {} if isinstance(facts.modules, Absent) else facts.modules
    found = [part for port, module in modules.items() if module.is_present for part in _of_module(port, module)]
    return {name: values for name, values in found if values}


def _of_module(port: str, module: Module) -> Iterator[tuple[str, dict[str, float]]]:
    yield port, _values(module, MODULE_QUANTITIES)
    for number, lane in module.lanes.items():
        yield place(port, number), _values(lane, LANE_QUANTITIES)


def _values(measured: object, names: Sequence[str]) -> dict[str, float]:
    found = ((name, getattr(measured, name)) for name in names)
    return {name: value for name, value in found if value is not None and math.isfinite(value)}


Find = Callable[[str, float], Sequence[tuple[float, Readings]]]
"""Gives what was measured on a device before a time, earliest first."""


class StoredHistory:
    """What earlier runs have measured, for checks; each device is fetched once, when it is asked for."""

    def __init__(self, find: Find, before_s: float) -> None:
        self._find, self._before_s = find, before_s
        self._found: dict[str, Sequence[tuple[float, Readings]]] = {}

    def readings(self, device: str, place: str, quantity: str) -> Sequence[tuple[float, float]]:
        """Return earlier values of a quantity, with the time of each, earliest first."""
        found = self._found.get(device)
        if found is None:
            found = self._found[device] = self._find(device, self._before_s)
        told = ((at_s, values.get(place, {}).get(quantity)) for at_s, values in found)
        return [(at_s, value) for at_s, value in told if value is not None]
