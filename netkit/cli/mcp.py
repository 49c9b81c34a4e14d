"""`netkit mcp`, whose tools `netkit serve --mcp` serves over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netkit.errors import Problem, UsageError
from netkit.project.project import Project


def run(folder: Path, store: str, *, lab: str = "", site: str = "") -> None:
    """Serve a fabric on standard input and output until the client closes them."""
    with sdk():
        from netkit.mcp.server import server  # noqa: PLC0415 (an extra)
    Project.open(folder)  # an invalid intent is reported here, not by every tool
    server(folder, store, lab, site).run("stdio")


@contextmanager
def sdk() -> Iterator[None]:
    """Import what needs the SDK of the protocol; without it, name the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "netkit":
            raise
        raise UsageError(
            Problem(f"{(error.name or 'mcp').partition('.')[0]} is not installed", "pip install 'netkit-fabric[mcp]'")
        ) from None
