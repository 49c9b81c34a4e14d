"""Capabilities of switches, hosts, optics and cables: data files with sources, and the catalogue that loads them."""

from netkit.hardware.catalog import (
    Catalog,
    HeadroomRow,
    HostGpu,
    HostModel,
    Media,
    RailNic,
    Split,
    SwitchModel,
    module_for,
    read_switch,
)

__all__ = [
    "Catalog",
    "HeadroomRow",
    "HostGpu",
    "HostModel",
    "Media",
    "RailNic",
    "Split",
    "SwitchModel",
    "module_for",
    "read_switch",
]
