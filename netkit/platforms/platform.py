"""What netkit needs to know of a network operating system before it can design for it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, TypeVar

from netkit.hardware import Split, SwitchModel

PortName = Callable[[SwitchModel, Split, int, int], str]
"""(model, split, cage, port within the cage) → the NOS's name of the port."""


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether a NOS can express a feature, and what to know about it. An empty `how` means it cannot."""

    how: str
    note: str = ""

    @property
    def is_available(self) -> bool:
        """Whether the NOS can express the feature at all."""
        return bool(self.how)


def _always(_model: SwitchModel, _version: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Ignored:
    """A key of the intent, or all keys below it, that a NOS has no use for, and why."""

    key: str
    note: str
    when: Callable[[SwitchModel, str], bool] = _always
    """Whether that holds for a model and version of the NOS."""
    severity: Literal["warning", "note"] = "warning"
    """How a design that gives the key says so: a note where it takes effect in another way."""


@dataclass(frozen=True, slots=True)
class RoutingMode:
    """A way in which a NOS takes its routing configuration."""

    name: str
    oldest_version: str = ""
    """The first release that netkit renders it for; empty: all."""
    problem: str = ""
    """What releases before it cannot do."""


@dataclass(frozen=True, slots=True)
class ManagementAccess:
    """How devices of a platform are reached where nothing else is said."""

    user: str
    """The account it comes with."""
    ports: Mapping[str, int]
    """What it can be driven over, and where that listens; the first is the default."""
    gnmi_port: int = 0
    is_gnmi_login_basic: bool = False
    """Whether gNMI takes name and password as HTTP does, not as metadata of their own."""
    netmiko: str = "linux"
    """Netmiko's name of its command line."""
    ansible_network_os: str = ""
    """What Ansible's httpapi calls it, for those that are driven over HTTPS."""


@dataclass(frozen=True, slots=True)
class Platform:
    """A network operating system: names, limits and abilities, as data."""

    name: str
    title: str
    tested_versions: tuple[str, ...]
    max_mtu_bytes: int
    port_name: PortName
    capabilities: Mapping[str, Capability]
    starting_point: tuple[str, str]
    """The model and version a new fabric begins with."""
    oldest_version: str
    version_family: str = ""
    """How every version begins that can be rendered; empty: any."""
    largest_version: str = ""
    """What is larger is not a version of this NOS."""
    routing_modes: tuple[RoutingMode, ...] = (RoutingMode("split"),)
    runs_on_any_model: bool = False
    missing_data: Callable[[SwitchModel, str], tuple[str, ...]] = lambda _model, _version: ()
    newest_version: str = ""
    """The newest release whose syntax was read; what is newer is rendered in its words. Empty: all."""
    longest_detection_ms: int | None = None
    longest_restoration_ms: int | None = None
    reserved_vlans: range = range(0)
    """VLAN numbers the NOS keeps for itself."""
    ignored: tuple[Ignored, ...] = ()

    def not_expressed(self, model: SwitchModel, version: str) -> Mapping[str, str]:
        """Return what a switch cannot be given: the key of the intent, or the feature, with the reason."""
        lacking = {
            FEATURE_KEYS.get(feature, feature): capability.note
            for feature, capability in self.capabilities.items()
            if not capability.is_available
        }
        return lacking | {ignored.key: ignored.note for ignored in self.ignored if ignored.when(model, version)}

    @property
    def missing_lossless(self) -> tuple[str, ...]:
        """What a lossless fabric needs and the NOS cannot express."""
        return tuple(feature for feature in LOSSLESS_FEATURES if self.lacks(feature))

    def lacks(self, feature: str) -> bool:
        """Whether the NOS cannot express a feature."""
        return not self.capabilities[feature].is_available


FEATURES = (
    "breakout",
    "bgp_unnumbered",
    "bfd",
    "drain_device",
    "drain_neighbor",
    "dscp_map",
    "pfc",
    "pfc_headroom",
    "pfc_watchdog",
    "ecn",
    "ets",
    "cnp_strict",
    "cnp_shaping",
    "buffer_pools",
    "adaptive_routing",
    "lldp",
    "ntp",
    "dns",
    "syslog",
    "snmpv3",
    "management_vrf",
    "change_in_place",
    "replace_whole",
    "timed_revert",
    "drain_in_place",
)
FEATURE_KEYS = {"cnp_shaping": "lossless.cnp.shape_percent"}
"""Features that are one key of the intent."""
LOSSLESS_FEATURES = ("dscp_map", "pfc", "pfc_headroom", "pfc_watchdog", "ecn", "ets", "cnp_strict")


def capabilities(**features: str | tuple[str, str]) -> Mapping[str, Capability]:
    """Return a complete capability table; every feature must be named, so that none is forgotten."""
    if set(features) != set(FEATURES):
        raise ValueError(f"capability table differs from the feature list: {sorted(set(features) ^ set(FEATURES))}")
    table = {
        name: Capability(entry) if isinstance(entry, str) else Capability(*entry)
        for name, entry in sorted(features.items())
    }
    return MappingProxyType(table)


def version_key(version: str) -> tuple[int, ...]:
    """Return a version as comparable numbers: 5.9 sorts before 5.16, 4.35.1F as 4.35.1."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:4])


class Dialect(Protocol):
    """The words of some releases."""

    @property
    def since(self) -> str:
        """Return the first release that speaks it."""


SomeDialect = TypeVar("SomeDialect", bound=Dialect)


def newest(dialects: Sequence[SomeDialect], version: str) -> SomeDialect:
    """Return the dialect of a release, of those in the order of their releases."""
    key = version_key(version)
    return next(found for found in reversed(dialects) if key >= version_key(found.since))
