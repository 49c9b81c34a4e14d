"""The catalogue of faults, and checking what a user asks for against it and against the fabric."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from netkit.design.fabric import Fabric, Host, Switch
from netkit.errors import LabError, Problem
from netkit.lab.faults.access import ACCESS
from netkit.lab.faults.fault import Fault, Value
from netkit.lab.faults.fit import unfit
from netkit.lab.faults.hardware import HARDWARE
from netkit.lab.faults.kind import HOST, HOST_NIC, SWITCH, SWITCH_PORT, Kind, Option, Target
from netkit.lab.faults.network import NETWORK

CATALOG: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in (*HARDWARE, *NETWORK, *ACCESS)})
MOST_NAMED = 12


def check(fabric: Fabric, name: str, place: str, options: Mapping[str, str] | None = None, since_s: float = 0) -> Fault:
    """Return the fault asked for with all its options, or raise LabError with what exists instead."""
    kind = known(name)
    device, port = locate(fabric, place)
    target = _target(fabric, device, port)
    if target not in kind.targets:
        raise LabError(Problem(f"{name} does not apply to a {target}", f"name {_any_of(kind.targets)}"))
    fault = Fault(name, device, port, since_s, dict(_options(kind, options or {})))
    if problem := unfit(fabric, fault):
        raise LabError(problem)
    return fault


def known(name: str) -> Kind:
    """Return a fault of the catalogue by name, or raise LabError."""
    if name not in CATALOG:
        raise LabError(Problem(f"no fault {name!r}", _instead(name, CATALOG)))
    return CATALOG[name]


def locate(fabric: Fabric, place: str) -> tuple[str, str]:
    """Return device and port of `DEVICE[:PORT]`, or raise LabError with what exists instead."""
    name, _, port = place.partition(":")
    device = fabric.device(name)
    if device is None:
        raise LabError(Problem(f"no device {name!r}", _instead(name, fabric.names)))
    ports = _ports(device)
    if ":" in place and port not in ports:
        what = "interface" if isinstance(device, Host) else "port in use"
        raise LabError(Problem(f"{name} has no {what} {port!r}", _instead(port, ports)))
    return name, port


def parse_options(words: Iterable[str]) -> dict[str, str]:
    """Return options given as `NAME=VALUE`."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise LabError(Problem(f"{word!r} is not an option", "write NAME=VALUE"))
        found[name] = value
    return found


def _target(fabric: Fabric, device: str, port: str) -> Target:
    if isinstance(fabric.device(device), Switch):
        return SWITCH_PORT if port else SWITCH
    return HOST_NIC if port else HOST


def _ports(device: Switch | Host) -> tuple[str, ...]:
    if isinstance(device, Switch):
        return tuple(port.name for port in device.ports)
    return tuple(nic.interface for nic in device.nics)


def _options(kind: Kind, given: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    options = {option.name: option for option in kind.options}
    problems = [
        Problem(f"{kind.name} has no option {name!r}", _instead(name, options)) for name in given if name not in options
    ]
    for name, option in options.items():
        try:
            yield name, _value(option, given[name]) if name in given else option.default
        except ValueError as error:
            problems.append(Problem(f"{kind.name}: {name} is {given[name]!r}", f"{error}; it is {option.meaning}"))
    if problems:
        raise LabError(problems)


def _value(option: Option, text: str) -> Value:
    """Return an option's value as its default's type; the error says what it may be."""
    if option.choices:
        found = next((choice for choice in option.choices if str(choice) == text), None)
        if found is None:
            raise ValueError(f"give {_any_of(option.choices)}")
        return found
    if isinstance(option.default, str):
        return text
    kind = type(option.default)
    try:
        value = kind(text)
    except ValueError:
        raise ValueError("give a whole number" if kind is int else "give a number") from None
    if not option.low <= value <= option.high:
        raise ValueError(f"give {option.low:g} to {option.high:g}")
    return value


def _instead(name: str, names: Iterable[str]) -> str:
    """Return what to write instead of a name that does not exist."""
    choices = list(names)
    if not choices:
        return "there is none"
    close = difflib.get_close_matches(name, choices, 1, 0.5)
    shown = ", ".join(choices[:MOST_NAMED]) + (f" and {len(choices) - MOST_NAMED} more" * (len(choices) > MOST_NAMED))
    return f"did you mean {close[0]}? there are {shown}" if close else f"there are {shown}"


def _any_of(choices: Iterable[Value]) -> str:
    *most, last = map(str, choices)
    return f"{', '.join(most)} or {last}" if most else last
