"""Static properties of a network operating system: names, limits and capabilities that a design depends on."""

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
    """How a NOS implements a feature, with a caveat. An empty `how`: it does not support the feature."""

    how: str
    note: str = ""

    @property
    def is_available(self) -> bool:
        return bool(self.how)


@dataclass(frozen=True, slots=True)
class Ignored:
    """A key of the intent, with all keys below it, that has no effect on a NOS, and the reason."""

    key: str
    note: str
    when: Callable[[SwitchModel, str], bool] = lambda _model, _version: True
    """Whether the key is ignored on a model and version of the NOS."""
    severity: Literal["warning", "note"] = "warning"
    """Severity of the message when a design sets the key; a note if the setting takes effect by other means."""


@dataclass(frozen=True, slots=True)
class RoutingMode:
    """A mode in which a NOS accepts its routing configuration."""

    name: str
    oldest_version: str = ""
    """The first release for which netkit renders this mode; empty: all."""
    problem: str = ""
    """What earlier releases cannot do."""


@dataclass(frozen=True, slots=True)
class ManagementAccess:
    """Defaults for reaching devices of a platform."""

    user: str
    """The factory account."""
    ports: Mapping[str, int]
    """Transport → port, for each transport a driver supports; the first is the default."""
    gnmi_port: int = 0
    is_gnmi_login_basic: bool = False
    """Whether gNMI expects HTTP basic authentication instead of `username` and `password` metadata."""
    netmiko: str = "linux"
    """Netmiko's device_type."""
    ansible_network_os: str = ""
    """Ansible's httpapi network_os, for platforms that are driven over HTTPS."""


@dataclass(frozen=True, slots=True)
class Platform:
    """A network operating system: names, limits and capabilities, as data."""

    name: str
    title: str
    tested_versions: tuple[str, ...]
    max_mtu_bytes: int
    port_name: PortName
    capabilities: Mapping[str, Capability]
    starting_point: tuple[str, str]
    """The model and version of a new fabric."""
    oldest_version: str
    version_family: str = ""
    """Prefix of every version that can be rendered; empty: any."""
    largest_version: str = ""
    """Upper bound of valid versions; anything larger is not a version of this NOS."""
    routing_modes: tuple[RoutingMode, ...] = (RoutingMode("split"),)
    runs_on_any_model: bool = False
    missing_data: Callable[[SwitchModel, str], tuple[str, ...]] = lambda _model, _version: ()
    newest_version: str = ""
    """The newest release whose syntax was verified; newer ones are rendered in its syntax. Empty: all."""
    longest_detection_ms: int | None = None
    longest_restoration_ms: int | None = None
    reserved_vlans: range = range(0)
    """VLAN IDs the NOS reserves for internal use."""
    refused_mark: str = ""
    """A character of names that its vendor advises against in host names."""
    ignored: tuple[Ignored, ...] = ()
    management_port: str = "eth0"
    loopback_port: str = "lo"
    vlan_port: str = "vlan{number}"
    """The interface that is the gateway of a VLAN."""
    lag_port: str = "bond{number}"
    """The interface of a LAG."""
    renders_access: bool = False
    """Whether its templates render switches of `networks`: VLANs, LAG and MLAG."""

    def not_expressed(self, model: SwitchModel, version: str) -> Mapping[str, str]:
        """Map each key of the intent, or feature, that a switch does not support to the reason."""
        lacking = {
            FEATURE_KEYS.get(feature, feature): capability.note
            for feature, capability in self.capabilities.items()
            if not capability.is_available
        }
        return lacking | {ignored.key: ignored.note for ignored in self.ignored if ignored.when(model, version)}

    @property
    def missing_lossless(self) -> tuple[str, ...]:
        """Features a lossless fabric requires and the NOS does not support."""
        return tuple(feature for feature in LOSSLESS_FEATURES if self.lacks(feature))

    def wrong_name(self, name: str) -> str:
        """Why no switch should have this name; empty if one may."""
        is_wrong = self.refused_mark and self.refused_mark in name
        why = f"its vendor advises against {self.refused_mark} in host names"
        return f"{name} cannot be the name of a switch with {self.title}: {why}" if is_wrong else ""

    def lacks(self, feature: str) -> bool:
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
"""Features that correspond to one key of the intent."""
LOSSLESS_FEATURES = ("dscp_map", "pfc", "pfc_headroom", "pfc_watchdog", "ecn", "ets", "cnp_strict")


def capabilities(**features: str | tuple[str, str]) -> Mapping[str, Capability]:
    """Build a capability table; ValueError unless every feature is named."""
    if set(features) != set(FEATURES):
        raise ValueError(f"capability table differs from the feature list: {sorted(set(features) ^ set(FEATURES))}")
    table = {
        name: Capability(entry) if isinstance(entry, str) else Capability(*entry)
        for name, entry in sorted(features.items())
    }
    return MappingProxyType(table)


def version_key(version: str) -> tuple[int, ...]:
    """Convert a version to comparable numbers: 5.9 sorts before 5.16, 4.35.1F as 4.35.1."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:4])


class Dialect(Protocol):
    """Syntax shared by a range of releases."""

    @property
    def since(self) -> str:
        """The first release with this syntax."""


SomeDialect = TypeVar("SomeDialect", bound=Dialect)


def newest(dialects: Sequence[SomeDialect], version: str) -> SomeDialect:
    """Select the dialect of a release; `dialects` are ordered by release."""
    key = version_key(version)
    return next(found for found in reversed(dialects) if key >= version_key(found.since))
