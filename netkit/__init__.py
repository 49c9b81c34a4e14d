"""netkit: network fabric automation and validation for GPU clusters.

`from netkit import Project` is the Python API.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netkit.project.project import Project

__version__ = "0.1.0"
__all__ = ["Project", "__version__"]


def __getattr__(name: str) -> object:
    """Load the API on first use, so that the command line starts without it."""
    if name != "Project":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from netkit.project.project import Project  # noqa: PLC0415 (see above)

    return Project
