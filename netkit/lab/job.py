"""What a lab is made of."""

from collections.abc import Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric
from netkit.lab.folder import LabFolder


@dataclass(frozen=True)
class Job:
    """The fabric, what its devices begin with, and where the lab is written down."""

    fabric: Fabric
    files: Mapping[str, Mapping[str, str]]
    """Device → rendered files; a device without any starts as from the factory."""
    folder: LabFolder
    fabric_folder: str
    patience_s: float = 90.0
    promised: Fabric | None = None
    """What the files make of the fabric, where that is not yet the fabric itself."""
