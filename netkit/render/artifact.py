"""The interface from a platform's view to the renderer: a file, its template, and the template's context."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a device."""

    file: str
    template: str
    context: Mapping[str, Any]
