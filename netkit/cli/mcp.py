"""`netkit mcp`."""

from pathlib import Path

from netkit.errors import Problem, UsageError
from netkit.project.project import Project


def run(folder: Path, store: str) -> None:
    """Serve a fabric on standard input and output until the client closes them."""
    try:
        from netkit.mcp.server import server  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "netkit":
            raise
        raise UsageError(
            Problem(f"{(error.name or 'mcp').partition('.')[0]} is not installed", "pip install 'netkit-fabric[mcp]'")
        ) from None
    Project.open(folder)  # an invalid intent is reported here, not by every tool
    server(folder, store).run("stdio")
