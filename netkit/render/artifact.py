"""What a platform's view hands to the renderer: one file, its template, and all the template may know."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a device."""

    file: str
    template: str
    context: Mapping[str, Any]
