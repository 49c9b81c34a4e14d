"""What switches, hosts, optics and cables can do: data files with sources, and the catalogue that reads them."""

from netkit.hardware.catalog import Catalog, HeadroomRow, HostModel, Media, RailNic, Split, SwitchModel, module_for

__all__ = ["Catalog", "HeadroomRow", "HostModel", "Media", "RailNic", "Split", "SwitchModel", "module_for"]
