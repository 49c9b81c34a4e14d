"""Registry of platforms: netkit's own, and those provided by installed packages.

A platform is a package. It defines `PLATFORM` and `ACCESS`; the rest is in modules of these names, imported when they
are needed:

| module | defines | what for |
| --- | --- | --- |
| `view` | `artifacts`, `ztp` | the files of a switch: templates, and the values they get |
| `model` | `MODEL` | how its configuration is parsed and compared, what netkit owns, what changes risk |
| `driver` | `DRIVER` | a NAPALM driver |
| `facts` | `views` | commands, and parsers of their answers |
| `agents` | `AGENTS` | specifics of its SNMP agent and gNMI server; optional |
| `existing` | `EXISTING` | reads the design from a running configuration; without it the NOS cannot be adopted |
| `model_import` | `PLATFORM`, `model_file` … | what a switch states about its hardware → a model file; optional |

A package outside netkit registers its platform by an entry point of the group `netkit.platforms`.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from netkit.errors import HardwareError, Problem
from netkit.platforms.platform import ManagementAccess, Platform

GROUP = "netkit.platforms"
HOSTS = "linux"
"""The package for GPU hosts. It has no `PLATFORM`: hosts always run Linux, so a design has no choice to make."""
OWN = {name: f"netkit.platforms.{name}" for name in ("nvue", "sonic", "eos", "frr")}
"""Listed here because scanning installed packages takes longer than loading an intent."""


@cache
def _installed() -> Mapping[str, str]:
    metadata = import_module("importlib.metadata")  # slow to import; only needed for an unknown name or a listing
    return {entry.name: entry.module for entry in metadata.entry_points(group=GROUP)}


def _package(name: str) -> str:
    found = OWN.get(name) or (f"netkit.platforms.{HOSTS}" if name == HOSTS else "") or _installed().get(name)
    if found is None:
        raise KeyError(name)
    return found


def part(name: str, module: str) -> Any:
    """Import a module of a platform's package; KeyError for an unknown platform."""
    package = _package(name)
    try:
        return import_module(f"{package}.{module}" if module else package)
    except Exception as error:
        if package.startswith("netkit.platforms."):
            raise
        what = f"platform {name}: cannot import {package}{'.' * bool(module)}{module}: {type(error).__name__}: {error}"
        raise HardwareError(Problem(what, "fix or uninstall the package that provides it")) from None


@cache
def optional(name: str, module: str) -> Any:
    """Import an optional module of a platform's package; None if it or the platform does not exist."""
    try:
        package = _package(name)
    except KeyError:
        return None
    return part(name, module) if find_spec(f"{package}.{module}") else None


Part = TypeVar("Part")


class Parts(Mapping[str, Part], Generic[Part]):
    """Platform name → one attribute of its package, imported on first access."""

    def __init__(self, module: str, attribute: str, *, has_hosts: bool = True) -> None:
        self._module, self._attribute, self._has_hosts = module, attribute, has_hosts
        self._known: dict[str, Part] = {}

    def __getitem__(self, name: str) -> Part:
        if name not in self._known:
            if name == HOSTS and not self._has_hosts:
                raise KeyError(name)
            self._known[name] = getattr(part(name, self._module), self._attribute)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        own = {**OWN, **_installed()}
        return iter((*own, HOSTS) if self._has_hosts else own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        is_own = name in OWN or (name == HOSTS and self._has_hosts)
        return is_own or (name != HOSTS and name in _installed())


PLATFORMS: Mapping[str, Platform] = Parts("", "PLATFORM", has_hosts=False)
ACCESS: Mapping[str, ManagementAccess] = Parts("", "ACCESS")
