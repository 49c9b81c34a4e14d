"""One measured value and between which values it is well."""

from typing import NamedTuple

from netkit.facts.optic import Limits
from netkit.judge.finding import PASSED, Finding, fail, skip, warn
from netkit.judge.light import NO_LIMITS


class ModuleReading(NamedTuple):
    """One value of a module, and between which values it is well."""

    name: str
    value: float
    limits: Limits
    unit: str


def judged(port: str, reading: ModuleReading, remedy: str, margin: float, cause: str = "") -> Finding:
    """Judge a value by limits: beyond the alarm it fails, beyond the warning or near it, it warns."""
    found = _judged(port, reading, remedy, margin)
    return found._replace(cause=cause) if found is not PASSED else found


def _judged(port: str, reading: ModuleReading, remedy: str, margin: float) -> Finding:
    name, value, limits, unit = reading
    said = f"{name} {value:.1f} {unit}"
    if limits == NO_LIMITS:
        return skip(port, f"{said}; between which values it is well is not known")
    if limits.low_alarm is not None and value < limits.low_alarm:
        return fail(port, f"{said}, below its alarm limit {limits.low_alarm:g}", remedy)
    if limits.high_alarm is not None and value > limits.high_alarm:
        return fail(port, f"{said}, above its alarm limit {limits.high_alarm:g}", remedy)
    if limits.low_warning is not None and value < limits.low_warning + margin:
        return warn(port, f"{said}, its warning limit is {limits.low_warning:g}", remedy)
    if limits.high_warning is not None and value > limits.high_warning - margin:
        return warn(port, f"{said}, its warning limit is {limits.high_warning:g}", remedy)
    return PASSED
